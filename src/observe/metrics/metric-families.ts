/** The metrics of a process as families of series, made from their definitions. */
import { DEFINITIONS } from './metric-definitions.js'
import type { MetricSet } from './capped-registry.js'

/** Further names are resolved on each call, so that a caller's mistake cannot exhaust memory. */
const MAX_CACHED = 256

/** Caches the results of `resolve` for a closed set of names. */
export function cached<T>(resolve: (name: string) => T): (name: string) => T {
  const values = new Map<string, T>()
  // Most callers use the same name repeatedly.
  let lastName: string | null = null
  let last: T
  return (name) => {
    if (name === lastName) return last
    const found = values.get(name)
    const value = found ?? resolve(name)
    if (found === undefined && values.size < MAX_CACHED) values.set(name, value)
    lastName = name
    last = value
    return value
  }
}

/** All families of a process, by their names in `DEFINITIONS`. */
export type Families = ReturnType<typeof counters> &
  ReturnType<typeof gauges> &
  ReturnType<typeof histograms>

export function register(set: MetricSet) {
  set.droppedSeries(DEFINITIONS.seriesDropped)
  const families = { ...counters(set), ...gauges(set), ...histograms(set) }
  startAtZero(families)
  families.startTime.child().set(Date.now() / 1000 - process.uptime())
  return families
}

/** Exports these series from the start; otherwise `rate()` would miss their first event. */
function startAtZero(families: Families): void {
  for (const kind of ['spooled', 'replayed', 'dropped', 'damaged']) families.usageRows.child(kind)
  for (const op of ['probe', 'find_key', 'admit', 'settle']) families.storeErrors.child(op)
  for (const reason of ['ended', 'silent']) families.workerRestarts.child(reason)
  families.logLinesLost.child()
  families.configReloads.child('ok')
  families.configReloads.child('refused')
  families.limitsLocal.child().set(0)
  families.overloadLevel.child().set(0)
  for (const resource of ['delay', 'heap', 'open_files', 'in_flight']) families.shed.child(resource)
}

function counters(set: MetricSet) {
  return {
    requests: set.counter(DEFINITIONS.requests),
    attempts: set.counter(DEFINITIONS.attempts),
    retries: set.counter(DEFINITIONS.retries),
    retriesDenied: set.counter(DEFINITIONS.retriesDenied),
    fallbacks: set.counter(DEFINITIONS.fallbacks),
    hedges: set.counter(DEFINITIONS.hedges),
    canaryAborts: set.counter(DEFINITIONS.canaryAborts),
    shadowRequests: set.counter(DEFINITIONS.shadowRequests),
    shadowTokens: set.counter(DEFINITIONS.shadowTokens),
    shadowCost: set.counter(DEFINITIONS.shadowCost),
    shadowDropped: set.counter(DEFINITIONS.shadowDropped),
    promptTokens: set.counter(DEFINITIONS.promptTokens),
    streamEnds: set.counter(DEFINITIONS.streamEnds),
    backpressure: set.counter(DEFINITIONS.backpressure),
    losses: set.counter(DEFINITIONS.losses),
    escrow: set.counter(DEFINITIONS.escrow),
    cacheRequests: set.counter(DEFINITIONS.cacheRequests),
    cacheSaved: set.counter(DEFINITIONS.cacheSaved),
    cacheEvictions: set.counter(DEFINITIONS.cacheEvictions),
    reasoningDropped: set.counter(DEFINITIONS.reasoningDropped),
    auth: set.counter(DEFINITIONS.auth),
    limitRejections: set.counter(DEFINITIONS.limitRejections),
    shed: set.counter(DEFINITIONS.shed),
    storeErrors: set.counter(DEFINITIONS.storeErrors),
    configReloads: set.counter(DEFINITIONS.configReloads),
    credentialRefreshes: set.counter(DEFINITIONS.credentialRefreshes),
    cost: set.counter(DEFINITIONS.cost),
    usageRows: set.counter(DEFINITIONS.usageRows),
    tokensAfterDisconnect: set.counter(DEFINITIONS.tokensAfterDisconnect),
    workerRestarts: set.counter(DEFINITIONS.workerRestarts),
    logLinesLost: set.counter(DEFINITIONS.logLinesLost),
    webhooks: set.counter(DEFINITIONS.webhooks),
    pluginErrors: set.counter(DEFINITIONS.pluginErrors),
    guardrailVerdicts: set.counter(DEFINITIONS.guardrailVerdicts),
    traceSpans: set.counter(DEFINITIONS.traceSpans),
  }
}

function gauges(set: MetricSet) {
  return {
    inflight: set.gauge(DEFINITIONS.inflight),
    breakerState: set.gauge(DEFINITIONS.breakerState),
    guardrailBreaker: set.gauge(DEFINITIONS.guardrailBreaker),
    breakerChanged: set.gauge(DEFINITIONS.breakerChanged),
    credentialsResting: set.gauge(DEFINITIONS.credentialsResting),
    canaryAborted: set.gauge(DEFINITIONS.canaryAborted),
    budgetUsed: set.gauge(DEFINITIONS.budgetUsed),
    limitsLocal: set.gauge(DEFINITIONS.limitsLocal),
    cacheEntries: set.gauge(DEFINITIONS.cacheEntries),
    cacheBytes: set.gauge(DEFINITIONS.cacheBytes),
    overloadLevel: set.gauge(DEFINITIONS.overloadLevel),
    configGeneration: set.gauge(DEFINITIONS.configGeneration),
    credentialExpiry: set.gauge(DEFINITIONS.credentialExpiry),
    credentialFailing: set.gauge(DEFINITIONS.credentialFailing),
    certificateExpiry: set.gauge(DEFINITIONS.certificateExpiry),
    startTime: set.gauge(DEFINITIONS.startTime),
    fleetMembers: set.gauge(DEFINITIONS.fleetMembers),
    fleetDisagreement: set.gauge(DEFINITIONS.fleetDisagreement),
  }
}

function histograms(set: MetricSet) {
  return {
    hops: set.histogram(DEFINITIONS.hops),
    guardrailDuration: set.histogram(DEFINITIONS.guardrailDuration),
    overhead: set.histogram(DEFINITIONS.overhead),
    shadowFirstContent: set.histogram(DEFINITIONS.shadowFirstContent),
    chunkGap: set.histogram(DEFINITIONS.chunkGap),
    storeDuration: set.histogram(DEFINITIONS.storeDuration),
    tokenUsage: set.histogram(DEFINITIONS.tokenUsage),
    requestDuration: set.histogram(DEFINITIONS.requestDuration),
    timeToFirstToken: set.histogram(DEFINITIONS.timeToFirstToken),
    timePerOutputToken: set.histogram(DEFINITIONS.timePerOutputToken),
  }
}
