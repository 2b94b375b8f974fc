/**
 * Ends every exchange: writes its ledger entry, metrics and log line, which are derived from the results of
 * the phases.
 */
import { OPERATIONS } from '../../formats/chat/operations.js'
import { digestOf } from '../../accounts/key-secret.js'
import { causeOf } from '../../errors.js'
import { isImplausible } from '../../formats/chat/usage.js'
import type { DialectName } from '../../formats/dialect.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { unitsIn } from '../../base/unit-counts.js'
import type { LedgerWriter } from '../../ledger/ledger-writer.js'
import type { BudgetWatch } from '../../limits/budget-watch.js'
import { storeReservationOf } from '../../limits/reservation-types.js'
import type { Limiter } from '../../limits/limiter.js'
import type { Logger } from '../../observe/log.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import type { Outcome } from '../../observe/metrics/closed-labels.js'
import { chargedNanoUsd } from '../../store/records/count-usage.js'
import type { CanaryCounter } from '../canary/canary-monitor.js'
import type { RequestValues } from '../dimensions/request-values.js'
import type { Exchange } from '../client-exchange.js'
import { entryOf, outcomeOf, overheadMs } from '../charges/ledger-entry.js'
import { isLogged, lineOf, streamEndOf, type End } from '../report/log-line.js'
import { headOf, type RecentHeads } from '../report/recent-requests.js'
import type { Identified } from './phase-results.js'
import type { ServedRequest } from '../served-request.js'
import type { Tracing } from '../report/request-spans.js'
import { isCompactToken } from '../../accounts/workload-identity/read-token.js'
import { clientKeyOf } from './authenticate.js'

/** The services that receive the ledger entry, the metrics and the log line. */
export interface ReportingServices {
  readonly ledgerWriter: LedgerWriter
  readonly limiter: Limiter
  /** Notifies of used budgets; null: no notifications. */
  readonly budgets: BudgetWatch | null
  /** Counts what values of dimensions use. */
  readonly values: RequestValues
  readonly metrics: Metrics
  readonly canaries: CanaryCounter
  readonly log: Logger
  readonly recent: RecentHeads
  /** Null if no traces are exported. */
  readonly tracing: Tracing | null
}

/** Whether requests of the operation get ledger entries; the turns of a WebSocket have their own. */
function isRecorded(operation: Identified['operation'], method: string | undefined): boolean {
  if (operation === 'native') return true
  if (operation === null || operation === 'socket') return false
  const { isRecorded } = OPERATIONS[operation]
  return isRecorded === 'changes' ? method !== 'GET' : isRecorded
}

/** Writes the ledger entry, the metrics and the log line of one exchange. */
export class Settlement {
  private readonly x: Exchange
  private readonly services: ReportingServices
  private isRecorded = false
  private entry: LedgerEntry | null = null
  /** The writes that the end of the reply has waited for, or waits for. */
  private awaitedWrites: Promise<void> | null = null

  constructor(x: Exchange, services: ReportingServices) {
    this.x = x
    this.services = services
    x.ending = this.ending
  }

  /** As `ServedRequest.ending`: writes the entry once. Never rejects. */
  readonly ending = (): Promise<void> | null => {
    const { cached, attempts } = this.x
    const stored = cached?.ended() ?? null
    if (stored !== null) attempts?.delayEndUntil(stored)
    const writes = attempts?.pendingWrites ?? null
    const isNew = writes !== this.awaitedWrites
    this.awaitedWrites = writes
    const recorded = this.recordEntry()
    if (!isNew || writes === null) return recorded
    return recorded === null ? writes : both(writes, recorded)
  }

  /**
   * Writes the ledger entry, only for authenticated requests and those whose key could not be looked up.
   */
  private recordEntry(): Promise<void> | null {
    const { x } = this
    if (this.isRecorded) return null
    const operation = x.identified?.operation
    if (!isRecorded(operation ?? null, x.req.method) || x.turn?.generates === false) return null
    if (x.authenticated === null) {
      if (x.error?.kind === 'store_unavailable') this.spoolRefusal()
      return null
    }
    this.isRecorded = true
    const beganMs = performance.now()
    const note = (): void => void (x.entryMs = performance.now() - beganMs)
    const recorded = this.write(beganMs)
    if (recorded === null) note()
    // Not chained to the returned promise, which would cost another promise per request.
    else void recorded.then(note)
    return recorded
  }

  /** The store does not know the key's owner now. */
  private spoolRefusal(): void {
    const { x, services } = this
    this.isRecorded = true
    const { text, keyIn } = clientKeyOf(x)
    const secret = text === undefined ? null : keyIn(text)
    if (secret === null || isCompactToken(secret)) return
    const entry = entryOf(x, performance.now())
    services.ledgerWriter.spoolUnowned(entry, digestOf(secret))
  }

