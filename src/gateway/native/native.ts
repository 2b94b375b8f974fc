/**
 * Native access: requests to an upstream's own endpoints, which pass through untranslated.
 * Called with the request authenticated.
 */
import { GatewayError } from '../../errors.js'
import type { Limiter } from '../../limits/limiter.js'
import type { Metrics } from '../../metrics/hops.js'
import type { Deadlines } from '../deadlines.js'
import type { Exchange } from '../exchange.js'
import { NativeAttempt } from './attempt.js'
import { admitNative, openNative } from './open.js'
import { WebSocketAttempt } from './websocket.js'

/** What native requests are served with. */
export interface NativeServices {
  readonly deadlines: Deadlines
  readonly limiter: Limiter
  readonly metrics: Metrics
  readonly books: { readonly isRefusing: boolean }
}

/** Serves one request to its end. Rejects with `GatewayError`. */
export async function serveNative(x: Exchange, services: NativeServices): Promise<void> {
  const call = openNative(x)
  const { agent } = call.target.upstream
  if (agent === null || 'problem' in agent) {
    throw new GatewayError('upstream_unreachable', agent?.problem ?? 'The upstream has no agent.')
  }
  if (services.books.isRefusing) {
    const message = 'The gateway cannot record what requests cost at the moment; try again.'
    throw new GatewayError('store_unavailable', message, { retryAfterSeconds: 5 })
  }
  await admitNative(x, call.target, services)
  const { deadlines } = services
  if (x.upgrade === null) await new NativeAttempt(x, call, deadlines).run(agent)
  else await new WebSocketAttempt(x, call, x.upgrade, deadlines).run(agent)
}
