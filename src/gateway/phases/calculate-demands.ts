/**
 * Calculates the maximum amounts that a request may use with each candidate, and the demands on its limits.
 */
import type { Identity } from '../../accounts/account.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type {
  AdmissionRequest,
  Decision,
  LimitReservation,
} from '../../limits/reservation-types.js'
import { isBudget } from '../../limits/arithmetic/budget-period.js'
import type { Limiter } from '../../limits/limiter.js'
import { limitDemandsOf, needsOf, type Limit, type LimitDemand } from '../../limits/find-limits.js'
import type { Logger } from '../../observe/log/log.js'
import type { Exchange } from '../client-exchange.js'
import { estimateCandidateCost } from '../reservation/estimate-candidate-cost.js'
import { outputFor, type CostEstimate } from '../reservation/estimate-max-cost.js'
import { maxUseOf, provisionalEntry } from '../reservation/provisional-entry.js'
import { Reservation } from '../reservation/raise-reservation.js'
import { amountOf, larger, NOTHING, type Amount } from '../reservation/reserved-amount.js'
import type { Candidate } from './choose-route.js'
import type { Call } from './receive.js'

/** A request with its route. */
export interface RoutedRequest {
  readonly x: Exchange
  readonly identity: Identity
  readonly clientRequestId: string | null
  readonly call: Call
  readonly candidates: readonly [Candidate, ...Candidate[]]
}

/** A request with the limits that apply, and the maximum that it may use with each candidate. */
export interface LimitCheck extends RoutedRequest {
  readonly modelName: string
  readonly limits: readonly Limit[]
  /** In the order of `candidates`. */
  readonly estimates: readonly CostEstimate[]
}

/** The demands of a request, and the decision on them. */
export interface CheckedLimits {
  readonly limitDemands: readonly LimitDemand[]
  readonly decision: Decision
}

const NO_DEMANDS: AdmissionRequest['demands'] = []

/**
 * The admission request of a request without limits. Its provisional entry, for which the prompt has to be
 * counted, is computed only if the request runs for so long that the ledger records it.
 */
export class UnlimitedRequest implements AdmissionRequest {
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

  get unsettled(): LedgerEntry {
    const { routed, modelName } = this
    const { x, call, candidates } = routed
    const estimate = estimateCandidateCost(x.generation, call, candidates[0], {
      withUnknown: true,
    })
    return provisionalEntryOf(routed, modelName, estimate)
  }
}

/** The entry that the ledger gets if this process exits before the request is settled. */
export function provisionalEntryOf(
  { x, identity, clientRequestId, call, candidates }: RoutedRequest,
  modelName: string,
  estimate: CostEstimate,
): LedgerEntry {
  const { request } = call
  const [{ target, model }] = candidates
  const provisional = { x, identity, clientRequestId, request, target, model, modelName }
  return provisionalEntry(provisional, maxUseOf(estimate))
}

/** The estimate with the highest cost; an unknown cost counts as the lowest. */
export function mostExpensiveOf(estimates: readonly CostEstimate[]): CostEstimate {
  return estimates.reduce((highest, estimate) =>
    (estimate.nanoUsd ?? -1) > (highest.nanoUsd ?? -1) ? estimate : highest,
  )
}

/** The demands on all limits, for the most expensive candidate. Throws as `amountOf`. */
export function limitDemandsFor(check: LimitCheck): LimitDemand[] {
  let highest = NOTHING
  let isAssumed = false
  for (const [index, amount] of amountsOf(check).entries()) {
    if (amount.nanoUsd > highest.nanoUsd) isAssumed = check.estimates[index]?.isPriced === false
    highest = larger(highest, amount)
  }
  return limitDemandsOf(check.limits, { ...highest, isAssumed })
}

/** The maximum that one attempt on each candidate may use of the limited resources. */
function amountsOf({ x, limits, candidates, estimates }: LimitCheck): Amount[] {
  const { limiting } = x.generation.snapshot.config
  const rules = { needs: needsOf(limits), limiting }
  return estimates.map((estimate, index) =>
    amountOf(estimate, candidates[index]?.model ?? '', rules),
  )
}

/** The reservation of an admitted request; null if neither tokens nor money are limited. */
export function reservationOf(
  check: LimitCheck,
  limitReservation: LimitReservation,
  limiter: Limiter,
): Reservation | null {
  const { x, call, limits, candidates } = check
  const { tokens, money } = needsOf(limits)
  if (!tokens && !money) return null
  const amounts = amountsOf(check)
  const maxAmounts = new Map(
    candidates.map((candidate, index) => [candidate, amounts[index] ?? NOTHING]),
  )
  return new Reservation({ x, call, limitReservation, limits, maxAmounts }, limiter)
}

/** Warns once per generation that a budget applies to a model without a price. */
export function warnUnpriced(
  { x, limits, modelName, candidates, estimates }: LimitCheck,
  log: Pick<Logger, 'warn'>,
): void {
  const { generation } = x
  const index = estimates.findIndex(({ isPriced }) => !isPriced)
  if (index === -1 || !needsOf(limits).money || !generation.isFirst(`unpriced ${modelName}`)) return
  const { unknownPrice } = generation.snapshot.config.limiting
  if (unknownPrice === 'refuse') return
  log.warn('a budget applies to a model whose price is not known', {
    model: modelName,
    upstream: candidates[index]?.target.upstream.config.name,
    reason: `unknown_price is ${unknownPrice}`,
  })
}

/**
 * The longest reply, in tokens, that the rest of the budgets pays for; null if another limit refused the
 * request.
 */
export function affordableOutput(
  { estimates }: LimitCheck,
  { limitDemands, decision }: CheckedLimits,
): number | null {
  const { closed, limitStates } = decision
  const estimate = mostExpensiveOf(estimates)
  if (!estimate.isOpen || closed) return null
  let remaining = Number.POSITIVE_INFINITY
  for (const [index, { demand }] of limitDemands.entries()) {
    const limitState = limitStates[index]
    if (limitState === undefined) return null
    if (isBudget(demand)) {
      remaining = Math.min(remaining, limitState.remaining)
    } else if (limitState.retryAfterMs !== 0) {
      return null
    }
  }
  return Number.isFinite(remaining) ? outputFor(estimate, remaining) : null
}
