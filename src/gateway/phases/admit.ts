/**
 * Decides whether a request may run: computes the most that it may use, asks all its limits in one step, and reserves
 * that amount. Nothing has been sent to an upstream before this.
 */
import type { Identity } from '../../accounts/account.js'
import { GatewayError } from '../../errors.js'
import type { UsageRow } from '../../ledger/row.js'
import type { BudgetWatch } from '../../limits/budget-watch.js'
import type {
  Decision,
  LimitReservation,
  AdmissionRequest,
} from '../../limits/limit-reservation.js'
import type { Limiter } from '../../limits/limiter.js'
import {
  limitDemandsOf,
  needsOf,
  NO_LIMITS,
  type LimitDemand,
  type Limit,
} from '../../limits/rules.js'
import { budgetsUsed, rateHeaders, refusalOf, type LimitKind } from '../../limits/limit-refusal.js'
import type { Logger } from '../../observe/log/log.js'
import type { Metrics } from '../../observe/metrics/hops.js'
import {
  outputFor,
  shortened,
  withOutput,
  type CostEstimate,
} from '../reservation/estimate-cost.js'
import type { Exchange } from '../exchange.js'
import { amountOf, larger, NOTHING, type Amount } from '../reservation/reserved-amount.js'
import { estimateCandidateCost } from '../reservation/estimate-candidate-cost.js'
import { Reservation } from '../reservation/reservation.js'
import { provisionalEntry } from '../reservation/provisional-entry.js'
import type { Candidate } from './choose.js'
import type { Call } from './receive.js'

/** What decides on limits, and what counts refusals. */
export interface LimitServices {
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
  readonly limitReservation: LimitReservation
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
export interface RoutedRequest {
  readonly x: Exchange
  readonly identity: Identity
  readonly clientRequestId: string | null
  readonly call: Call
  readonly candidates: readonly [Candidate, ...Candidate[]]
}

/** An routed with the limits that apply, and the most that it may use with each candidate. */
interface LimitCheck extends RoutedRequest {
  readonly modelName: string
  readonly limits: readonly Limit[]
  readonly estimates: readonly CostEstimate[]
}

const NO_HEADERS: readonly string[] = []

/**
 * Asks all limits that apply; at once if none does. The reservation covers the most expensive candidate. Refuses with
 * `rate_limited`, `forbidden` and `malformed_request` if `limiting` refuses a model of unknown price or length, and
 * `store_unavailable` if a budget cannot be checked.
 */
export function admit(
  routed: RoutedRequest,
  limits: LimitServices,
): Admission | Promise<Admission> {
  const { x, identity, call, candidates } = routed
  const [{ target }] = candidates
  const asked = call.request.model
  const modelName = x.generation.limitedAs(asked, target)
  const upstream = target.upstream.config.name
  const rules = x.generation.limits.of({ identity, model: asked, modelName, upstream })
  if (rules === NO_LIMITS) {
    const limitReservation = limits.limiter.note(new Unlimited(routed, modelName))
    const reservation = null
    return {
      kind: 'admitted',
      call,
      limitReservation,
      reservation,
      rateHeaders: NO_HEADERS,
      tookMs: null,
    }
  }
  const { generation } = x
  const estimates = candidates.map((each) => estimateCandidateCost(generation, call.request, each))
  const { clientRequestId } = routed
  const check = { x, identity, clientRequestId, call, candidates, modelName, estimates }
  return ask({ ...check, limits: rules }, limits)
}

const NO_DEMANDS: AdmissionRequest['demands'] = []

/**
 * The admissionRequest of a request that nothing limits. The most that it may use, for which the prompt has to be counted, is
 * computed only if it runs for so long that the ledger records it.
 */
class Unlimited implements AdmissionRequest {
  readonly requestId: string
  readonly accountId: string
  readonly demands = NO_DEMANDS
  private readonly routed: RoutedRequest
  private readonly modelName: string

  constructor(routed: RoutedRequest, modelName: string) {
    this.requestId = routed.x.id
    this.accountId = routed.identity.accountId
    this.routed = routed
    this.modelName = modelName
  }

