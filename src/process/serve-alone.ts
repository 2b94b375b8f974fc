/**
 * The gateway with one worker: configuration, ops port and data plane in one process, without `cluster`.
 * Nothing restarts it after a crash: an uncaught exception ends it with status 1, and its supervisor starts
 * it again.
 */
import { setFlagsFromString } from 'node:v8'
import type { ConfigSource } from '../config/generations/config-source.js'
import { gatewayStatusOf, type GatewayStatus } from '../control/gateway-status.js'
import { newSealSecret } from '../store/seal.js'
import { openDataPlane, type DataPlane } from './data-plane.js'
import type { Notify } from '../observe/notification.js'
import type { Logger } from '../observe/log.js'
import type { Metrics } from '../observe/metrics/metrics.js'
import { localConfigControl } from './ops/answer-control-requests.js'
import { hideSecrets } from '../hide-secrets.js'
import { settleGlobals, settleStrings, printSetUpLink, withReason } from './serve-worker.js'
import { onSignals } from './signals.js'

/** The parts that `serve` has opened. */
export interface AloneParts {
  readonly source: ConfigSource
  readonly log: Logger
  readonly metrics: Metrics
  readonly refused: () => GatewayStatus['refused']
  readonly notify: Notify
  /** V8 options; those that size the heap have no effect on a running process. */
  readonly flags: readonly string[]
  /** Runs when the drain begins. */
  readonly onDrain: () => void
  /** Runs after the drain, before the process ends. */
  readonly closed: () => Promise<void>
}

/**
 * The data plane of this process. Rejects with the reason when it cannot start; the caller ends the process.
 */
export async function serveAlone(parts: AloneParts): Promise<DataPlane> {
  const { source, log, metrics, refused, notify, onDrain, closed } = parts
  for (const flag of parts.flags) setFlagsFromString(flag)
  settleStrings()
  settleGlobals()
  const plane: DataPlane = await openDataPlane(source.current(), {
    log,
    metrics,
    setUpSecret: newSealSecret(),
    onSetUp: printSetUpLink,
    gatewayStatus: async () => gatewayStatusOf(await metrics.text(), refused(), plane.canaries()),
    configControl: localConfigControl(source, log),
    notify,
  })
    .catch(withReason)
    .catch((error: unknown) => {
      log.error('worker cannot start', error)
      const reason = error instanceof Error ? hideSecrets(error.message, '***') : 'unknown'
      throw new Error(`the gateway cannot start: ${reason}`)
    })
  onSignals({
    log,
    drain: async () => {
      onDrain()
      await plane.drain()
      await closed()
    },
    restart: () => {
      const reason =
        'one process (server.workers: 1) cannot hand its port to another process: restart the service'
      log.warn('rolling restart refused', { signal: 'SIGUSR2', reason })
    },
  })
  // Loading its modules takes 0.1 s, so the gateway becomes ready first.
  setImmediate(() => void plane.openDashboard())
  return plane
}
