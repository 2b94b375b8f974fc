/** What clients of each format may request, as data: one fragment of a request per concept. */
import type { JsonObject } from '../../chat/json.js'
import type { DialectName } from '../../dialects/dialect.js'

/** One thing that can be asked for. */
export interface RequestConcept {
  /** Markdown. */
  readonly name: string
  /** What the plain request has besides, where the concept needs it. */
  readonly base?: JsonObject
  readonly members: JsonObject
  /** How it is said by other means: a dialect here has it emulated, not kept. Markdown. */
  readonly emulated?: Partial<Record<DialectName, string>>
  /** What else is worth knowing. Markdown. */
  readonly notes?: Partial<Record<DialectName, string>>
}

/** Concepts under one heading. */
export interface RequestGroup {
  readonly title: string
  readonly concepts: readonly RequestConcept[]
}

/** One thing that can be asked for. */
export interface ClientConcept {
  /** Markdown. */
  readonly name: string
  /** What the plain request has besides, if the concept needs it. */
  readonly base?: JsonObject
  readonly members: JsonObject
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
