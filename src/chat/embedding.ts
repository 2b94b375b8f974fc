/** Canonical embeddings requests and replies. */
import type { Usage } from './usage.js'

/** One input: a text, or the token ids of a text. */
export type EmbeddingInput = string | readonly number[]

/**
 * The part of a request that only embeddings have. Its texts are also the messages, for estimates and limits.
 */
export interface Embedding {
  readonly inputs: readonly EmbeddingInput[]
  /** Numbers per vector; absent: the model's default. */
  readonly dimensions?: number
  /** The client requests vectors as base64. */
  readonly base64: boolean
}

/** One vector: the JSON text of an array of numbers, or base64 of 32-bit floats, little-endian. */
export interface Vector {
  readonly form: 'json' | 'base64'
  readonly text: string
}

/** The reply to an embeddings request. */
export interface Vectors {
  readonly vectors: readonly Vector[]
  readonly usage: Usage
  /** The model that served the request, as the upstream names it. */
  readonly model: string | null
}
