/**
 * Decides whether a request may run: estimates the maximum that it may use, checks all its limits in one
 * step, and reserves that amount. Nothing is sent to an upstream before this.
 */
import { isChat } from '../../formats/chat/request.js'
import { GatewayError } from '../../errors.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { LimitingConfig } from '../../config/config.js'
import type { BudgetWatch } from '../../limits/budget-watch.js'
import { needsOf, NO_LIMITS, limitDemandsOf, type LimitDemand, type Limit } from '../../limits/find-limits.js'
import type { LimitKind } from '../../base/limit-members.js'
import { budgetsUsed, refusalOf } from '../../limits/limit-refusal.js'
import type { Limiter } from '../../limits/limiter.js'
import { budgetRefusal, unifiedHeaders } from '../../limits/unified-headers.js'
import { rateLimitHeaders } from '../../limits/rate-limit-headers.js'
import type { AdmissionRequest, Decision, LimitReservation } from '../../limits/reservation-types.js'
import type { Logger } from '../../observe/log.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import { isBudget, isWindowed } from '../../store/limit-arithmetic.js'
import { estimateCandidateCost } from '../charges/estimate-candidate-cost.js'
import {
  largestPartOf,
  shortened,
  withOutput,
  outputFor,
  type CostEstimate,
} from '../charges/estimate-max-cost.js'
import { maxUseOf, provisionalEntry } from '../charges/provisional-entry.js'
import { Reservation, amountOf, larger, NOTHING, type Amount } from '../charges/reservation.js'
import type { Exchange } from '../client-exchange.js'
import type { Call } from './call.js'
import type { Admitted, Refused } from './phase-results.js'

/** The services that admission uses. */
export interface LimitServices {
  readonly limiter: Limiter
  readonly metrics: Metrics
  readonly log: Pick<Logger, 'warn'>
  /** Notifies of used budgets; null: no notifications. */
  readonly budgets: BudgetWatch | null
}

/** The decision on a request. Settlement frees the reservation of an admitted one. */
type Admission = Admitted | Refused

const NO_HEADERS: readonly string[] = []
const EXACT = { call: null, reservation: null } as const
const NO_LIMIT = { limit: null, limitKind: null } as const

/**
 * Checks all limits that apply; decides at once if none does. The reservation covers the most expensive
 * candidate. Refuses with `rate_limited`, `forbidden` and `malformed_request` if `limiting` refuses a model
 * of unknown price or length, and `store_unavailable` if a budget cannot be checked.
 */
