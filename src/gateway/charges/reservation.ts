/**
 * Manages the reservation of a running request on limits of tokens and money. Admission reserves the maximum
 * of one attempt; before an attempt beside another one, or after one that the provider bills, the reservation
 * is raised.
 */
import type { LimitingConfig } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import { limitDemandsOf, needsOf, type Limit } from '../../limits/find-limits.js'
import type { MediaKind } from '../../ledger/price.js'
import type { Limiter } from '../../limits/limiter.js'
import type { LimitReservation } from '../../limits/reservation-types.js'
import type { Demand, Raise } from '../../store/ledger.js'
import type { AttemptResult } from '../attempts/attempt-result.js'
import type { RequestContext } from '../client-exchange.js'
import type { Candidate } from '../phases/choose-route.js'
import type { Call } from '../phases/receive.js'
import { usageOfAttempt } from './attempt-usage.js'
import type { CostEstimate } from './estimate-max-cost.js'

/** An admitted request. */
interface Reserved {
  readonly x: RequestContext
  readonly call: Call
  readonly limitReservation: LimitReservation
  readonly limits: readonly Limit[]
  /** The maximum that one attempt on each candidate may use. */
  readonly maxAmounts: ReadonlyMap<Candidate, Amount>
}

/** The reservation of one request. */
export class Reservation {
  /** A budget is among the limits. */
  readonly hasBudget: boolean
  private readonly limiter: Pick<Limiter, 'raise'>
  private readonly reserved: Reserved
  private covered: Amount = NOTHING
  /** The candidates of attempts that `cover` was called for and that have not begun. */
  private readonly expected: Candidate[] = []
  /** Raises run in sequence. */
  private last: Promise<unknown> = Promise.resolve()

  constructor(reserved: Reserved, limiter: Pick<Limiter, 'raise'>) {
    this.limiter = limiter
    this.reserved = reserved
    this.hasBudget = needsOf(reserved.limits).money
    for (const maxAmount of reserved.maxAmounts.values()) this.covered = larger(this.covered, maxAmount)
  }

  /**
   * Raises the reservation until it covers an attempt on `next` in addition to `attempts`. Returns true at
   * once if it is covered already; resolves to false if a limit does not allow the raise. Call `decided` when
   * the attempt is among the attempts, or will not be made.
   */
  cover(next: Candidate, attempts: readonly AttemptResult[]): true | Promise<boolean> {
    this.expected.push(next)
    let needed = NOTHING
    for (const candidate of this.expected) needed = sum(needed, this.maxAmountOf(candidate))
    for (const attempt of attempts) needed = sum(needed, this.used(attempt))
    if (isWithin(needed, this.covered)) return true
    const raised = this.last.then(() => this.raise(needed))
    this.last = raised.catch(() => undefined)
    return raised
  }

  /** See `cover`. */
  decided(candidate: Candidate): void {
    const index = this.expected.indexOf(candidate)
    if (index !== -1) this.expected.splice(index, 1)
  }

  private async raise(needed: Amount): Promise<boolean> {
    const { limitReservation, limits } = this.reserved
    const need = {
      tokens: Math.max(0, needed.tokens - this.covered.tokens),
      nanoUsd: Math.max(0, needed.nanoUsd - this.covered.nanoUsd),
    }
    const demands = limitDemandsOf(limits, need).flatMap(({ demand }) => moreOf(demand))
    if (demands.length > 0 && !(await this.limiter.raise(limitReservation, demands))) return false
    this.covered = larger(this.covered, needed)
    return true
  }

  /** The amount that an attempt has used, or its maximum while it runs. */
  private used(attempt: AttemptResult): Amount {
    if (attempt.outcome === null) return this.maxAmountOf(attempt.candidate)
    const { rateTokens, budgetNanoUsd } = usageOfAttempt(attempt, this.reserved)
    return {
      tokens: rateTokens,
      nanoUsd: budgetNanoUsd ?? this.maxAmountOf(attempt.candidate).nanoUsd,
    }
  }

  private maxAmountOf(candidate: Candidate): Amount {
    return this.reserved.maxAmounts.get(candidate) ?? NOTHING
  }
}

/**
 * The demand as a list if it raises a limit of tokens or money. The request itself, and its slot, are counted
 * only at admission.
 */
function moreOf(demand: Demand): Raise['demands'] {
  switch (demand.kind) {
    case 'requests':
    case 'concurrent':
      return []
    case 'tokens':
      return demand.cost > 0 ? [demand] : []
    case 'usd_day':
    case 'usd_week':
    case 'usd_month':
      return demand.costNanoUsd > 0 ? [demand] : []
    default:
      return demand satisfies never
  }
}

/** Tokens and money. */
export interface Amount {
  readonly tokens: number
  readonly nanoUsd: number
}

