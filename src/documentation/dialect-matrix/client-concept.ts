/**
 * The form of what clients of one format may ask for.
 */
import type { JsonObject } from '../../chat/json.js'

/** One thing that can be asked for. */
export interface ClientConcept {
  /** Markdown. */
  readonly name: string
  /** What the plain request has besides, if the concept needs it. */
  readonly base?: JsonObject
  readonly ask: JsonObject
}

/** A client format, and what its clients may ask for. */
export interface ClientConcepts {
  /** Markdown. */
  readonly title: string
  readonly path: string
  /** The least that a request of the format has, beside its model. */
  readonly plain: JsonObject
  readonly concepts: readonly ClientConcept[]
}