export function admit(x: Exchange, limits: LimitServices): Admission | Promise<Admission> {
  const { generation, call } = x
  const { candidates } = x.route
  const [{ target }] = candidates
  const { model } = call.request
  const modelName = generation.limitedAs(model, target)
  const rules = generation.limitsOf(x.identity, model, target)
  if (rules === NO_LIMITS) {
    const limitReservation = limits.limiter.note(new UnlimitedRequest(x, modelName))
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
  const { money } = needsOf(rules)
  const estimates = candidates.map((candidate) =>
    estimateCandidateCost(generation, call, candidate, { withUnknown: money }),
  )
  return checkLimits({ x, modelName, limits: rules, estimates }, limits)
}

async function checkLimits(check: LimitCheck, limits: LimitServices): Promise<Admission> {
  const { x } = check
  const beganMs = performance.now()
  warnUnpriced(check, limits.log)
  let checked: CheckedLimits
  let admitted = x.call
  let decided = check
  try {
    checked = await decide(check, limits)
    const output = checked.decision.limitReservation === null ? affordableOutput(check, checked) : null
    if (output !== null) {
      // Only a request whose budget is nearly spent is checked twice.
      const [first] = check.estimates
      if (first !== undefined) admitted = withOutput(x.call, output, first)
      const estimates = check.estimates.map((estimate) => shortened(estimate, output))
      decided = { ...check, estimates }
      checked = await decide(decided, limits)
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const tookMs = performance.now() - beganMs
    return { kind: 'refused', error, ...NO_LIMIT, rateHeaders: NO_HEADERS, tookMs }
  }
  const { decision, limitDemands, amounts } = checked
  const { limitReservation, limitStates } = decision
  const tookMs = performance.now() - beganMs
  const headers = rateLimitHeaders(limitDemands, limitStates)
  const isProgram = isGatewayProtocol(x)
  if (isProgram) headers.push(...unifiedHeaders(limitDemands, limitStates, limitReservation !== null))
  if (limitReservation !== null) {
    const reservation = reservationOf(decided, amounts, limitReservation, limits.limiter)
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
    return { kind: 'refused', error, ...NO_LIMIT, rateHeaders: headers, tookMs }
  }
  const refused = refusedBy(limitDemands, decision, {
    metrics: limits.metrics,
    budgetStatus: x.generation.snapshot.config.limiting.budgetStatus,
  })
  return {
    kind: 'refused',
    ...refused,
    error: isProgram ? budgetRefusal(refused.error, limitDemands, limitStates) : refused.error,
    rateHeaders: headers,
    tookMs,
  }
}

/** Whether the request is one of Claude Code's, or of a like program, whose user has signed in. */
function isGatewayProtocol({ identity, call }: Exchange): boolean {
  return identity.user !== undefined && call.dialect === 'anthropic'
}

async function decide(
  check: LimitCheck,
  { limiter, metrics, budgets }: LimitServices,
): Promise<CheckedLimits> {
  const amounts = amountsOf(check)
  const limitDemands = limitDemandsFor(check, amounts)
  const { x, modelName, estimates } = check
  const { accountId } = x.identity
  const decision = await limiter.admit({
    requestId: x.id,
    accountId,
    demands: limitDemands.map(({ demand }) => demand),
    unsettled: provisionalEntryOf(x, modelName, mostExpensiveOf(estimates)),
  })
  // A process that decides without the store sees only its own share of a budget.
  const { closed, limitReservation, limitStates } = decision
  const isAlone = closed || limitReservation?.taken === 'nothing'
  if (!isAlone) budgets?.decided(limitDemands, decision, accountId)
  for (const { scope, kind, ratio } of isAlone
    ? []
    : budgetsUsed(limitDemands, limitStates, limitReservation !== null)) {
    metrics.gauges.budgetUsed(scope, kind, ratio)
  }
  return { amounts, limitDemands, decision }
}

/** What decides on exact demands, and the status of a budget's refusal. */
type ExactAdmissionOptions = Pick<LimitServices, 'limiter' | 'metrics'> & Pick<LimitingConfig, 'budgetStatus'>

/**
 * Decides on a request whose demands are known exactly, which needs no estimate and no raised reservation;
 * one without demands is admitted at once.
 */
export async function admitDemands(
  admissionRequest: Omit<AdmissionRequest, 'demands'>,
  limitDemands: readonly LimitDemand[],
  { limiter, metrics, budgetStatus }: ExactAdmissionOptions,
): Promise<Admission> {
  const demands = limitDemands.map(({ demand }) => demand)
  if (demands.length === 0) {
    const limitReservation = limiter.note({ ...admissionRequest, demands })
    return { kind: 'admitted', ...EXACT, limitReservation, rateHeaders: NO_HEADERS, tookMs: null }
  }
  const beganMs = performance.now()
  const decision = await limiter.admit({ ...admissionRequest, demands })
  const tookMs = performance.now() - beganMs
  const headers = rateLimitHeaders(limitDemands, decision.limitStates)
  const { limitReservation } = decision
  if (limitReservation === null) {
    return {
      kind: 'refused',
      ...refusedBy(limitDemands, decision, { metrics, budgetStatus }),
      rateHeaders: headers,
      tookMs,
    }
  }
  return { kind: 'admitted', ...EXACT, limitReservation, rateHeaders: headers, tookMs }
}

/** The error of a request that was not admitted, and the rule that refused it. Counts the refusal. */
function refusedBy(
  limitDemands: readonly LimitDemand[],
  { closed, limitStates }: Decision,
  { metrics, budgetStatus }: Pick<ExactAdmissionOptions, 'metrics' | 'budgetStatus'>,
): Pick<Refused, 'error' | 'limit' | 'limitKind'> {
  const { kind, error, limit } = refusalOf(limitDemands, limitStates, budgetStatus)
  metrics.limited(kind satisfies LimitKind)
  if (!closed) return { error, limit, limitKind: kind }
  const retryAfterSeconds = error.wire.retryAfterSeconds ?? 1
  const message = 'The budget cannot be checked now; try again.'
  const away = new GatewayError('store_unavailable', message, { retryAfterSeconds })
  return { error: away, limit, limitKind: kind }
}

/** Throws `store_unavailable` if the cost of a request cannot be recorded (`ledger.when_full: refuse`). */
export function assertRecordable({ isRefusing }: { readonly isRefusing: boolean }): void {
  if (!isRefusing) return
  const message = 'The gateway cannot record what requests cost at the moment; try again.'
  throw new GatewayError('store_unavailable', message, { retryAfterSeconds: 5 })
}

/** A request with the limits that apply, and the maximum that it may use with each candidate. */
interface LimitCheck {
  readonly x: Exchange
  readonly modelName: string
  readonly limits: readonly Limit[]
  /** In the order of `candidates`. */
  readonly estimates: readonly CostEstimate[]
}

/** The demands of a request, and the decision on them. */
interface CheckedLimits {
  /** In the order of `candidates`. */
  readonly amounts: readonly Amount[]
  readonly limitDemands: readonly LimitDemand[]
  readonly decision: Decision
}

const NO_DEMANDS: AdmissionRequest['demands'] = []

/**
 * The admission request of a request without limits. Its provisional entry, for which the prompt has to be
 * counted, is computed only if the request runs for so long that the ledger records it.
 */
class UnlimitedRequest implements AdmissionRequest {
  readonly requestId: string
  readonly accountId: string
  readonly demands = NO_DEMANDS
  private readonly x: Exchange
  private readonly modelName: string

  constructor(x: Exchange, modelName: string) {
    this.requestId = x.id
    this.accountId = x.identity.accountId
    this.x = x
    this.modelName = modelName
  }

  get unsettled(): LedgerEntry {
    const { x, modelName } = this
    const estimate = estimateCandidateCost(x.generation, x.call, x.route.candidates[0], {
      withUnknown: true,
    })
    return provisionalEntryOf(x, modelName, estimate)
  }
}

/** The entry that the ledger gets if this process exits before the request is settled. */
function provisionalEntryOf(x: Exchange, modelName: string, estimate: CostEstimate): LedgerEntry {
  const { request } = x.call
  const [{ target, model }] = x.route.candidates
  return provisionalEntry({ x, request, target, model, modelName }, maxUseOf(estimate))
}

/** The estimate with the highest cost; an unknown cost counts as the lowest. */
function mostExpensiveOf(estimates: readonly CostEstimate[]): CostEstimate {
  return estimates.reduce((highest, estimate) =>
    (estimate.nanoUsd ?? -1) > (highest.nanoUsd ?? -1) ? estimate : highest,
  )
}

/** The demands on all limits, for the most expensive candidate. */
function limitDemandsFor(check: LimitCheck, amounts: readonly Amount[]): LimitDemand[] {
  let highest = NOTHING
  let [dearest] = check.estimates
  for (const [index, amount] of amounts.entries()) {
    if (amount.nanoUsd > highest.nanoUsd) dearest = check.estimates[index]
    highest = larger(highest, amount)
  }
  const advice = {
    outputField: outputFieldOf(check.x.call),
    largestPart: () => (dearest === undefined ? null : largestPartOf(dearest)),
  }
  const isAssumed = highest.nanoUsd > 0 && dearest?.isPriced === false
  return limitDemandsOf(check.limits, { ...highest, isAssumed, advice })
}

/** The field with the maximum of output tokens, by the client's format. */
const OUTPUT_FIELDS: Readonly<Record<Call['dialect'], string>> = {
  'openai-chat': 'max_completion_tokens',
  'openai-responses': 'max_output_tokens',
  anthropic: 'max_tokens',
  gemini: 'maxOutputTokens',
  converse: 'maxTokens',
}

function outputFieldOf({ dialect, body, endpoint, request }: Call): string | null {
  if (!isChat(request)) return null
  const isOlder = endpoint.operation === 'completions' || body['max_tokens'] !== undefined
  return dialect === 'openai-chat' && isOlder ? 'max_tokens' : OUTPUT_FIELDS[dialect]
}

/**
 * The maximum that one attempt on each candidate may use of the limited resources. Throws as `amountOf`.
 */
function amountsOf({ x, limits, estimates }: LimitCheck): Amount[] {
  const { limiting } = x.generation.snapshot.config
  const { candidates } = x.route
  const rules = { needs: needsOf(limits), limiting, outputField: outputFieldOf(x.call) ?? undefined }
  return estimates.map((estimate, index) => amountOf(estimate, candidates[index]?.model ?? '', rules))
}

/** The reservation of an admitted request; null if neither tokens nor units nor money are limited. */
function reservationOf(
  { x, limits }: LimitCheck,
  amounts: readonly Amount[],
  limitReservation: LimitReservation,
  limiter: Limiter,
): Reservation | null {
  const { call } = x
  const { candidates } = x.route
  const { tokens, mostTokens, money, units } = needsOf(limits)
  if (!tokens && !mostTokens && !money && !units) return null
  const maxAmounts = new Map(candidates.map((candidate, index) => [candidate, amounts[index] ?? NOTHING]))
  return new Reservation({ x, call, limitReservation, limits, maxAmounts }, limiter)
}

/** Warns once per generation that a budget applies to a model without a price. */
function warnUnpriced({ x, limits, modelName, estimates }: LimitCheck, log: Pick<Logger, 'warn'>): void {
  const { generation } = x
  const index = estimates.findIndex(({ isPriced }) => !isPriced)
  if (index === -1 || !needsOf(limits).money || !generation.isFirst(`unpriced ${modelName}`)) return
  const { unknownPrice } = generation.snapshot.config.limiting
  if (unknownPrice === 'refuse') return
  log.warn('a budget applies to a model whose price is not known', {
    model: modelName,
    upstream: x.route.candidates[index]?.target.upstream.config.name,
    reason: `unknown_price is ${unknownPrice}`,
  })
}

/**
 * The longest reply, in tokens, that the rest of the budgets pays for; null if another limit refused the
 * request.
 */
function affordableOutput(
  { x: { call }, estimates }: LimitCheck,
  { limitDemands, decision }: CheckedLimits,
): number | null {
  if (!isChat(call.request)) return null
  const { closed, limitStates } = decision
  const estimate = mostExpensiveOf(estimates)
  if (!estimate.isOpen || closed) return null
  let nanoUsd = Number.POSITIVE_INFINITY
  let tokens = Number.POSITIVE_INFINITY
  for (const [index, { demand }] of limitDemands.entries()) {
    const limitState = limitStates[index]
    if (limitState === undefined) return null
    if (isBudget(demand)) nanoUsd = Math.min(nanoUsd, limitState.remaining)
    else if (isWindowed(demand) && demand.kind !== 'requests_total') {
      tokens = Math.min(tokens, limitState.remaining)
    } else if (limitState.retryAfterMs !== 0) return null
  }
  const isLimited = Math.min(nanoUsd, tokens) !== Number.POSITIVE_INFINITY
  return isLimited ? outputFor(estimate, { nanoUsd, tokens }) : null
}
