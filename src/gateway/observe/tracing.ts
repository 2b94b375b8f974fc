/** What makes spans of requests; `traces.ts` is loaded only if traces are exported. */
import type { Exchange } from '../exchange.js'
import type { End } from './log-line.js'
import type { Results } from './results.js'
import type { RequestTrace } from './trace-context.js'

/** Makes traces of requests. */
export interface Tracing {
  /** A request has arrived. */
  begin(x: Exchange): RequestTrace
  /** It is over. */
  end(x: Exchange, results: Results, end: End): void
  /** Exports what waits; resolves within 3 seconds. */
  close(): Promise<void>
}
