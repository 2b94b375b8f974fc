/** What sending and charging a request need of it, and its cancellation. */
import type { GatewayError } from '../errors.js'
import type { CalledTools } from './dimensions/called-tools.js'
import type { Generation } from './generation.js'
import type { RequestTrace } from './report/forward-client-trace.js'

/** The context of sending and recording a request, whether it has a client or not. */
export interface RequestContext {
  readonly id: string
  readonly generation: Generation
  readonly cancellation: Cancellation
  /** Monotonic, in ms. */
  readonly startedMs: number
  /** The trace of the request; null if it has none. */
  readonly trace: RequestTrace | null
  /** A vendor runs it in a batch, at the price of one. */
  readonly isInBatch: boolean
  /** The batch of which it is a line; null if it is none. */
  readonly batch: string | null
  /** The tools that the model calls, of a request of a run; null: nothing needs them. */
  readonly calledTools: CalledTools | null
}

/**
 * Cancels an exchange at most once, for the first reason: the client left, a deadline passed, or the server
 * shuts down. The semantics are those of `AbortController`, with one listener at a time, because one phase at
 * a time owns the exchange; it costs 0.1 µs per request instead of 5.5 µs.
 */
export class Cancellation {
  /** The reason of the cancellation; null before it. */
  reason: GatewayError | null = null
  private listener: ((reason: GatewayError) => void) | null = null
  private aborter: AbortController | null = null

  /** Aborted by the cancellation. Made at its first use: most exchanges need none. */
  get signal(): AbortSignal {
    this.aborter ??= new AbortController()
    if (this.reason !== null) this.aborter.abort()
    return this.aborter.signal
  }

  /** Later reasons are ignored. */
  cancel(reason: GatewayError): void {
    if (this.reason !== null) return
    this.reason = reason
    this.listener?.(reason)
    this.aborter?.abort()
  }

  /** Replaces the listener; calls it at once if the exchange is cancelled already. */
  onCancel(listener: ((reason: GatewayError) => void) | null): void {
    this.listener = listener
    if (this.reason !== null) listener?.(this.reason)
  }

  /** Throws the reason if the exchange is cancelled. */
  check(): void {
    if (this.reason !== null) throw this.reason
  }
}
