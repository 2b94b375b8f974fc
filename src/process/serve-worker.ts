/**
 * A worker of the running gateway: one data plane, built from what the primary has read and checked.
 * Knows no file and no YAML: not loading them halves the time from a worker's start to its readiness.
 */
import { createLogger } from '../observe/log/log.js'
import type { ModelFacts } from '../chat/model.js'
import { runWorker } from './cluster/worker.js'
import type { Notice } from './notifier.js'
import { isCanaryOrder } from '../gateway/canaries/monitor.js'
import { createCatalogue } from '../config/catalogue.js'
import { remoteConfigControl, type ControlRequest } from '../dashboard/server/config-control.js'
import { isGatewayStatus } from '../dashboard/server/gateway-status.js'
import type { Config, Snapshot } from '../config/config.js'
import { createSnapshot } from '../config/snapshot.js'
import { openDataPlane, type DataPlane } from './data-plane.js'
import { GatewayError } from '../errors.js'
import { Metrics } from '../observe/metrics/metrics.js'

/** A snapshot as it travels between processes, as JSON. Holds secrets; never logged. */
export interface Generation {
  readonly generation: number
  readonly fileHash: string
  readonly loadedAtMs: number
  readonly config: Config
  readonly models: readonly ModelFacts[]
  readonly changes: Snapshot['changes']
  readonly waitingForRestart: Snapshot['waitingForRestart']
  /** Of the link that makes the first administrator, where there is none. */
  readonly setUpSecret: string
  /** What the fleet knows the gateway by. */
  readonly gatewayId: string
}

/** For the primary to load, try and publish a generation. */
const ROLLBACK_MS = 10_000

/** Takes orders from the primary until it ends this process. */
export async function serveAsWorker(): Promise<void> {
  settleStrings()
  settleGlobals()
  const metrics = new Metrics()
  let plane: DataPlane | null = null
  const onLost = (lines: number): void => metrics.logLinesLost(lines)
  let log = createLogger({ level: 'info', onLost })
  await runWorker<Generation>({
    log,
    isPayload: isGeneration,
    start: async (payload, ask) => {
      const snapshot = snapshotOf(payload)
      log = createLogger({ level: snapshot.config.log.level, onLost })
      const opened = await openDataPlane(snapshot, log, metrics, {
        setUpSecret: payload.setUpSecret,
        gatewayId: payload.gatewayId,
        onSetUp: printSetUpLink,
        gatewayStatus: async () => {
          const answer = await ask({ type: 'gatewayStatus' } satisfies ControlRequest)
          return isGatewayStatus(answer) ? answer : null
        },
        configControl: remoteConfigControl((request) => ask(request, ROLLBACK_MS)),
        reportCanaries: (report) => void ask(report),
        notify: (notice) => void ask({ notice } satisfies Notice),
      }).catch(withReason)
      plane = opened
      // Once it is known to be ready. A rejection ends the process: nobody has been served by it yet.
      setImmediate(() => void opened.openDashboard())
    },
    onOrder: (order) => {
      if (isCanaryOrder(order)) plane?.abortCanaries(order)
    },
    apply: (payload) => plane?.adopt(snapshotOf(payload)),
    tryOut: async (payload) => (await plane?.tryOut(snapshotOf(payload))) ?? null,
    ready: () => plane?.ready() ?? { ready: false, checks: { listener: 'not open' } },
    collect: () => metrics.collect(),
    recent: () => plane?.recentHeads() ?? [],
    drain: async (isReplaced) => {
      await plane?.drain({ isReplaced })
      await log.flush()
    },
  })
}

/** Looks at an object so often that V8 keeps what it found out about it. */
const ENOUGH_LOOKS = 200

/**
 * A class that extends `String`, which a dependency may have (`ioredis` has one), makes V8 take all strings'
 * methods for unfinished: each `charCodeAt` is looked up by its name again, four times as slow. What ends
 * that is a look at a string that is an object, which is otherwise never taken: 9 % of a whole reply.
 */
export function settleStrings(): void {
  const text = Object('') as string
  for (let looks = 0; looks < ENOUGH_LOOKS; looks += 1) text.charCodeAt(0)
}

/** The globals that Node gives by a getter, and requests use again and again. */
const GIVEN = ['performance', 'Buffer', 'process'] as const

/**
 * Makes plain values of them: V8 calls such a getter at every use, also in code that is compiled, and takes
 * a value for a constant.
 */
export function settleGlobals(): void {
  for (const name of GIVEN) {
    Object.defineProperty(globalThis, name, { value: globalThis[name], writable: true })
  }
}

function isGeneration(value: unknown): value is Generation {
  return typeof value === 'object' && value !== null && 'config' in value && 'models' in value
}

function snapshotOf(sent: Generation): Snapshot {
  const { config, fileHash, generation, loadedAtMs } = sent
  const catalogue = createCatalogue(sent.models)
  return createSnapshot({ config, catalogue, fileHash }, generation, loadedAtMs, sent)
}

/** To the terminal and not to the log: whoever has the link is the administrator. */
export function printSetUpLink(url: string): void {
  process.stderr.write(
    `\nNo administrator exists yet. Open this link within a day to make one (it works once):\n\n  ${url}\n\n`,
  )
}

/** A client must not see why the store cannot be opened; the operator who starts it must. */
export function withReason(error: unknown): never {
  if (error instanceof GatewayError && error.kind === 'store_unavailable') {
    const { cause } = error
    const why = cause instanceof Error ? `: ${cause.message}` : ''
    throw new GatewayError(error.kind, `${error.message}${why}`, { cause })
  }
  throw error
}
