/** Lets the requests of a data plane end before its process does. */
import type { Gateway } from '../gateway/gateway.js'
import type { GatewayServer } from '../http/server-options.js'

/**
 * The share of `drain_ms`, and its maximum, in which clients and load balancers notice that the gateway is
 * not ready: until its end connections are accepted and idle ones stay open.
 */
const LAME_DUCK = { share: 1 / 10, maxMs: 5000 }
/** For a worker that is replaced: longer, since only idle connections delay its end. */
const LAME_DUCK_REPLACED = { share: 1 / 3, maxMs: 10_000 }

/** How the requests of a listener end. */
export interface DrainRequestsOptions {
  /** The time for all requests, in ms; the lame-duck phase is a part of it. */
  readonly drainMs: number
  /** Another process listens on the same address. */
  readonly isReplaced: boolean
}

/**
 * Lets the requests of the listener end: first the lame-duck phase, then the rest of `drainMs`, after which
 * the gateway ends the open ones with an error. Never rejects.
 */
export async function drainRequests(
  server: GatewayServer,
  gateway: Gateway,
  { drainMs, isReplaced }: DrainRequestsOptions,
): Promise<void> {
  const { share, maxMs } = isReplaced ? LAME_DUCK_REPLACED : LAME_DUCK
  const lameDuckMs = Math.min(maxMs, drainMs * share)
  const onDeadline = (): void => gateway.endAll()
  await server.drain(drainMs - lameDuckMs, { lameDuckMs, isReplaced, onDeadline })
}
