/** What clients of each format may request, as data: one fragment of a request per concept. */
import type { JsonObject } from '../../formats/chat/json.js'
import type { DialectName } from '../../formats/dialect.js'

/** A feature of a chat request. */
export interface RequestConcept {
  /** Markdown. */
  readonly name: string
  /** Further members of the plain request that the concept needs. */
  readonly base?: JsonObject
  readonly members: JsonObject
  /** How a dialect emulates the concept. Markdown. */
  readonly emulated?: Partial<Record<DialectName, string>>
  /** Further notes. Markdown. */
  readonly notes?: Partial<Record<DialectName, string>>
}

/** Concepts under one heading. */
export interface RequestGroup {
  readonly title: string
  readonly concepts: readonly RequestConcept[]
}

/** A feature of a request in another client format. */
interface ClientConcept {
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
