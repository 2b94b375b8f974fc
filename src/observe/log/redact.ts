/**
 * What may be said in the log: texts without what looks like a key, and errors without what a client or an
 * upstream put into them. Writes nothing.
 *
 * `wire/redact-upstream-text.ts` makes an upstream's message fit for a client and hides more; this is for every line.
 */
import { GatewayError, rowOf } from '../../errors.js'
import { hideSecrets } from '../../secrets/redact-secrets.js'

/** Clients choose some of the strings (model, path, their id); none of them fills the log. */
const MAX_STRING = 256

/** Replaces secrets with `***`. */
export function scrub(text: string): string {
  return hideSecrets(text, '***')
}

/** At most `MAX_STRING` units; a cut ends in `…`. */
export function clip(value: string): string {
  return value.length <= MAX_STRING ? value : `${value.slice(0, MAX_STRING)}…`
}

/** An error as the log shows it. */
export interface Described {
  kind: string
  message: string
  code?: string
  cause?: Described
  stack?: string[]
}

/** How deep a chain of causes is followed. */
const MAX_CAUSES = 3

/** What an error is, without what a client or an upstream may have put into it. */
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
 * Messages about a client's or an upstream's words may quote them, so only the gateway's own are
 * told. V8 quotes the text that JSON.parse failed on, and Node the argument it did not like.
 */
function messageOf(error: Error): string {
  if (error instanceof GatewayError && rowOf(error.kind).source !== 'gateway') {
    return `see the kind '${error.kind}'`
  }
  const message =
    error instanceof SyntaxError ? error.message.replace(/"[^]*"/, '"…"') : error.message
  return clip(scrub(message.replace(/Received [^]*/, 'Received …')))
}