/** The amount of a request that uses nothing. */
export const NOTHING: Amount = { tokens: 0, nanoUsd: 0 }

/** The resources that limits restrict, and the settings for unknown lengths and prices. */
interface AmountRules {
  readonly needs: { readonly tokens: boolean; readonly money: boolean }
  readonly limiting: LimitingConfig
}

/** The maximum that one attempt may use; 0 for resources without a limit. Throws as `maxNanoUsd`. */
export function amountOf(estimate: CostEstimate, model: string, { needs, limiting }: AmountRules): Amount {
  const { assumedOutputTokens } = limiting
  return {
    tokens: needs.tokens ? likelyTokens(estimate, assumedOutputTokens) : 0,
    nanoUsd: needs.money ? maxNanoUsd(estimate, model, limiting) : 0,
  }
}

/** The sum of both amounts. */
function sum(one: Amount, other: Amount): Amount {
  return { tokens: one.tokens + other.tokens, nanoUsd: one.nanoUsd + other.nanoUsd }
}

/** The larger of each member. */
export function larger(one: Amount, other: Amount): Amount {
  return {
    tokens: Math.max(one.tokens, other.tokens),
    nanoUsd: Math.max(one.nanoUsd, other.nanoUsd),
  }
}

/** Whether no member exceeds that of `other`. */
function isWithin(one: Amount, other: Amount): boolean {
  return one.tokens <= other.tokens && one.nanoUsd <= other.nanoUsd
}

/** The expected prompt tokens and the maximum output tokens. */
function likelyTokens({ likelyInput, output, isOpen }: CostEstimate, assumed: number): number {
  return likelyInput + (isOpen ? Math.min(assumed, output ?? assumed) : (output ?? assumed))
}

/**
 * The maximum cost in nano-dollars. Throws `GatewayError` if the price, the length or the input is unknown
 * and `limiting` refuses such requests.
 */
export function maxNanoUsd(
  estimate: CostEstimate,
  model: string,
  { unknownPrice, unseenInput }: Pick<LimitingConfig, 'unknownPrice' | 'unseenInput'>,
): number {
  const { nanoUsd, price, unseen, unknownCall, unknownKind, isUnbounded } = estimate
  if (unseen !== null && unseenInput === 'refuse') throw unseenRefusal(unseen)
  if (unknownCall !== null && unknownPrice === 'refuse') throw unknownCallRefusal(unknownCall, model)
  if (unknownKind !== null && unknownPrice !== 'allow') throw unknownKindRefusal(unknownKind, model)
  if (nanoUsd !== null) return nanoUsd
  if (price !== null) {
    if (isUnbounded) throw unknownWindowRefusal(unseen ?? '', model)
    throw new GatewayError(
      'malformed_request',
      `A budget applies and the longest reply of '${model}' is not known: set max_completion_tokens in the request, or max_output_tokens of the model or limiting.unknown_length in the configuration.`,
      { param: 'max_completion_tokens' },
    )
  }
  if (unknownPrice === 'allow') return 0
  throw new GatewayError(
    'forbidden',
    `A budget applies and the price of '${model}', or of the service_tier in the request, is not known: set a price under upstreams.NAME.prices or in the catalogue, or change limiting.unknown_price.`,
    { param: 'model' },
  )
}

function unseenRefusal(param: string): GatewayError {
  const message = `A budget applies and the gateway cannot see the input that ${param} adds: send the content itself, or set limiting.unseen_input to reserve.`
  return new GatewayError('forbidden', message, { param })
}

function unknownWindowRefusal(param: string, model: string): GatewayError {
  const message = `A budget applies, the gateway cannot see the input that ${param} adds, and the context window of '${model}' is not known: send the content itself, or set context_window of the model in the configuration.`
  return new GatewayError('forbidden', message, { param })
}

function unknownCallRefusal(tool: string, model: string): GatewayError {
  const message = `A budget applies and the price of a call of '${tool}' by '${model}' is not known: set calls.${tool} of the price under upstreams.NAME.prices or in the catalogue, or change limiting.unknown_price.`
  return new GatewayError('forbidden', message, { param: 'tools' })
}

/** The keys of a price. */
const KIND_NAMES: Readonly<Record<MediaKind, string>> = {
  inputAudio: 'input_audio',
  inputImage: 'input_image',
  outputAudio: 'output_audio',
  outputImage: 'output_image',
}

function unknownKindRefusal(kind: MediaKind, model: string): GatewayError {
  const name = KIND_NAMES[kind]
  const message = `A budget applies and the price of ${name} tokens of '${model}' is not known: set ${name} under upstreams.NAME.prices or in the catalogue, or set limiting.unknown_price to allow.`
  return new GatewayError('unknown_price', message, { param: 'model' })
}
