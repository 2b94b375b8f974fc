/**
 * What an embeddings request asks for and what its reply holds, in no dialect's words.
 */
import type { Usage } from './usage.js'

/** One thing to embed: a text, or the token ids of one. */
export type EmbeddingInput = string | readonly number[]

/** The part of a request that only embeddings have; the texts are its messages as well, for estimates and limits. */
export interface Embedding {
  readonly inputs: readonly EmbeddingInput[]
  /** How many numbers a vector is to have; left out: as many as the model gives. */
  readonly dimensions?: number
  /** The client wants vectors as base64. */
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
  /** The model that answered, as the upstream names it. */
  readonly model: string | null
}
