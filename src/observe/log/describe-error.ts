/**
 * Describes errors for the log, without secrets and without content from clients or upstreams.
 * `wire/redact-upstream-text.ts` is stricter and makes an upstream's message safe for clients.
 */
import { GatewayError, rowOf } from '../../errors.js'
import { hideSecrets } from '../../secrets/redact-secrets.js'
import { clip } from './log-fields.js'

/** An error as it appears in the log. */
export interface ErrorDescription {
  kind: string
  message: string
  code?: string
  cause?: ErrorDescription
  stack?: string[]
}

/** Maximum depth of logged causes. */
const MAX_CAUSES = 3

/** Describes an error without content from a client or an upstream. */
export function describeError(error: unknown, withStack: boolean, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) return { kind: typeof error, message: 'not an Error' }
  const described: ErrorDescription = { kind: kindOf(error), message: messageOf(error) }
  if ('code' in error && typeof error.code === 'string') described.code = clip(error.code)
  if (error.cause !== undefined && depth < MAX_CAUSES) {
    described.cause = describeError(error.cause, withStack, depth + 1)
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
 * Messages about content of a client or upstream may quote it, so only the gateway's own messages are logged.
 * V8 quotes the text that JSON.parse failed on, and Node the invalid argument.
 */
function messageOf(error: Error): string {
  if (error instanceof GatewayError && rowOf(error.kind).source !== 'gateway') {
    return `see the kind '${error.kind}'`
  }
  const message =
    error instanceof SyntaxError ? error.message.replace(/"[^]*"/, '"…"') : error.message
  return clip(hideSecrets(message.replace(/Received [^]*/, 'Received …'), '***'))
}
