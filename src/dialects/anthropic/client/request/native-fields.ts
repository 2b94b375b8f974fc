/**
 * Collects the fields of a request that only Anthropic upstreams accept. Each path is kept once, in request
 * order.
 */
import type { NativeField } from '../../../../chat/request.js'

/** The native fields of one request. */
export class NativeFields {
  private readonly fields = new Map<string, NativeField>()

  /** Other upstreams do not receive the field, and it is reported as lost. */
  lost(path: string): void {
    if (!this.fields.has(path)) this.fields.set(path, { path })
  }

  /** Other upstreams cannot serve the request. The error message is the path followed by `why`. */
  refused(path: string, why: string): void {
    this.fields.set(path, { path, refusal: `${path}: ${why}` })
  }

  /** All fields; undefined if there are none. */
  get all(): NativeField[] | undefined {
    return this.fields.size === 0 ? undefined : [...this.fields.values()]
  }
}
