/**
 * The row of an exchange: what it used and what that cost, by the rules of `docs/operations.md`.
 * Knows no store; the books take the row.
 */
import { NOTHING_SAID } from '../chat/said.js'
import { isAbsurd, type Usage } from '../chat/usage.js'
import { rowOf } from '../errors.js'
import type { Books } from '../ledger/books.js'
import { bulkOf, inputTokens, outputTokens } from '../ledger/estimate.js'
import { costNanoUsd, tierPrice } from '../ledger/price.js'
import { UNEXPLAINED, type RowHops, type UsageRow, type UsageSource } from '../ledger/row.js'
import { claimOf, type Limiter } from '../limits/limiter.js'
import type { Logger } from '../log.js'
import type { Metrics, Outcome } from '../metrics/hops.js'
import { hideSecrets } from '../secrets.js'
import type { Exchange } from './exchange.js'

/** Where the row and what is said about it go. */
export interface Bookkeeping {
  readonly books: Books
  readonly limiter: Limiter
  readonly metrics: Metrics
  readonly log: Logger
}

/** A model's name that a client or an upstream made up may not fill the ledger. */
const MAX_NAME = 256
const MAX_MESSAGE = 500
const MAX_QUOTING_MESSAGE = 200

/** Settles the exchange's row; null where nothing has to be waited for. Never rejects. */
export function book(
  x: Exchange,
  nowMs: number,
  { books, limiter, metrics, log }: Bookkeeping,
): Promise<void> | null {
  const row = rowFor(x, nowMs, Date.now())
  const { upstream, costNanoUsd: cost, tokensAfterDisconnect: after } = row
  if (upstream !== null) {
    if (cost !== null && cost > 0) metrics.cost(upstream, x.generation.modelLabel(row.model), cost)
    if (after > 0) metrics.tokensAfterDisconnect(upstream, after)
  }
  if (isAbsurd(x.facts.verdict?.usage ?? {})) {
    log.warn('upstream reported impossible token counts, estimated instead', {
      request_id: x.id,
      upstream: upstream ?? undefined,
    })
  }
  // What was set aside for it is freed with its row; the limiter has to know where it decided alone.
  if (x.lease === null) return books.settle(row, undefined, nowMs)
  limiter.end(x.lease, cost)
  return books.settle(row, claimOf(x.lease), nowMs)
}

/** How an exchange has ended, as far as it is known by now. */
export function outcomeOf(x: Exchange): Outcome {
  const { error, verdict } = x.facts
  if (error !== null) return error.kind
  if (x.cancellation.reason !== null) return x.cancellation.reason.kind
  return verdict?.error?.kind ?? 'ok'
}

/** What of an exchange's time was ours: all but waiting for the client's body, the upstream, and a reader. */
export function overheadMs(x: Exchange, nowMs: number, relayMs: number | null): number {
  const { receiveMs, connectMs, firstByteMs, replyMs, translateMs, fetchMs } = x.facts
  const waited = fetchMs + (receiveMs ?? 0) + (connectMs ?? 0) + (firstByteMs ?? 0) + (relayMs ?? 0)
  const total = nowMs - x.startedMs - waited - (replyMs ?? 0)
  return Math.max(0, total) + (relayMs === null ? 0 : translateMs)
}

