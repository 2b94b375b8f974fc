/**
 * Limits the growth of JSON Schemas that are rewritten for an upstream. Inlined references and merged
 * branches make a schema larger than the client's text: a few hundred kilobytes could become gigabytes.
 */
import { GatewayError } from '../../errors.js'
import type { JsonValue } from '../json.js'

/**
 * Limit for the schemas, properties and list items of all rewritten schemas of one request: about 40 ms of
 * work. A thousand tools of twenty properties each are within it.
 */
const MAX_PARTS = 25_000

/** Counts the parts of the schemas of one request. */
export class SchemaBudget {
  /** The field whose schema is being rewritten, for errors. */
  path: string
  private parts = 0

  constructor(path = 'the schema') {
    this.path = path
  }

  /** Throws `GatewayError(malformed_request)` naming the field if the limit is exceeded. */
  spend(parts: number): void {
    this.parts += parts
    if (this.parts <= MAX_PARTS) return
    throw new GatewayError(
      'malformed_request',
      `${this.path}: the request's JSON Schemas have more than ${MAX_PARTS} parts after their references and ` +
        'allOf branches are expanded for this upstream: send smaller schemas or fewer tools',
      { param: this.path },
    )
  }

  /** Counts the items of a list; any other value counts as 0. */
  spendList(list: JsonValue | undefined): void {
    if (Array.isArray(list)) this.spend(list.length)
  }
}