  get unsettled(): UsageRow {
    const { routed, modelName } = this
    const { x, call, candidates } = routed
    return rowOf(
      routed,
      modelName,
      estimateCandidateCost(x.generation, call.request, candidates[0]),
    )
  }
}

function rowOf(routed: RoutedRequest, modelName: string, most: CostEstimate): UsageRow {
  const { x, identity, clientRequestId, call, candidates } = routed
  const { request } = call
  const [{ target, model }] = candidates
  const provisional = { x, identity, clientRequestId, request, target, model, modelName }
  return provisionalEntry(provisional, most)
}

async function ask(check: LimitCheck, limits: LimitServices): Promise<Admission> {
  const { x, call } = check
  const beganMs = performance.now()
  warnUnpriced(check, limits.log)
  let asked: CheckedLimits
  let admitted = call
  let decided = check
  try {
    asked = await decide(check, limits)
    const output = asked.decision.limitReservation === null ? affordable(check, asked) : null
    if (output !== null) {
      // Only a request whose budget is nearly spent is asked about twice.
      const [first] = check.estimates
      if (first !== undefined) admitted = withOutput(call, output, first)
      const estimates = check.estimates.map((each) => shortened(each, output))
      decided = { ...check, estimates }
      asked = await decide(decided, limits)
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const tookMs = performance.now() - beganMs
    return { kind: 'refused', error, limit: null, rateHeaders: NO_HEADERS, tookMs }
  }
  const { decision, limitDemands } = asked
  const { limitReservation, limitStates } = decision
  const tookMs = performance.now() - beganMs
  const headers = rateHeaders(limitDemands, limitStates)
  if (limitReservation !== null) {
    const reservation = reservationOf(decided, limitReservation, limits)
    return {
      kind: 'admitted',
      call: admitted,
      limitReservation,
      reservation,
      rateHeaders: headers,
      tookMs,
    }
  }
  if (x.cancellation.reason !== null) {
    const error = x.cancellation.reason
    return { kind: 'refused', error, limit: null, rateHeaders: headers, tookMs }
  }
  return {
    kind: 'refused',
    ...refusedBy(limitDemands, decision, limits.metrics),
    rateHeaders: headers,
    tookMs,
  }
}

/** What was asked of the limits, and the decision. */
interface CheckedLimits {
  readonly limitDemands: readonly LimitDemand[]
  readonly decision: Decision
}

async function decide(
  check: LimitCheck,
  { limiter, metrics, budgets }: LimitServices,
): Promise<CheckedLimits> {
  const limitDemands = limitDemandsFor(check)
  const { x, identity, modelName, estimates } = check
  const decision = await limiter.admit({
    requestId: x.id,
    accountId: identity.accountId,
    demands: limitDemands.map(({ demand }) => demand),
    unsettled: rowOf(check, modelName, mostExpensiveOf(estimates)),
  })
  // A process that decides alone knows its share of a budget, not the budget.
  const { closed, limitReservation, limitStates } = decision
  const isAlone = closed || limitReservation?.taken === 'nothing'
  if (!isAlone) budgets?.decided(limitDemands, decision)
  for (const { scope, kind, ratio } of isAlone
    ? []
    : budgetsUsed(limitDemands, limitStates, limitReservation !== null)) {
    metrics.levels.budgetUsed(scope, kind, ratio)
  }
  return { limitDemands, decision }
}

/** The estimate with the highest cost; an unknown cost counts as the lowest. */
function mostExpensiveOf(estimates: readonly CostEstimate[]): CostEstimate {
  return estimates.reduce((mostExpensive, each) =>
    (each.nanoUsd ?? -1) > (mostExpensive.nanoUsd ?? -1) ? each : mostExpensive,
  )
}

function limitDemandsFor(check: LimitCheck): LimitDemand[] {
  let most = NOTHING
  let isAssumed = false
  for (const [index, amount] of amountsOf(check).entries()) {
    if (amount.nanoUsd > most.nanoUsd) isAssumed = check.estimates[index]?.isPriced === false
    most = larger(most, amount)
  }
  return limitDemandsOf(check.limits, { ...most, isAssumed })
}

/** The most that one attempt on each candidate may use, as far as the limits ask for it. */
function amountsOf({ x, limits, candidates, estimates }: LimitCheck): Amount[] {
  const needs = needsOf(limits)
  const { limiting } = x.generation.snapshot.config
  return estimates.map((estimate, index) =>
    amountOf(estimate, candidates[index]?.model ?? '', needs, limiting),
  )
}

/** Null if nothing that an attempt uses is limited. */
function reservationOf(
  check: LimitCheck,
  limitReservation: LimitReservation,
  { limiter }: LimitServices,
): Reservation | null {
  const { x, call, limits, candidates } = check
  const { tokens, money } = needsOf(limits)
  if (!tokens && !money) return null
  const amounts = amountsOf(check)
  const most = new Map(candidates.map((each, index) => [each, amounts[index] ?? NOTHING]))
  return new Reservation({ x, request: call.request, limitReservation, limits, most }, limiter)
}

function warnUnpriced(
  { x, limits, modelName, candidates, estimates }: LimitCheck,
  log: LimitServices['log'],
): void {
  const { generation } = x
  const at = estimates.findIndex(({ isPriced }) => !isPriced)
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
function affordable(
  { estimates }: LimitCheck,
  { limitDemands, decision }: CheckedLimits,
): number | null {
  const { closed, limitStates } = decision
  const estimate = mostExpensiveOf(estimates)
  if (!estimate.isOpen || closed) return null
  let left = Number.POSITIVE_INFINITY
  for (const [index, { demand }] of limitDemands.entries()) {
    const limitState = limitStates[index]
    if (limitState === undefined) return null
    if (demand.kind === 'usd_day' || demand.kind === 'usd_month') {
      left = Math.min(left, limitState.remaining)
    } else if (limitState.retryAfterMs !== 0) {
      return null
    }
  }
  return Number.isFinite(left) ? outputFor(estimate, left) : null
}

/** The error of a request that was not admitted, and the rule that refused it. Counts the refusal. */
export function refusedBy(
  limitDemands: readonly LimitDemand[],
  { closed, limitStates }: Decision,
  metrics: Metrics,
): { readonly error: GatewayError; readonly limit: string | null } {
  const { kind, error, limit } = refusalOf(limitDemands, limitStates)
  metrics.limited(kind satisfies LimitKind)
  if (!closed) return { error, limit }
  const retryAfterSeconds = error.wire.retryAfterSeconds ?? 1
  const message = 'The budget cannot be checked now; try again.'
  return { error: new GatewayError('store_unavailable', message, { retryAfterSeconds }), limit }
}