  private write(nowMs: number): Promise<void> | null {
    const { x, services } = this
    const entry = entryOf(x, nowMs)
    x.copied?.originalEnded(entry)
    this.entry = entry
    const outcome = outcomeOf(x)
    recordAttempts(x, outcome, services.metrics)
    this.countCanaries(outcome)
    this.warnMisconfigured()
    const { upstream, costNanoUsd: cost, tokensAfterDisconnect, savedNanoUsd } = entry
    if (savedNanoUsd !== null) {
      const route = x.candidate?.target.route
      if (route !== undefined) services.metrics.cache.saved(route, savedNanoUsd)
    }
    if (upstream !== null) {
      const model = x.generation.modelLabel(entry.model)
      if (cost !== null && cost > 0) {
        const tokens = (entry.usage.input ?? 0) + (entry.usage.output ?? 0)
        services.metrics.cost(upstream, model, { nanoUsd: cost, tokens })
        if (this.countsLabels) {
          this.countByLabel({ metric: 'labelCost', labels: [upstream], amount: cost / 1e9 })
        }
      }
      if (entry.units !== null) {
        for (const [unit, count] of unitsIn(entry.units)) services.metrics.units(upstream, unit, count)
      }
      if (tokensAfterDisconnect > 0) services.metrics.tokensAfterDisconnect(upstream, tokensAfterDisconnect)
    }
    if (isImplausible(x.replyResult?.usage ?? {})) {
      services.log.warn('upstream reported impossible token counts, estimated instead', {
        request_id: x.id,
        upstream: upstream ?? undefined,
      })
    }
    const identity = x.authenticated?.identity
    if (identity !== undefined) services.values.used(identity, entry, x.calledTools)
    // Settlement frees the reservation; the limiter itself counts reservations that it decided without the
    // store.
    if (x.limitReservation === null) return services.ledgerWriter.settle(entry)
    const charged = chargedNanoUsd(entry)
    services.limiter.end(x.limitReservation, charged)
    if (x.limitReservation.taken !== 'nothing')
      services.budgets?.settled(x.limitReservation.admissionRequest.demands, charged)
    const { limiter, ledgerWriter } = services
    const settling = ledgerWriter.settle(entry, storeReservationOf(x.limitReservation))
    limiter.settled(x.limitReservation, settling)
    return settling
  }

  private get countsLabels(): boolean {
    return this.x.generation.snapshot.config.metrics.labels.length > 0
  }

  /** Counts by the labels of the key that the configuration names. */
  private countByLabel(counted: Parameters<Metrics['labels']['count']>[2]): void {
    const { x, services } = this
    const identity = x.authenticated?.identity
    if (identity === undefined) return
    const settings = x.generation.snapshot.config.metrics.labels
    const labels = identity.countedLabels ?? identity.labels
    services.metrics.labels.count(settings, labels, counted)
  }

  private countRequestByLabel(upstream: string, cause: string): void {
    this.countByLabel({ metric: 'labelRequests', labels: [upstream, cause] })
    const { admitted } = this.x
    if (admitted?.kind === 'refused' && admitted.limitKind !== null) {
      this.countByLabel({ metric: 'labelRejections', labels: [admitted.limitKind] })
    }
  }

  /** Counts the attempts on canary targets; `ended` is the outcome of the final attempt. */
  private countCanaries(ended: Outcome): void {
    const { generation } = this.x.generation.snapshot
    for (const { candidate, status, outcome } of this.x.attempts?.list ?? []) {
      const { canary } = candidate
      if (canary === null) continue
      this.services.canaries.ended(generation, canary, { status, outcome: outcome ?? ended })
    }
  }

  /** Warns once per upstream and generation, also if another upstream served the request. */
  private warnMisconfigured(): void {
    const { generation } = this.x
    for (const { candidate, outcome } of this.x.attempts?.list ?? []) {
      if (outcome !== 'upstream_misconfigured') continue
      const { name } = candidate.target.upstream.config
      if (!generation.isFirst(`misconfigured ${name}`)) continue
      this.services.log.warn('upstream has no such endpoint: check its base_url', {
        upstream: name,
      })
    }
  }