function rowFor(x: Exchange, nowMs: number, epochMs: number): UsageRow {
  const { facts, generation } = x
  const { target, verdict } = facts
  const outcome = outcomeOf(x)
  const { usage, source } = used(x, outcome)
  const asked = facts.attempts === 0 ? null : facts.upstreamModel
  const output = usage.output ?? 0
  return {
    requestId: x.id,
    atMs: Math.round(epochMs - (nowMs - x.startedMs)),
    durationMs: micro(nowMs - x.startedMs),
    accountId: x.accountId ?? '',
    keyId: facts.keyId ?? '',
    modelAsked: nameOf(facts.model),
    modelAnswered: nameOf(verdict?.model ?? asked),
    model: countedAs(x, outcome),
    upstream: target?.upstream.config.name ?? null,
    dialect: target?.dialect ?? null,
    attempts: facts.attempts,
    stream: facts.stream,
    status: statusOf(x, outcome),
    outcome,
    finish: verdict?.reason ?? null,
    usage,
    source,
    costNanoUsd: costOf(x, usage, source),
    tokensAfterDisconnect:
      facts.outputWhenLeft === null ? 0 : Math.max(0, output - facts.outputWhenLeft),
    losses: lossesOf(x),
    generation: generation.snapshot.generation,
    hops: hopsOf(x, nowMs, outcome),
    ...explained(x, outcome),
  }
}

/** A name that a client or an upstream chose, as ledger and log keep it: short and without secrets. */
export function nameOf(name: string | null): string | null {
  return name === null ? null : hideSecrets(name.slice(0, MAX_NAME))
}

/** What tells why it ended so; the client's prompt is in none of it. */
function explained(x: Exchange, outcome: Outcome): Pick<UsageRow, keyof typeof UNEXPLAINED> {
  const { facts, generation } = x
  const { verdict, target } = facts
  const wire = facts.error?.wire ?? x.cancellation.reason?.wire ?? verdict?.error
  const isKept =
    wire !== undefined && wire !== null && generation.snapshot.config.ledger.errorMessages
  // A provider may quote the prompt in its message.
  const most = facts.upstreamStatus === null ? MAX_MESSAGE : MAX_QUOTING_MESSAGE
  const isOne = facts.attempts === 1 && target !== null
  return {
    ...UNEXPLAINED,
    ingress: x.format,
    errorMessage: isKept ? hideSecrets(wire.message).slice(0, most) : null,
    limit: facts.limit,
    upstreamStatus: facts.upstreamStatus,
    upstreamRequestId: facts.upstreamRequestId?.slice(0, MAX_NAME) ?? null,
    attempted: isOne ? `${target.upstream.config.name}:${outcome}` : null,
    clientRequestId: facts.clientRequestId,
    labels: x.operation === 'native' ? bytesOf(x) : null,
  }
}

function bytesOf({ facts }: Exchange): string {
  return `bytes_in=${facts.receivedBytes} bytes_out=${facts.sentBytes}`
}

/** A closed set, the same that limits go by. */
function countedAs({ facts, generation }: Exchange, outcome: Outcome): string {
  const { model, target } = facts
  if (model === null) return 'other'
  if (target === null) return generation.modelLabel(model)
  return hideSecrets(generation.countedAs(model, target, outcome === 'ok'))
}

/** As the client saw it: where it has the beginning of an answer, 200 it was. */
function statusOf(x: Exchange, outcome: Outcome): number {
  if (outcome === 'client_gone') return 499
  if (x.operation === 'native' && x.facts.verdict !== null) return x.facts.upstreamStatus ?? 200
  if (outcome === 'ok') return 200
  return x.facts.error === null ? 200 : rowOf(outcome).status
}

function lossesOf({ facts }: Exchange): readonly string[] {
  const inReply = facts.verdict?.lost ?? []
  return inReply.length === 0 ? facts.losses : [...facts.losses, ...inReply]
}

const NOTHING_USED: { usage: Usage; source: UsageSource } = { usage: {}, source: 'none' }

