/**
 * The trace that a request belongs to (W3C Trace Context). Without tracing the client's headers are forwarded
 * to the upstream unchanged; with tracing `request-spans.ts` creates spans. Imports no OpenTelemetry package.
 */
import { headerOf, type HttpRequest } from '../../http/message.js'

/** The properties of an attempt that the trace uses. */
export interface TracedAttempt {
  /** Monotonic, in ms; null before it is sent. */
  readonly beganAtMs: number | null
}

export interface RequestTrace {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** The same if the gateway exports the trace, else null. */
  readonly exportedId: string | null
  /**
   * Name, value, … of the trace headers for an attempt that begins now, or for another request to an upstream
   * (null). Call once for each attempt.
   */
  headers(attempt: TracedAttempt | null): readonly string[]
}

/** Version 00, and later versions, which may have more fields. */
const TRACEPARENT =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]{1,128})?$/
/** Printable ASCII; the specification requires the propagation of at least 512 characters. */
const TRACESTATE = /^[ -~]{1,512}$/

/** The trace in the request's own headers; null if it has none. */
export function clientTrace(req: HttpRequest): RequestTrace | null {
  const traceparent = headerOf(req, 'traceparent')
  if (traceparent === undefined) return null
  const traceId = TRACEPARENT.exec(traceparent)?.[1]
  if (traceId === undefined) return null
  const headers = ['traceparent', traceparent]
  const tracestate = headerOf(req, 'tracestate')
  if (tracestate !== undefined && TRACESTATE.test(tracestate)) headers.push('tracestate', tracestate)
  return { traceId, exportedId: null, headers: () => headers }
}
