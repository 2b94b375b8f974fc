/**
 * How much a request's JSON Schemas may grow to when an upstream needs them rewritten.
 * References that are copied out, and branches that are joined, make a schema larger than the client's text:
 * a few hundred kilobytes could become gigabytes. Knows no dialect.
 */
import { GatewayError } from '../../errors.js'
import type { JsonValue } from '../json.js'

/**
 * Schemas, properties and list items of all rewritten schemas of one request. A thousand tools of twenty
 * properties each stay below it; about 40 ms of work.
 */
const MAX_PARTS = 25_000

/** Counts the parts of the schemas of one request. */
export class SchemaBudget {
  /** The field whose schema is being rewritten, for the error. */
  path: string
  private parts = 0

  constructor(path = 'the schema') {
    this.path = path
  }

  /** Throws `GatewayError(malformed_request)` naming the field at the first part over the limit. */
  spend(parts: number): void {
    this.parts += parts
    if (this.parts <= MAX_PARTS) return
    throw new GatewayError(
      'malformed_request',
      `${this.path}: the request's JSON Schemas have more than ${MAX_PARTS} parts once their references and ` +
        'allOf branches are written out for this upstream; send smaller schemas or fewer tools',
      { param: this.path },
    )
  }

  /** Counts the items of a list; anything else counts nothing. */
  spendList(list: JsonValue | undefined): void {
    if (Array.isArray(list)) this.spend(list.length)
  }
}