/** What was used, and who says so. */
function used(x: Exchange, outcome: Outcome): { usage: Usage; source: UsageSource } {
  const { facts } = x
  const { attempts, verdict, request } = facts
  if (x.operation === 'native') {
    const usage = verdict === null || isAbsurd(verdict.usage) ? {} : verdict.usage
    return Object.keys(usage).length === 0 ? NOTHING_USED : { usage, source: 'reported' }
  }
  if (attempts === 0 || request === null) return NOTHING_USED
  const { said } = verdict ?? { said: NOTHING_SAID }
  const hasWords = said.bytes + said.calls > 0
  const isComplete = verdict?.outcome === 'complete'
  if (!isComplete && !hasWords && !isOurDoing(x, outcome)) return NOTHING_USED
  const reported = believed(verdict?.usage ?? {})
  const { input, output = hasWords ? undefined : reported.output } = reported
  const isFinal = isComplete || facts.countsAreFinal || (verdict?.reason ?? null) !== null
  if (isFinal && input !== undefined && output !== undefined) {
    return { usage: reported, source: 'reported' }
  }
  const { family } = x.generation.facts(facts.upstreamModel ?? request.model)
  const usage: Usage = {
    ...reported,
    input: input ?? inputTokens(bulkOf(request), family),
    output: Math.max(reported.output ?? 0, outputTokens(said, family)),
  }
  return { usage, source: 'estimated' }
}

/**
 * Whether it was broken off from this side: an upstream that was at work bills what it had read. One that
 * said itself that it failed, or fell over, bills nothing.
 */
function isOurDoing(x: Exchange, outcome: Outcome): boolean {
  const { upstreamStatus } = x.facts
  if (upstreamStatus !== null && upstreamStatus !== 200) return false
  if (x.cancellation.reason !== null) return true
  return outcome === 'upstream_timeout' || outcome === 'client_stalled'
}

/** The counts that can be true: a prompt has tokens, and no answer has a hundred million. */
function believed(usage: Usage): Usage {
  const { input, output } = usage
  if (isAbsurd(usage)) return {}
  if (input !== 0 && output !== 0) return usage
  const kept = { ...usage }
  if (input === 0) delete kept.input
  if (output === 0) delete kept.output
  return kept
}

function costOf(x: Exchange, usage: Usage, source: UsageSource): number | null {
  const { target, upstreamModel, verdict } = x.facts
  if (x.operation === 'native') return nativeCost(x)
  if (source === 'none' || target === null) return 0
  const { name } = target.upstream.config
  const price = x.generation.prices.find(name, upstreamModel ?? '', verdict?.model ?? null)
  const served = price === null ? null : tierPrice(price, verdict?.tier ?? null)
  return served === null ? null : costNanoUsd(served, usage)
}

/** A request that the upstream did not accept costs nothing. */
function nativeCost({ facts }: Exchange): number | null {
  const { target, attempts, upstreamStatus } = facts
  if (target === null || attempts === 0 || (upstreamStatus ?? 0) >= 400) return 0
  return target.upstream.config.native.nanoUsdPerRequest
}

function hopsOf(x: Exchange, nowMs: number, outcome: Outcome): RowHops {
  const { facts } = x
  const hops: { -readonly [Hop in keyof RowHops]: RowHops[Hop] } = {}
  if (facts.authenticateMs !== null) hops.authenticate = micro(facts.authenticateMs)
  if (facts.receiveMs !== null) hops.receive = micro(facts.receiveMs)
  if (facts.routeMs !== null) hops.route = micro(facts.routeMs)
  if (facts.admitMs !== null) hops.admit = micro(facts.admitMs)
  if (facts.connectMs !== null) hops.connect = micro(facts.connectMs)
  if (facts.firstByteMs !== null) hops.firstByte = micro(facts.firstByteMs)
  if (facts.translateMs > 0) hops.translate = micro(facts.translateMs)
  // A whole answer leaves as soon as its row is written.
  const firstMs = facts.firstContentMs ?? (outcome === 'ok' ? nowMs - x.startedMs : null)
  const relayMs = facts.firstContentMs === null ? null : nowMs - x.startedMs - facts.firstContentMs
  if (firstMs !== null) hops.firstContent = micro(firstMs)
  if (relayMs !== null) hops.relay = micro(relayMs)
  hops.overhead = micro(overheadMs(x, nowMs, relayMs))
  return hops
}

/** Ms, to the microsecond: digits are bytes. */
function micro(ms: number): number {
  return Math.round(ms * 1000) / 1000
}
