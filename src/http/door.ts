/**
 * What a connection needs of the listener that took it, and what it tells it.
 */
import type { Request } from './request.js'
import type { Response } from './response.js'

/** A connection, as its listener knows it. */
export interface Accepted {
  /** True where nothing is awaited of the client, and nothing has come. */
  readonly isIdle: boolean
  /** Gives up what has taken too long. Called at every tick. */
  sweep(): void
  /** Ends the connection, now or once what is written has left. */
  cut(isSoon: boolean): void
}

/** What is wrong with what a client sends, or with the time that it takes. */
export type Breach =
  'malformed' | 'head_too_large' | 'extensions_too_large' | 'trailers_too_large' | 'timeout'

/** What all connections of a listener share. */
export interface Door {
  /** How often the listener's sweep has passed: the clock of the time-outs. */
  readonly ticks: number
  /** Sweeps until an unfinished head, an unfinished request and an idle connection are given up. */
  readonly headTicks: number
  readonly requestTicks: number
  readonly idleTicks: number
  /** No connection is kept after its answer. */
  readonly draining: boolean
  readonly keepAliveLines: string
  /** Takes the request, or answers why not. */
  requested(req: Request, res: Response): void
  /** Answers what is no request, or has a body that is none; `req` is null where nobody began on it. */
  breached(breach: Breach, req: Request | null, res: Response): void
  closed(connection: Accepted): void
}
