/**
 * The interface for creating spans of requests; its implementation, `request-spans.ts`, is loaded only if
 * traces are exported.
 */
import type { Exchange } from '../client-exchange.js'
import type { End } from './log-line.js'
import type { Results } from './phase-results.js'
import type { RequestTrace } from './forward-client-trace.js'

/** Traces requests. */
export interface Tracing {
  /** Starts the trace of a request that has arrived. */
  begin(x: Exchange): RequestTrace
  /** Ends the trace of a request. */
  end(x: Exchange, results: Results, end: End): void
  /** Exports the remaining spans; resolves within 3 seconds. */
  close(): Promise<void>
}
