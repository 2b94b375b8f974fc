/**
 * Decides whether a request may run: computes the most that it may use, asks all its limits in one step, and reserves
 * that amount. Nothing has been sent to an upstream before this.
 */
import type { Identity } from '../../accounts/account.js'
import { GatewayError } from '../../errors.js'
import type { UsageRow } from '../../ledger/row.js'
import type { BudgetWatch } from '../../limits/budget-watch.js'
import type { Decision, Lease, Limiter, Wish } from '../../limits/limiter.js'
import { claimsOf, needsOf, NO_LIMITS, type Claim, type Limit } from '../../limits/rules.js'
import { budgetsUsed, rateHeaders, refusalOf, type LimitKind } from '../../limits/standing.js'
import type { Logger } from '../../observe/log/log.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import { outputFor, shortened, withOutput, type Reckoning } from '../reservation/bounds.js'
import type { Exchange } from '../exchange.js'
import { amountOf, larger, NOTHING, type Amount } from '../reservation/amount.js'
import { reckoningOf } from '../reservation/reckoning-of.js'
import { Reservation } from '../reservation/reservation.js'
import { unsettledRow } from '../reservation/unsettled.js'
import type { Candidate } from './choose.js'
import type { Call } from './receive.js'

/** What decides on limits, and what counts refusals. */
export interface Limits {
  readonly limiter: Limiter
  readonly metrics: Metrics
  readonly log: Pick<Logger, 'warn'>
  /** Null: nobody is notified of budgets. */
  readonly budgets: BudgetWatch | null
}

/** A request that runs. */
export interface Admitted {
  readonly kind: 'admitted'
  /** As received, or with a maximum of output tokens if it names none and its budget cannot pay for the longest reply. */
  readonly call: Call
  readonly lease: Lease
  /** Null if no limit on tokens or money applies. */
  readonly reservation: Reservation | null
  /** Name, value, …: the state of the limits, for every reply. */
  readonly rateHeaders: readonly string[]
  /** Null if no limit applies. */
  readonly tookMs: number | null
}

/** A request that does not run. */
export interface Refused {
  readonly kind: 'refused'
  readonly error: GatewayError
  /** The rule that refused it, as the ledger entry names it; null if none did. */
  readonly limit: string | null
  readonly rateHeaders: readonly string[]
  readonly tookMs: number
}

/** The decision on a request. An admitted one has a reservation, which settlement frees. */
export type Admission = Admitted | Refused

/** What is asked to run. */
export interface Applicant {
  readonly x: Exchange
  readonly identity: Identity
  readonly clientRequestId: string | null
  readonly call: Call
  readonly candidates: readonly [Candidate, ...Candidate[]]
}

/** An applicant with the limits that apply, and the most that it may use with each candidate. */
interface Question extends Applicant {
  readonly modelName: string
  readonly limits: readonly Limit[]
  readonly reckonings: readonly Reckoning[]
}

const NO_HEADERS: readonly string[] = []

/**
 * Asks all limits that apply; at once if none does. The reservation covers the most expensive candidate. Refuses with
 * `rate_limited`, `forbidden` and `malformed_request` if `limiting` refuses a model of unknown price or length, and
 * `store_unavailable` if a budget cannot be checked.
 */
export function admit(applicant: Applicant, limits: Limits): Admission | Promise<Admission> {
  const { x, identity, call, candidates } = applicant
  const [{ target }] = candidates
  const asked = call.request.model
  const modelName = x.generation.limitedAs(asked, target)
  const upstream = target.upstream.config.name
  const rules = x.generation.limits.of({ identity, model: asked, modelName, upstream })
  if (rules === NO_LIMITS) {
    const lease = limits.limiter.note(new Unlimited(applicant, modelName))
    const reservation = null
    return { kind: 'admitted', call, lease, reservation, rateHeaders: NO_HEADERS, tookMs: null }
  }
  const { generation } = x
  const reckonings = candidates.map((each) => reckoningOf(generation, call.request, each))
  const { clientRequestId } = applicant
  const question = { x, identity, clientRequestId, call, candidates, modelName, reckonings }
  return ask({ ...question, limits: rules }, limits)
}

const NO_DEMANDS: Wish['demands'] = []

/**
 * The wish of a request that nothing limits. The most that it may use, for which the prompt has to be counted, is
 * computed only if it runs for so long that the ledger records it.
 */
class Unlimited implements Wish {
  readonly requestId: string
  readonly accountId: string
  readonly demands = NO_DEMANDS
  private readonly applicant: Applicant
  private readonly modelName: string

  constructor(applicant: Applicant, modelName: string) {
    this.requestId = applicant.x.id
    this.accountId = applicant.identity.accountId
    this.applicant = applicant
    this.modelName = modelName
  }

  get unsettled(): UsageRow {
    const { applicant, modelName } = this
    const { x, call, candidates } = applicant
    return rowOf(applicant, modelName, reckoningOf(x.generation, call.request, candidates[0]))
  }
}

function rowOf(applicant: Applicant, modelName: string, most: Reckoning): UsageRow {
  const { x, identity, clientRequestId, call, candidates } = applicant
  const { request } = call
  const [{ target, model }] = candidates
  const provisional = { x, identity, clientRequestId, request, target, model, modelName }
  return unsettledRow(provisional, most)
}

