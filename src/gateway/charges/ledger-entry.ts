/**
 * Builds the ledger entry of an exchange, with its usage and cost, by the rules of
 * `docs/reference/ledger.md`.
 */
import { labelsText, NO_LABELS } from '../../accounts/labels.js'
import { statusOf as statusOfError, type WireError } from '../../errors.js'
import { isObject, objectOf, stringOf } from '../../base/json.js'
import { addUsage, isImplausible } from '../../formats/chat/usage.js'
import type { DialectName } from '../../formats/dialect.js'
import { errorFormatOf } from '../../formats/index.js'
import { withoutSecrets } from '../../formats/wire/openai/error-body.js'
import type { EntryHops, LedgerEntry, UsageSource } from '../../ledger/entry.js'
import { unitsText } from '../../ledger/entry-units.js'
import { costNanoUsd, sumOfKnown, tierPrice } from '../../ledger/price.js'
import type { Outcome } from '../../observe/metrics/closed-labels.js'
import { hideSecrets } from '../../hide-secrets.js'
import { attemptList, type AttemptResult } from '../attempts/attempt-result.js'
import type { ServedRequest } from '../served-request.js'
import { dimensionsText } from '../dimensions/dimensions-text.js'
import { arrivedAtMs } from './arrived-at.js'
import { NOTHING_USED, usageOfAttempt, type Used } from './attempt-usage.js'

/** Maximum length of names that a client or an upstream chose. */
const MAX_NAME = 256
const MAX_MESSAGE = 500
/** Characters that are kept of a message of a provider, which may quote the prompt. */
export const MAX_QUOTING_MESSAGE = 200

/** The outcome of an exchange so far. */
export function outcomeOf({ error, cancellation, replyResult }: ServedRequest): Outcome {
  if (error !== null) return error.kind
  if (cancellation.reason !== null) return cancellation.reason.kind
  if (replyResult?.blocked !== undefined) return 'guardrail_blocked'
  return replyResult?.error?.kind ?? 'ok'
}

/** The times of an exchange that ends or has ended. */
interface ElapsedTime {
  /** The end of the exchange, on the monotonic clock. */
  readonly nowMs: number
  /** Time from the head of the reply to its end; null for a whole reply. */
  readonly relayMs: number | null
}

/**
 * The gateway's own share of an exchange's time, in ms: without the waits for the client's body, the
 * upstream, and a client that reads the reply.
 */
export function overheadMs(x: ServedRequest, { nowMs, relayMs }: ElapsedTime): number {
  const { intake, attempts: sent, guard } = x
  const { connectMs, firstByteMs, replyMs } = x.waits
  const upstream = (connectMs ?? 0) + (firstByteMs ?? 0) + (replyMs ?? 0)
  const others = (sent?.fetchMs ?? 0) + (sent?.backOffMs ?? 0) + (intake?.tookMs ?? 0) + (relayMs ?? 0)
  // A stream waits for its guardrails while it is relayed.
  const judgedMs = (relayMs === null ? guard?.tookMs : guard?.requestMs) ?? 0
  const total = nowMs - x.startedMs - upstream - others - judgedMs
  return Math.max(0, total) + (relayMs === null ? 0 : (sent?.translateMs ?? 0))
}

/**
 * The entry of an exchange that ends at `nowMs` (monotonic). It is built before the client gets the end of
 * its reply.
 */
