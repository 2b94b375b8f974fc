/**
 * Reports the configuration of the running gateway to operators: changes in the log and the metrics, and the
 * generation in force on the ops port.
 */
import { generationFields, isConfigured, type Snapshot } from '../../config/config.js'
import type { Override, ConfigSource } from '../../config/generations/config-source.js'
import { formatProblem } from '../../config/config-problem.js'
import { maskedConfig } from '../../config/masked-config.js'
import type { GatewayStatus } from '../../control/gateway-status.js'
import type { Logger } from '../../observe/log.js'
import type { CanaryState } from '../../gateway/routing/router.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import type { Readiness } from './readiness.js'

/** Options of `followConfig`. */
interface FollowOptions {
  readonly log: Logger
  readonly metrics: Metrics
  /** Called with each new generation. */
  readonly apply: (snapshot: Snapshot) => void
}

/**
 * Passes each new generation to `apply`, and reports the outcome of each change: in force, or refused and
 * why; settings that wait for a restart; upstreams without a key.
 */
export function followConfig(source: ConfigSource, { log, metrics, apply }: FollowOptions): void {
  const started = source.current()
  metrics.configLoaded(started.generation)
  warnOfOverride(source, log)
  warnUnconfigured(started, log)
  source.subscribe((change) => {
    if (change.result === 'refused') {
      metrics.configReload('refused')
      for (const problem of change.errors) {
        log.warn('configuration refused; the old one stays in force', {
          ...generationFields(source.current()),
          reason: formatProblem(problem),
        })
      }
      return
    }
    const { generation, waitingForRestart } = change.snapshot
    metrics.configReload('ok')
    metrics.configLoaded(generation)
    apply(change.snapshot)
    const named = generationFields(change.snapshot)
    log.info('configuration in force', { ...named, reason: source.history.list()[0]?.reason })
    for (const name of waitingForRestart) {
      log.warn('setting takes effect at the next start', { ...named, reason: name })
    }
    warnUnconfigured(change.snapshot, log)
  })
}

/** Logs at the start if the generation in force is not that of the file. */
function warnOfOverride(source: ConfigSource, log: Logger): void {
  const { override } = source
  const named = generationFields(source.current())
  if (override === 'rollback') {
    log.warn('a rollback is in force, not the file; SIGHUP takes the file', named)
  }
  if (override !== 'last_good') return
  for (const problem of source.lastError ?? []) {
    log.warn('configuration refused; the last good generation is in force', {
      ...named,
      reason: formatProblem(problem),
    })
  }
}

function warnUnconfigured({ config }: Snapshot, log: Logger): void {
  for (const upstream of Object.values(config.upstreams)) {
    const { name, apiKeySource, unsetKeyVariables } = upstream
    if (!isConfigured(upstream)) {
      const variable = apiKeySource ?? undefined
      log.warn('upstream unconfigured: its key is not set', { upstream: name, variable })
    } else if (unsetKeyVariables.length > 0) {
      const variable = unsetKeyVariables.join(', ')
      log.warn('upstream has fewer keys than listed', { upstream: name, variable })
    }
  }
}

/** A function that returns why the last file is not in force, or null if it is. */
export function lastRefusal(source: ConfigSource): () => GatewayStatus['refused'] {
  let atMs = Date.now()
  source.subscribe(() => (atMs = Date.now()))
  return () => {
    const { lastError } = source
    return lastError === null ? null : { atMs, problems: lastError.map(formatProblem) }
  }
}

/** `/readyz`: the readiness of the gateway, and the state of its configuration. */
interface ReadyPage extends Readiness {
  generation: number
  held: Override | null
  waiting_for_restart: readonly string[]
}

/** The page, with the check `config`. */
export function readyPage(source: ConfigSource, { ready, degraded, checks }: Readiness): ReadyPage {
  const { generation, waitingForRestart } = source.current()
  return {
    ready,
    degraded,
    checks: { ...checks, config: checkOf(source) },
    generation,
    held: source.override,
    waiting_for_restart: waitingForRestart,
  }
}

function checkOf({ override, lastError }: ConfigSource): string {
  const problems = lastError?.map(formatProblem).join('; ') ?? ''
  if (override === 'last_good') return `the last good generation is in force: ${problems}`
  if (problems !== '') return `the files are refused: ${problems}`
  return override === 'rollback' ? 'a rollback is in force, not the files' : 'ok'
}

/** `/config`: the generation in force with masked secrets, and why a newer file is not in force. */
export function configPage(source: ConfigSource, canaries: readonly CanaryState[]): object {
  const last = source.lastError
  return {
    ...maskedConfig(withoutAborted(source.current(), canaries)),
    held: source.override,
    last_error: last === null ? null : last.map(formatProblem),
  }
}

/** The generation with weight 0 for targets that were aborted. */
function withoutAborted(snapshot: Snapshot, canaries: readonly CanaryState[]): Snapshot {
  const aborted = new Set(canaries.flatMap(({ id, abortedAtMs }) => (abortedAtMs === null ? [] : id)))
  if (aborted.size === 0) return snapshot
  const routes = snapshot.config.routes.map((route, index) => {
    const targets = route.targets.map((target, at) => {
      return aborted.has(`${index}.${at}`) ? { ...target, weight: 0 } : target
    })
    return { ...route, targets }
  })
  return { ...snapshot, config: { ...snapshot.config, routes } }
}
