/**
 * A worker of the running gateway: one data plane, built from the configuration that the primary has loaded.
 * Workers load no YAML parser and no schema, which halves the time until they are ready.
 */
import { createLogger } from '../observe/log.js'
import type { ModelFacts } from '../formats/chat/model-facts.js'
import { runWorker } from './cluster/run-worker.js'
import type { Notice } from './open-webhooks.js'
import { isCanaryOrder } from '../gateway/canary/canary-monitor.js'
import { createCatalogue } from '../config/catalogue.js'
import { remoteConfigControl, type ControlRequest } from '../control/config-control.js'
import { isGatewayStatus } from '../control/gateway-status.js'
import type { Config, Snapshot } from '../config/config.js'
import { createSnapshot } from '../config/create-snapshot.js'
import { openDataPlane, type DataPlane } from './data-plane.js'
import { GatewayError } from '../errors.js'
import type { LabelMessage } from '../observe/metrics/key-label-metrics.js'
import { Metrics } from '../observe/metrics/metrics.js'

/** A snapshot as JSON, for messages between processes. Contains secrets; never logged. */
export interface Generation {
  readonly generation: number
  readonly fileHash: string
  readonly loadedAtMs: number
  readonly config: Config
  readonly models: readonly ModelFacts[]
  readonly changes: Snapshot['changes']
  readonly toRecord: Snapshot['toRecord']
  readonly waitingForRestart: Snapshot['waitingForRestart']
  /** The secret of the link that creates the first administrator. */
  readonly setUpSecret: string
  /** The id of this gateway in the fleet. */
  readonly gatewayId: string
}

/** Time for the primary to load, test and publish a generation. */
const ROLLBACK_MS = 10_000
/** Time for a process to compare two configurations. */
const PLAN_MS = 30_000

/** Runs this process as a worker; the primary ends it. */
export async function serveAsWorker(): Promise<void> {
  settleStrings()
  settleGlobals()
  const metrics = new Metrics()
  let plane: DataPlane | null = null
  const onLost = (lines: number): void => metrics.logLinesLost(lines)
  const log = createLogger({ level: 'info', onLost })
  await runWorker<Generation>({
    log,
    isPayload: isGeneration,
    start: async (payload, ask) => {
      const snapshot = snapshotOf(payload)
      log.changeTo(snapshot.config.log)
      metrics.labels.queryWith((firstValue) => ask({ firstValue } satisfies LabelMessage))
      const opened = await openDataPlane(snapshot, {
        log,
        metrics,
        setUpSecret: payload.setUpSecret,
        gatewayId: payload.gatewayId,
        onSetUp: printSetUpLink,
        gatewayStatus: async () => {
          const answer = await ask({ type: 'gatewayStatus' } satisfies ControlRequest)
          return isGatewayStatus(answer) ? answer : null
        },
        configControl: remoteConfigControl((request) =>
          ask(request, request.type === 'plan' ? PLAN_MS : ROLLBACK_MS),
        ),
        reportCanaries: (report) => void ask(report),
        notify: (notice) => void ask({ notice } satisfies Notice),
      }).catch(withReason)
      plane = opened
      // After the worker is ready. A rejection ends the process before it has served a request.
      setImmediate(() => void opened.openDashboard())
    },
    onOrder: (order) => {
      if (isCanaryOrder(order)) plane?.abortCanaries(order)
    },
    apply: (payload) => plane?.adopt(snapshotOf(payload)),
    tryOut: async (payload) => (await plane?.tryOut(snapshotOf(payload))) ?? null,
    ready: () => plane?.ready() ?? { ready: false, degraded: [], checks: { listener: 'not open' } },
    collect: () => metrics.collect(),
    recent: () => plane?.recentHeads() ?? [],
    drain: async (isReplaced) => {
      await plane?.drain({ isReplaced })
      await log.flush()
    },
  })
}

/** Number of reads after which V8 optimises them. */
const WARM_UP_READS = 200

/**
 * A class that extends `String` (`ioredis` has one) makes V8 treat the methods of all strings as unstable:
 * each `charCodeAt` is looked up by name, four times slower. Reading a method of a string object, as done
 * here, ends that state. It saves 9 % of a whole reply.
 */
export function settleStrings(): void {
  const text = Object('') as string
  for (let reads = 0; reads < WARM_UP_READS; reads += 1) text.charCodeAt(0)
}

/** Globals that Node defines with a getter and requests use often. */
const GETTER_GLOBALS = ['performance', 'Buffer', 'process'] as const

/**
 * Redefines these globals as plain values: V8 calls a getter at every use, even in compiled code, but treats
 * a value as a constant.
 */
export function settleGlobals(): void {
  for (const name of GETTER_GLOBALS) {
    Object.defineProperty(globalThis, name, { value: globalThis[name], writable: true })
  }
}

function isGeneration(value: unknown): value is Generation {
  return typeof value === 'object' && value !== null && 'config' in value && 'models' in value
}

function snapshotOf(sent: Generation): Snapshot {
  const { config, fileHash } = sent
  const catalogue = createCatalogue(sent.models)
  return createSnapshot({ config, catalogue, fileHash }, sent)
}

/** Prints to the terminal and not to the log, because the link makes its user an administrator. */
export function printSetUpLink(url: string): void {
  process.stderr.write(
    `\nNo administrator exists yet. Open this link within 24 hours to create one (it works once):\n\n  ${url}\n\n`,
  )
}

/** Adds the reason to the error: clients must not see it, but the operator who starts the gateway must. */
export function withReason(error: unknown): never {
  if (error instanceof GatewayError && error.kind === 'store_unavailable') {
    const { cause } = error
    if (!(cause instanceof Error)) throw error
    const [summary = ''] = error.message.split(/[.;]/)
    throw new GatewayError(error.kind, `${summary}: ${cause.message}`, { cause })
  }
  throw error
}
