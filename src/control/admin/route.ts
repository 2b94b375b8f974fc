/**
 * The form of a route of the admin API: data, from which the router serves it and the OpenAPI document
 * describes it.
 */
import type { Scope } from '../../accounts/admin-tokens.js'
import type { JsonObject, WrittenObject } from '../../base/json.js'
import type { ControlExchange, ControlRoute } from '../control-router.js'
import type { AdminToken } from '../../store/admin-tokens.js'
import type { Conditions } from './conditional-requests.js'
import type { Fields, FieldType } from '../../accounts/changes/field-types.js'
import type { ReplyForm } from './reply-forms.js'

/** A request that has passed every check of its route. */
export interface AdminRequest extends ControlExchange {
  /** The decoded values of the path's `{…}`, by name. */
  readonly path: Readonly<Record<string, string>>
  /** The read values of the query; a repeatable parameter is a list. */
  readonly query: JsonObject
  /** Empty without a body. */
  readonly body: JsonObject
  readonly token: AdminToken
  readonly conditions: Conditions
  /** The client's address. */
  readonly address: string
  /** Whether the reply is CSV (`format=csv` or `Accept: text/csv`). */
  readonly isCsv: boolean
}

/** A reply with a JSON object. */
export interface JsonReply {
  readonly status: number
  readonly json: WrittenObject
  readonly etag?: string
  /** The path of a new object, below `/admin/v1`. */
  readonly location?: string
}

/** A reply with CSV, sent as the batches arrive. */
export interface CsvReply {
  readonly csv: AsyncIterable<string>
  /** Without `.csv`. */
  readonly fileName: string
  /** The query of the next page. */
  readonly next?: string | null
}

/** The result of a handler; `none` is 204. */
export type AdminReply = JsonReply | CsvReply | 'none'

/** A parameter of the query. */
export interface Parameter {
  readonly type: FieldType
  readonly means: string
  readonly isRepeatable?: true
  /** The text is a number. */
  readonly isNumber?: true
}

/** The parameters of the query by name. */
export type Parameters = Readonly<Record<string, Parameter>>

/** A body: the fields that the OpenAPI document describes. The handler reads them. */
export interface BodyOf {
  /** The name of the schema. */
  readonly name: string
  readonly fields: Fields
  readonly isPatch?: true
  /** The request may have no body. */
  readonly isOptional?: true
  /** Default: 1 MiB. */
  readonly maxBytes?: number
}

/** A route of the table. */
export interface AdminRoute extends ControlRoute {
  /** One of the scopes is needed; null: no token is. */
  readonly scopes: readonly Scope[] | null
  /** All of the scopes are needed. */
  readonly needsAll?: true
  readonly summary: string
  readonly query?: Parameters
  readonly body?: BodyOf
  /** The statuses of success, and the form of the reply; null: no body. */
  readonly replies: Readonly<Record<number, ReplyForm | null>>
  /** Whether the reply may be CSV. */
  readonly hasCsv?: true
  handle(request: AdminRequest): Promise<AdminReply>
}