export function entryOf(x: ServedRequest, nowMs: number): LedgerEntry {
  const { generation, identified, authenticated, received: call, admitted, candidate } = x
  const { attempts: sent, attempt, replyResult, recorder, cached } = x
  const identity = authenticated?.identity
  const outcome = outcomeOf(x)
  const used = usageOf(x)
  const wire = x.error?.wire ?? x.cancellation.reason?.wire ?? replyResult?.error ?? null
  const attempts = sent?.list.length ?? 0
  const request = call?.request
  const { cacheMarks, cacheMarksSavedNanoUsd } = marksOf(x)
  // Without a spread, which takes ten times as long (docs/explanation/performance.md).
  return {
    requestId: x.id,
    atMs: arrivedAtMs(x),
    durationMs: roundToMicros(nowMs - x.startedMs),
    accountId: identity?.accountId ?? '',
    keyId: identity?.keyId ?? '',
    modelAsked: nameOf(request?.model ?? null),
    modelAnswered: nameOf(replyResult?.model ?? (attempts === 0 ? null : x.upstreamModel)),
    model: countedAs(x, outcome),
    upstream: candidate?.target.upstream.config.name ?? null,
    dialect: candidate?.target.dialect ?? null,
    attempts,
    stream: request?.stream ?? false,
    status: statusOf(x, outcome),
    outcome,
    finish: replyResult?.reason ?? null,
    source: used.source,
    usage: used.usage,
    costNanoUsd: used.costNanoUsd,
    budgetNanoUsd: used.costNanoUsd === null ? (used.budgetNanoUsd ?? undefined) : undefined,
    rateTokens: used.source === 'assumed' ? used.rateTokens : undefined,
    tokensAfterDisconnect: used.tokensAfterDisconnect,
    losses: lossesOf(sent?.losses ?? [], replyResult?.lost ?? []),
    generation: generation.snapshot.generation,
    hops: hopsOf(x, { nowMs, outcome }),
    ingress: identified?.format ?? null,
    errorMessage: errorMessageOf(x, wire),
    limit: admitted?.kind === 'refused' ? admitted.limit : null,
    upstreamStatus: attempt?.status ?? null,
    upstreamRequestId: attempt?.requestId?.slice(0, MAX_NAME) ?? null,
    attempted: attempted(x, outcome),
    shadowOf: null,
    labels: labelsText(identity?.labels ?? NO_LABELS),
    clientRequestId: identified?.clientRequestId ?? null,
    attemptMs: attemptMs(x),
    retryAfterSeconds: wire?.retryAfterSeconds ?? null,
    priceVersion: isPriced(x, used) ? generation.pricesAt(x.startedMs).version : null,
    gateway: generation.snapshot.config.server.name,
    generationHash: generation.hash,
    cacheHit: cacheHitOf(x),
    savedNanoUsd: cached?.result === 'hit' ? cached.saved() : null,
    accountPath: identity?.accountPath ?? null,
    identity: identity?.workload ?? null,
    guardrails: guardrailsIn(x),
    cacheMarks,
    cacheMarksSavedNanoUsd,
    recorded: recorder?.isKept({ outcome }) === true ? true : null,
    dimensions: dimensionsText(identity?.dimensions),
    program: x.program,
    user: identity?.user ?? null,
    units: unitsText(used.usage),
    batch: x.batch,
  }
}

/** The marks for the provider's prompt cache; the list price of the cached tokens minus their cost. */
function marksOf({
  generation,
  startedMs,
  routed: route,
  attempt,
  replyResult,
}: ServedRequest): Pick<LedgerEntry, 'cacheMarks' | 'cacheMarksSavedNanoUsd'> {
  if ((route?.config?.cacheControl ?? null) === null) {
    return { cacheMarks: null, cacheMarksSavedNanoUsd: null }
  }
  const cacheMarks = attempt?.cacheMarks ?? 0
  if (attempt === null || cacheMarks === 0) return { cacheMarks, cacheMarksSavedNanoUsd: 0 }
  const { candidate } = attempt
  const { name } = candidate.target.upstream.config
  const price = generation.pricesAt(startedMs).prices.find(name, candidate.model, replyResult?.model ?? null)
  const served = price === null ? null : tierPrice(price, replyResult?.tier ?? null)
  if (served === null || replyResult === null) return { cacheMarks, cacheMarksSavedNanoUsd: null }
  const { usage } = replyResult
  const paid = costNanoUsd(served, usage)
  const listed = costNanoUsd(served, { ...usage, cacheRead: 0, cacheWrite: 0, cacheWrite1h: 0 })
  const isKnown = paid !== null && listed !== null
  return { cacheMarks, cacheMarksSavedNanoUsd: isKnown ? listed - paid : null }
}

/** Null if the route has no cache. */
function cacheHitOf({ routed: route, cached }: ServedRequest): boolean | null {
  const cache = route?.config?.cache ?? null
  return cache === null ? null : cached?.result === 'hit'
}

