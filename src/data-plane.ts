/**
 * One process of the data plane: store, authentication, gateway and listener, put together.
 * Knows no command line, no cluster and no file; it is given snapshots.
 */
import { Authenticator } from './auth/authenticate.js'
import type { Snapshot } from './config/config.js'
import { rowOf } from './errors.js'
import { Gateway } from './gateway/gateway.js'
import type { Logger } from './log.js'
import type { Metrics } from './metrics/hops.js'
import { observeStore } from './metrics/store.js'
import type { Readiness } from './ops.js'
import { Escrow } from './reasoning/escrow.js'
import { newSealSecret } from './reasoning/seal.js'
import { openServer } from './server.js'
import { openStore } from './store/open.js'

/** One running data plane. */
export interface DataPlane {
  /** The port that was taken, where 0 was asked for. */
  readonly port: number
  /** Puts a newer generation in force; running requests keep theirs. */
  adopt(snapshot: Snapshot): void
  ready(): Readiness
  /**
   * Takes no more connections, lets requests finish within `drain_ms`, ends the rest with an error
   * that says so, and lets go of everything.
   */
  drain(): Promise<void>
}

/** How often the store has to prove that it works. */
const PROBE_MS = 2000
/** How long new connections are still taken after SIGTERM, while load balancers find out. */
const LAME_DUCK_MS = 1000

/** Opens the listener. Rejects with `GatewayError` where the store or the port cannot be had. */
export async function openDataPlane(
  snapshot: Snapshot,
  log: Logger,
  metrics: Metrics,
): Promise<DataPlane> {
  let current = snapshot
  const store = observeStore(await openStore(snapshot.config.store), metrics)
  const authenticator = new Authenticator({
    store,
    settings: () => current.config.auth,
    now: () => performance.now(),
    onResult: (result) => metrics.auth(result),
  })
  const escrow = new Escrow({
    shelf: store.shelf,
    settings: () => current.config.escrow,
    secret: snapshot.config.escrow.key ?? newSealSecret(),
    now: () => Date.now(),
    onResult: (result) => metrics.escrow(result),
  })
  const gateway = new Gateway({ authenticator, escrow, metrics, log }, snapshot)
  const { host, port } = snapshot.config.server
  const server = await openServer({
    host,
    port,
    handler: (req, res) => gateway.handle(req, res),
    onRefused: (kind) => metrics.unrouted(rowOf(kind).status, kind),
  })
  let storeState = 'ok'
  const probe = setInterval(() => {
    store.probe().then(
      () => (storeState = 'ok'),
      () => (storeState = 'unavailable'),
    )
  }, PROBE_MS).unref()
  return {
    port: server.port,
    adopt(next) {
      current = next
      gateway.adopt(next)
    },
    ready: () => {
      const checks = {
        config: 'ok',
        store: storeState,
        drain: server.draining ? 'draining' : 'ok',
      }
      return { ready: storeState === 'ok' && !server.draining, checks }
    },
    async drain() {
      const { drainMs } = current.config.server
      const lameDuckMs = Math.min(LAME_DUCK_MS, drainMs / 10)
      await server.drain(drainMs - lameDuckMs, { lameDuckMs, onDeadline: () => gateway.endAll() })
      clearInterval(probe)
      await gateway.close()
      authenticator.close()
      escrow.close()
      await store.close()
    },
  }
}
