/**
 * Makes texts and errors safe for the log: without texts that look like keys, and without content from clients or
 * upstreams. `wire/redact-upstream-text.ts` is stricter and makes an upstream's message safe for clients.
 */
import { GatewayError, rowOf } from '../../errors.js'
import { hideSecrets } from '../../secrets/redact-secrets.js'

/** Clients choose some strings (model, path, request id); the limit keeps lines short. */
const MAX_STRING = 256

/** Replaces secrets with `***`. */
export function scrub(text: string): string {
  return hideSecrets(text, '***')
}

/** Cuts to `MAX_STRING` UTF-16 units; a cut text ends in `…`. */
export function clip(value: string): string {
  return value.length <= MAX_STRING ? value : `${value.slice(0, MAX_STRING)}…`
}

/** An error as it appears in the log. */
export interface Described {
  kind: string
  message: string
  code?: string
  cause?: Described
  stack?: string[]
}

/** Maximum depth of logged causes. */
const MAX_CAUSES = 3

/** Describes an error without content from a client or an upstream. */
export function describe(error: unknown, withStack: boolean, depth = 0): Described {
  if (!(error instanceof Error)) return { kind: typeof error, message: 'not an Error' }
  const described: Described = { kind: kindOf(error), message: messageOf(error) }
  if ('code' in error && typeof error.code === 'string') described.code = clip(error.code)
  if (error.cause !== undefined && depth < MAX_CAUSES) {
    described.cause = describe(error.cause, withStack, depth + 1)
  }
  if (withStack && error.stack !== undefined) {
    const frames = error.stack.split('\n').filter((line) => /^\s+at /.test(line))
    described.stack = frames.map((line) => line.trim())
  }
  return described
}

function kindOf(error: Error): string {
  return error instanceof GatewayError ? error.kind : clip(error.name)
}

/**
 * Messages about content of a client or upstream may quote it, so only the gateway's own messages are logged. V8 quotes
 * the text that JSON.parse failed on, and Node the invalid argument.
 */
function messageOf(error: Error): string {
  if (error instanceof GatewayError && rowOf(error.kind).source !== 'gateway') {
    return `see the kind '${error.kind}'`
  }
  const message =
    error instanceof SyntaxError ? error.message.replace(/"[^]*"/, '"…"') : error.message
  return clip(scrub(message.replace(/Received [^]*/, 'Received …')))
}
