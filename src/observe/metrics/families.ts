/** The metrics of a process as families of series, made from their definitions. */
import { DEFINITIONS } from './definitions.js'
import type { MetricSet } from './registry.js'

/** More names than this are resolved anew each time, so that no caller's mistake fills the memory. */
const MAX_KEPT = 256

/** Remembers what `resolve` gave for each of a closed set of names. */
export function kept<T>(resolve: (name: string) => T): (name: string) => T {
  const held = new Map<string, T>()
  // Most are asked for the same name over and over.
  let lastName: string | null = null
  let last: T
  return (name) => {
    if (name === lastName) return last
    const found = held.get(name)
    const given = found ?? resolve(name)
    if (found === undefined && held.size < MAX_KEPT) held.set(name, given)
    lastName = name
    last = given
    return given
  }
}

/** All families of a process, by their names in `DEFINITIONS`. */
export type Families = ReturnType<typeof register>

/** Makes them in a set. */
export function register(set: MetricSet) {
  const d = DEFINITIONS
  set.droppedSeries(d.seriesDropped)
  const families = {
    requests: set.counter(d.requests),
    hops: set.histogram(d.hops),
    overhead: set.histogram(d.overhead),
    inflight: set.gauge(d.inflight),
    attempts: set.counter(d.attempts),
    retries: set.counter(d.retries),
    retriesDenied: set.counter(d.retriesDenied),
    fallbacks: set.counter(d.fallbacks),
    hedges: set.counter(d.hedges),
    breakerState: set.gauge(d.breakerState),
    breakerChanged: set.gauge(d.breakerChanged),
    credentialsResting: set.gauge(d.credentialsResting),
    canaryAborts: set.counter(d.canaryAborts),
    canaryAborted: set.gauge(d.canaryAborted),
    shadowRequests: set.counter(d.shadowRequests),
    shadowFirstContent: set.histogram(d.shadowFirstContent),
    shadowTokens: set.counter(d.shadowTokens),
    shadowCost: set.counter(d.shadowCost),
    shadowDropped: set.counter(d.shadowDropped),
    promptTokens: set.counter(d.promptTokens),
    streamEnds: set.counter(d.streamEnds),
    chunkGap: set.histogram(d.chunkGap),
    backpressure: set.counter(d.backpressure),
    losses: set.counter(d.losses),
    escrow: set.counter(d.escrow),
    reasoningDropped: set.counter(d.reasoningDropped),
    auth: set.counter(d.auth),
    limitRejections: set.counter(d.limitRejections),
    budgetUsed: set.gauge(d.budgetUsed),
    limitsLocal: set.gauge(d.limitsLocal),
    overloadLevel: set.gauge(d.overloadLevel),
    shed: set.counter(d.shed),
    storeDuration: set.histogram(d.storeDuration),
    storeErrors: set.counter(d.storeErrors),
    configGeneration: set.gauge(d.configGeneration),
    configReloads: set.counter(d.configReloads),
    certificateExpiry: set.gauge(d.certificateExpiry),
    startTime: set.gauge(d.startTime),
    fleetMembers: set.gauge(d.fleetMembers),
    fleetDisagreement: set.gauge(d.fleetDisagreement),
    cost: set.counter(d.cost),
    usageRows: set.counter(d.usageRows),
    tokensAfterDisconnect: set.counter(d.tokensAfterDisconnect),
    workerRestarts: set.counter(d.workerRestarts),
    logLinesLost: set.counter(d.logLinesLost),
    webhooks: set.counter(d.webhooks),
    traceSpans: set.counter(d.traceSpans),
    tokenUsage: set.histogram(d.tokenUsage),
    requestDuration: set.histogram(d.requestDuration),
    timeToFirstToken: set.histogram(d.timeToFirstToken),
    timePerOutputToken: set.histogram(d.timePerOutputToken),
  }
  // Zero from the start, so that a rate over the first event is not lost.
  for (const kind of ['spooled', 'replayed', 'dropped', 'damaged']) families.usageRows.child(kind)
  for (const op of ['probe', 'find_key', 'admit', 'settle']) families.storeErrors.child(op)
  for (const reason of ['ended', 'silent']) families.workerRestarts.child(reason)
  families.logLinesLost.child()
  families.configReloads.child('ok')
  families.configReloads.child('refused')
  families.startTime.child().set(Date.now() / 1000 - process.uptime())
  families.limitsLocal.child().set(0)
  families.overloadLevel.child().set(0)
  for (const resource of ['delay', 'heap', 'open_files', 'in_flight']) families.shed.child(resource)
  return families
}