  /** Records the metrics of the exchange and writes its log line. Called once, at its end. */
  report(): void {
    const beganMs = performance.now()
    const { x } = this
    const { metrics, log, recent } = this.services
    if (this.entry !== null) x.recorder?.ended(this.entry)
    const outcome = outcomeOf(x)
    const status = outcome === 'client_gone' ? 499 : x.res.statusCode
    const seconds = (beganMs - x.startedMs) / 1000
    recordHops(x, metrics)
    const relayMs = x.delivered?.relayMs ?? null
    const ownMs = overheadMs(x, { nowMs: beganMs, relayMs })
    metrics.overhead(ownMs / 1000, x.trace?.exportedId)
    const cause = causeOf(outcome) ?? undefined
    const units = this.entry?.units ?? null
    const end = { status, outcome, cause, seconds, overheadMs: ownMs, units }
    const target = x.candidate?.target
    const ingress = x.identified?.format ?? 'none'
    if (target === undefined) {
      metrics.unrouted(status, outcome, ingress)
    } else {
      target.series.finished(status, outcome, ingress)
      recordReply(x, end)
      recordLosses(x, target.dialect, metrics)
    }
    if (this.countsLabels) {
      this.countRequestByLabel(target?.upstream.config.name ?? 'none', cause ?? 'ok')
    }
    if (isLogged(x, end)) log.exchangeLine(lineOf(x, end))
    const head = recent.takes(beganMs) ? headOf(x) : null
    if (head !== null) recent.add(head)
    this.services.tracing?.end(x, end)
    const usage = x.replyResult?.usage ?? {}
    x.observed?.end({
      request_id: x.id,
      status,
      outcome,
      input_tokens: usage.input ?? null,
      output_tokens: usage.output ?? null,
    })
    metrics.hops.settle.observe((x.entryMs + performance.now() - beganMs) / 1000)
    const failure = x.attempts?.failure ?? x.failure ?? null
    if (failure !== null) log.error('unforeseen failure', failure, { request_id: x.id })
  }
}

async function both(one: Promise<void>, other: Promise<void>): Promise<void> {
  await one
  await other
}

function recordHops(x: ServedRequest, { hops }: Metrics): void {
  const { authenticated, intake, routed, admitted, guard, attempts, delivered } = x
  if (authenticated !== null) hops.authenticate.observe(authenticated.tookMs / 1000)
  const receiveMs = intake?.tookMs ?? null
  if (receiveMs !== null) hops.receive.observe(receiveMs / 1000)
  const routeMs = routed?.tookMs ?? null
  if (routeMs !== null) hops.route.observe(routeMs / 1000)
  const admitMs = admitted?.tookMs ?? null
  if (admitMs !== null) hops.admit.observe(admitMs / 1000)
  if (guard !== null) hops.guard.observe(guard.tookMs / 1000)
  const { connectMs, firstByteMs } = x.waits
  if (connectMs !== null) hops.connect.observe(connectMs / 1000)
  if (firstByteMs !== null) hops.first_byte.observe(firstByteMs / 1000)
  const translateMs = attempts?.translateMs ?? 0
  if (translateMs > 0) hops.translate.observe(translateMs / 1000)
  const relayMs = delivered?.relayMs ?? null
  if (relayMs !== null) hops.relay.observe(relayMs / 1000)
}

function recordAttempts({ attempts }: ServedRequest, ended: Outcome, metrics: Metrics): void {
  if (attempts === null) return
  const { list, final, hedgeDenied } = attempts
  let before: string | null = null
  for (const attempt of list) {
    const { candidate, outcome, occasion, after } = attempt
    const { series, upstream } = candidate.target
    const { name } = upstream.config
    series.attempt(outcome ?? ended)
    if (occasion === 'amended') series.reasoningDropped()
    if (occasion === 'retry' && after !== null) metrics.retry(name, after)
    if (occasion === 'fallback' && before !== null) metrics.fallback(before, name)
    if (occasion === 'hedge') {
      const isLost = outcome === 'cancelled'
      metrics.hedge(name, attempt === final && ended === 'ok' ? 'won' : isLost ? 'lost' : 'failed')
    }
    before = name
  }
  if (hedgeDenied !== null) metrics.hedge(hedgeDenied, 'denied')
}

function recordReply(x: Exchange, { seconds, outcome }: End): void {
  const { identified, received: call, candidate, attempt, delivered, replyResult } = x
  if (candidate === null || replyResult === null || identified?.operation === 'native') return
  // A reply from the cache states nothing about the upstream.
  if (attempt === null) return
  const { series } = candidate.target
  if (call?.request.stream === true) {
    series.streamEnd(streamEndOf(outcome, replyResult.outcome === 'complete'))
  }
  const waitMs = delivered?.clientWaitMs ?? 0
  if (waitMs > 0) series.backpressure('client', waitMs / 1000)
  const firstMs = x.firstContentMs
  const model = x.generation.modelLabel(call?.request.model ?? '', candidate.target)
  const ttftSeconds = firstMs === null ? null : firstMs / 1000
  const traceId = x.trace?.exportedId ?? null
  series.served(model, { seconds, ttftSeconds, usage: replyResult.usage, traceId })
}

/** Counts the lost fields of the request and of the reply. */
function recordLosses(
  { identified, attempts, replyResult }: ServedRequest,
  upstream: DialectName,
  metrics: Metrics,
): void {
  const dialect = identified?.dialect ?? null
  if (dialect === null) return
  for (const path of attempts?.losses ?? []) metrics.loss(dialect, upstream, path)
  for (const path of replyResult?.lost ?? []) metrics.loss(upstream, dialect, path)
}
