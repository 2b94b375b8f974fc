/** A client format and what its clients may request, as data: one fragment of a request per concept. */
import type { JsonObject } from '../../../src/base/json.js'

/** A feature of a request in another client format. */
export interface ClientConcept {
  /** Markdown. */
  readonly name: string
  /** Further members of the plain request that the concept needs. */
  readonly base?: JsonObject
  readonly members: JsonObject
}

/** A client format and its concepts. */
export interface ClientConcepts {
  /** Markdown. */
  readonly title: string
  readonly path: string
  /** The required members of a request, without its model. */
  readonly plain: JsonObject
  readonly concepts: readonly ClientConcept[]
}