/** Whether the cost comes from a price list; native requests have a price per request instead. */
function isPriced({ identified }: ServedRequest, { costNanoUsd, source }: Used): boolean {
  return costNanoUsd !== null && source !== 'none' && identified?.operation !== 'native'
}

/**
 * A name that a client or an upstream chose, in the form for ledger and log: at most 256 characters, without
 * secrets.
 */
export function nameOf(name: string | null): string | null {
  return name === null ? null : hideSecrets(name.slice(0, MAX_NAME))
}

/** The message that the client got, without any text of its prompt; null if the ledger keeps no messages. */
function errorMessageOf(x: ServedRequest, wire: WireError | null): string | null {
  const { generation, identified, attempt } = x
  if (!generation.snapshot.config.ledger.errorMessages) return null
  if (wire === null) return messageOf(x, null)
  // A provider may quote the prompt in its message.
  const maxLength = (attempt?.status ?? null) === null ? MAX_MESSAGE : MAX_QUOTING_MESSAGE
  const message = messageIn(wire, identified?.dialect ?? null)
  return messageOf(x, message.slice(0, maxLength))
}

/** The message, and for a refusal of a guardrail the place and the rule, without any of the text. */
function messageOf({ guard }: ServedRequest, message: string | null): string | null {
  const refusal = guard?.refusal ?? null
  if (refusal === null) return message
  const { place, rule } = refusal
  const isPlain = place !== null && PLAIN_PLACE.test(place)
  const where = isPlain ? ` Where: ${place}${rule === null ? '' : `, rule ${rule}`}.` : ''
  return (message ?? refusal.message) + where
}

/** Names in a path may be the client's. */
const PLAIN_PLACE = /^[A-Za-z_]{1,32}(?:\[\d+\]|\.[A-Za-z_]{1,32}){0,8}$/

/**
 * The message in the client's format, which may begin with the error's name or have other names of fields.
 */
function messageIn(error: WireError, dialect: DialectName | null): string {
  const { body } = errorFormatOf(dialect).encodeError(withoutSecrets(error))
  const value: unknown = JSON.parse(body)
  const shown = isObject(value) ? objectOf(value['error']) : {}
  return stringOf(shown['message']) ?? hideSecrets(error.message)
}

/** What guardrails did, separated by spaces; null if nothing. */
function guardrailsIn({ guard }: ServedRequest): string | null {
  return guard === null || guard.list.length === 0 ? null : guard.list.join(' ')
}

/** Each attempt in order, `upstream:outcome`; null if there is none. */
function attempted({ attempts: sent }: ServedRequest, outcome: Outcome): string | null {
  return sent === null || sent.list.length === 0 ? null : attemptList(sent, outcome)
}

/** The time of each attempt up to its first content or its failure; null if there is none. */
function attemptMs({ attempts: sent }: ServedRequest): readonly number[] | null {
  if (sent === null || sent.list.length === 0) return null
  return sent.list.map(({ connectMs, firstByteMs, replyMs }) => {
    return roundToMicros((connectMs ?? 0) + (firstByteMs ?? 0) + (replyMs ?? 0))
  })
}

/** The model name from a closed set, the same as for limits. */
function countedAs({ generation, received: call, candidate }: ServedRequest, outcome: Outcome): string {
  if (call === null) return 'other'
  const { model } = call.request
  if (candidate === null) return generation.modelLabel(model)
  return hideSecrets(generation.countedAs(model, candidate.target, outcome === 'ok'))
}

/** The status that the client received: 200 if it has the beginning of a reply. */
function statusOf({ identified, attempt, replyResult, error }: ServedRequest, outcome: Outcome): number {
  if (outcome === 'client_gone') return 499
  const isJudged = error?.wire.guardrail !== undefined
  if (identified?.operation === 'native' && replyResult !== null && !isJudged) {
    return attempt?.status ?? 200
  }
  if (outcome === 'ok') return 200
  return error === null ? 200 : statusOfError(error.wire)
}

function lossesOf(inRequest: readonly string[], inReply: readonly string[]): readonly string[] {
  return inReply.length === 0 ? inRequest : [...inRequest, ...inReply]
}

