/**
 * Collects the fields of a request that only Anthropic upstreams accept. Each path is kept once, in request
 * order.
 */
import type { HostedTool } from '../../chat/hosted-tools.js'
import type { NativeField } from '../../chat/request.js'

/** The native fields of one request. */
export class NativeFields {
  /** Tools and options that Anthropic runs or bills by itself. */
  readonly hosted: HostedTool[] = []
  /** Paths of input that only Anthropic has. */
  readonly unseen: string[] = []
  private readonly fields = new Map<string, NativeField>()

  /** Other upstreams do not receive the field, and it is reported as lost. */
  lost(path: string): void {
    if (!this.fields.has(path)) this.fields.set(path, { path })
  }

  /** Other upstreams cannot serve the request. The error message is the path followed by `why`. */
  refused(path: string, why: string): void {
    this.fields.set(path, { path, refusal: `${path}: ${why}` })
  }

  /** Adds a field that has its own refusal. */
  add(field: NativeField): void {
    this.fields.set(field.path, field)
  }

  host(tool: HostedTool | null): void {
    if (tool !== null) this.hosted.push(tool)
  }

  /** All fields; undefined if there are none. */
  get all(): NativeField[] | undefined {
    return this.fields.size === 0 ? undefined : [...this.fields.values()]
  }
}
