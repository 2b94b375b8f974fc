/**
 * Collects what only Anthropic upstreams take of a request. The same path is kept once, in the order of the request.
 */
import type { NativeField } from '../../../../chat/request.js'

/** The fields of one request. */
export class NativeFields {
  private readonly fields = new Map<string, NativeField>()

  /** Other upstreams go without it, and the client is told. */
  lost(path: string): void {
    if (!this.fields.has(path)) this.fields.set(path, { path })
  }

  /** Other upstreams cannot serve the request. `why` completes the message behind the path. */
  refused(path: string, why: string): void {
    this.fields.set(path, { path, refusal: `${path}: ${why}` })
  }

  /** All of them; undefined if there are none. */
  get all(): NativeField[] | undefined {
    return this.fields.size === 0 ? undefined : [...this.fields.values()]
  }
}