/** The time of each phase; members of phases that did not happen are absent. */
function hopsOf(
  x: ServedRequest,
  { nowMs, outcome }: { readonly nowMs: number; readonly outcome: Outcome },
): EntryHops {
  const { authenticated, intake, routed, admitted, guard, attempts, delivered } = x
  const hops: { -readonly [Hop in keyof EntryHops]: EntryHops[Hop] } = {}
  if (authenticated !== null) hops.authenticate = roundToMicros(authenticated.tookMs)
  const receiveMs = intake?.tookMs ?? null
  if (receiveMs !== null) hops.receive = roundToMicros(receiveMs)
  const routeMs = routed?.tookMs ?? null
  if (routeMs !== null) hops.route = roundToMicros(routeMs)
  const admitMs = admitted?.tookMs ?? null
  if (admitMs !== null) hops.admit = roundToMicros(admitMs)
  if (guard !== null) hops.guard = roundToMicros(guard.tookMs)
  const { connectMs, firstByteMs } = x.waits
  if (connectMs !== null) hops.connect = roundToMicros(connectMs)
  if (firstByteMs !== null) hops.firstByte = roundToMicros(firstByteMs)
  const translateMs = attempts?.translateMs ?? 0
  if (translateMs > 0) hops.translate = roundToMicros(translateMs)
  // A whole reply is sent as soon as its entry is written.
  const headMs = delivered?.headMs ?? null
  const isWhole = headMs === null && outcome === 'ok'
  const firstMs = isWhole ? nowMs - x.startedMs : x.firstContentMs
  const relayMs = headMs === null ? null : nowMs - x.startedMs - headMs
  if (firstMs !== null) hops.firstContent = roundToMicros(firstMs)
  if (relayMs !== null) hops.relay = roundToMicros(relayMs)
  hops.overhead = roundToMicros(overheadMs(x, { nowMs, relayMs }))
  return hops
}

/** Rounds milliseconds to microseconds, because each digit is a byte in the ledger. */
function roundToMicros(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

/**
 * The usage and cost of a request at all its upstreams. Failed attempts count if the provider may bill them.
 */
function usageOf(x: ServedRequest): Used {
  const { identified, attempts, received: call, attempt: finalAttempt } = x
  if (finalAttempt === null) return NOTHING_USED
  if (identified?.operation === 'native') return usageOfNative(finalAttempt)
  if (call === null) return NOTHING_USED
  const billed = { x, call }
  let total = NOTHING_USED
  for (const attempt of attempts?.list ?? []) {
    const used = usageOfAttempt(attempt, billed)
    if (used !== NOTHING_USED) total = total === NOTHING_USED ? used : sum(total, used)
  }
  return total
}

/** From the most to the least uncertain. */
const SOURCES: readonly UsageSource[] = ['assumed', 'estimated', 'reported']

function sum(one: Used, other: Used): Used {
  return {
    usage: addUsage(one.usage, other.usage),
    source: SOURCES.find((source) => one.source === source || other.source === source) ?? 'none',
    costNanoUsd: sumOfKnown(one.costNanoUsd, other.costNanoUsd),
    budgetNanoUsd: sumOfKnown(one.budgetNanoUsd, other.budgetNanoUsd),
    rateTokens: one.rateTokens + other.rateTokens,
    tokensAfterDisconnect: one.tokensAfterDisconnect + other.tokensAfterDisconnect,
  }
}

function usageOfNative(attempt: AttemptResult): Used {
  const { wasSent, replyResult, status, candidate, nativeNanoUsd } = attempt
  const usage = replyResult === null || isImplausible(replyResult.usage) ? {} : replyResult.usage
  const source = Object.keys(usage).length === 0 ? 'none' : 'reported'
  // A request that the upstream refused costs nothing.
  const isFree = !wasSent || (status ?? 0) >= 400
  const { nanoUsdPerRequest } = candidate.target.upstream.config.native
  const cost = isFree ? 0 : nativeNanoUsd === undefined ? nanoUsdPerRequest : nativeNanoUsd
  return { ...NOTHING_USED, usage, source, costNanoUsd: cost, budgetNanoUsd: cost }
}