async function ask(question: Question, limits: Limits): Promise<Admission> {
  const { x, call } = question
  const beganMs = performance.now()
  warnUnpriced(question, limits.log)
  let asked: Asked
  let admitted = call
  let decided = question
  try {
    asked = await decide(question, limits)
    const output = asked.decision.lease === null ? affordable(question, asked) : null
    if (output !== null) {
      // Only a request whose budget is nearly spent is asked about twice.
      const [first] = question.reckonings
      if (first !== undefined) admitted = withOutput(call, output, first)
      const reckonings = question.reckonings.map((each) => shortened(each, output))
      decided = { ...question, reckonings }
      asked = await decide(decided, limits)
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const tookMs = performance.now() - beganMs
    return { kind: 'refused', error, limit: null, rateHeaders: NO_HEADERS, tookMs }
  }
  const { decision, claims } = asked
  const { lease, standings } = decision
  const tookMs = performance.now() - beganMs
  const headers = rateHeaders(claims, standings)
  if (lease !== null) {
    const reservation = reservationOf(decided, lease, limits)
    return { kind: 'admitted', call: admitted, lease, reservation, rateHeaders: headers, tookMs }
  }
  if (x.cancellation.reason !== null) {
    const error = x.cancellation.reason
    return { kind: 'refused', error, limit: null, rateHeaders: headers, tookMs }
  }
  return {
    kind: 'refused',
    ...refusedBy(claims, decision, limits.metrics),
    rateHeaders: headers,
    tookMs,
  }
}

/** What was asked of the limits, and the decision. */
interface Asked {
  readonly claims: readonly Claim[]
  readonly decision: Decision
}

async function decide(question: Question, { limiter, metrics, budgets }: Limits): Promise<Asked> {
  const claims = claimed(question)
  const { x, identity, modelName, reckonings } = question
  const decision = await limiter.admit({
    requestId: x.id,
    accountId: identity.accountId,
    demands: claims.map(({ demand }) => demand),
    unsettled: rowOf(question, modelName, dearestOf(reckonings)),
  })
  // A process that decides alone knows its share of a budget, not the budget.
  const { closed, lease, standings } = decision
  const isAlone = closed || lease?.taken === 'nothing'
  if (!isAlone) budgets?.decided(claims, decision)
  for (const { scope, kind, ratio } of isAlone
    ? []
    : budgetsUsed(claims, standings, lease !== null)) {
    metrics.levels.budgetUsed(scope, kind, ratio)
  }
  return { claims, decision }
}

/** The reckoning with the highest cost; an unknown cost counts as the lowest. */
function dearestOf(reckonings: readonly Reckoning[]): Reckoning {
  return reckonings.reduce((dearest, each) =>
    (each.nanoUsd ?? -1) > (dearest.nanoUsd ?? -1) ? each : dearest,
  )
}

function claimed(question: Question): Claim[] {
  let most = NOTHING
  let isAssumed = false
  for (const [index, amount] of amountsOf(question).entries()) {
    if (amount.nanoUsd > most.nanoUsd) isAssumed = question.reckonings[index]?.isPriced === false
    most = larger(most, amount)
  }
  return claimsOf(question.limits, { ...most, isAssumed })
}

/** The most that one attempt on each candidate may use, as far as the limits ask for it. */
function amountsOf({ x, limits, candidates, reckonings }: Question): Amount[] {
  const needs = needsOf(limits)
  const { limiting } = x.generation.snapshot.config
  return reckonings.map((reckoning, index) =>
    amountOf(reckoning, candidates[index]?.model ?? '', needs, limiting),
  )
}

/** Null if nothing that an attempt uses is limited. */
function reservationOf(question: Question, lease: Lease, { limiter }: Limits): Reservation | null {
  const { x, call, limits, candidates } = question
  const { tokens, money } = needsOf(limits)
  if (!tokens && !money) return null
  const amounts = amountsOf(question)
  const most = new Map(candidates.map((each, index) => [each, amounts[index] ?? NOTHING]))
  return new Reservation({ x, request: call.request, lease, limits, most }, limiter)
}

function warnUnpriced(
  { x, limits, modelName, candidates, reckonings }: Question,
  log: Limits['log'],
): void {
  const { generation } = x
  const at = reckonings.findIndex(({ isPriced }) => !isPriced)
  if (at === -1 || !needsOf(limits).money || !generation.isFirst(`unpriced ${modelName}`)) return
  const { unknownPrice } = generation.snapshot.config.limiting
  if (unknownPrice === 'refuse') return
  log.warn('a budget applies to a model whose price is not known', {
    model: modelName,
    upstream: candidates[at]?.target.upstream.config.name,
    reason: `unknown_price is ${unknownPrice}`,
  })
}

/** The longest reply that the rest of the budgets can pay for; null if something else is in the way. */
function affordable({ reckonings }: Question, { claims, decision }: Asked): number | null {
  const { closed, standings } = decision
  const reckoning = dearestOf(reckonings)
  if (!reckoning.isOpen || closed) return null
  let left = Number.POSITIVE_INFINITY
  for (const [index, { demand }] of claims.entries()) {
    const standing = standings[index]
    if (standing === undefined) return null
    if (demand.kind === 'usd_day' || demand.kind === 'usd_month') {
      left = Math.min(left, standing.remaining)
    } else if (standing.retryAfterMs !== 0) {
      return null
    }
  }
  return Number.isFinite(left) ? outputFor(reckoning, left) : null
}

/** The error of a request that was not admitted, and the rule that refused it. Counts the refusal. */
export function refusedBy(
  claims: readonly Claim[],
  { closed, standings }: Decision,
  metrics: Metrics,
): { readonly error: GatewayError; readonly limit: string | null } {
  const { kind, error, limit } = refusalOf(claims, standings)
  metrics.limited(kind satisfies LimitKind)
  if (!closed) return { error, limit }
  const retryAfterSeconds = error.wire.retryAfterSeconds ?? 1
  const message = 'The budget cannot be checked now; try again.'
  return { error: new GatewayError('store_unavailable', message, { retryAfterSeconds }), limit }
}
