/**
 * Manages the reservation of a running request on limits of tokens and money. Admission reserves the maximum
 * of one attempt; before an attempt beside another one, or after one that the provider bills, the reservation
 * is raised.
 */
import type { LimitingConfig } from '../../config/config.js'
import { addUnits, UNITS, type UnitCounts } from '../../formats/chat/usage.js'
import { limitDemandsOf, needsOf, type Limit, type Needs } from '../../limits/find-limits.js'
import type { Limiter } from '../../limits/limiter.js'
import type { LimitReservation } from '../../limits/reservation-types.js'
import type { Demand, Raise } from '../../store/ledger.js'
import { windowAmounts } from '../../store/limit-arithmetic.js'
import type { AttemptResult } from '../attempts/attempt-result.js'
import type { RequestContext } from '../request-context.js'
import type { Candidate } from '../phases/route.js'
import type { Call } from '../phases/call.js'
import { usageOfAttempt } from './attempt-usage.js'
import type { CostEstimate } from './estimate-max-cost.js'
import { maxNanoUsd, maxTokens } from './refuse-unknown-cost.js'

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
      mostTokens: Math.max(0, needed.mostTokens - this.covered.mostTokens),
      nanoUsd: Math.max(0, needed.nanoUsd - this.covered.nanoUsd),
      units: unitsWith((unit) => Math.max(0, (needed.units[unit] ?? 0) - (this.covered.units[unit] ?? 0))),
    }
    const demands = limitDemandsOf(limits, need).flatMap(({ demand }) => moreOf(demand))
    if (demands.length > 0 && !(await this.limiter.raise(limitReservation, demands))) return false
    this.covered = larger(this.covered, needed)
    return true
  }

  /** The amount that an attempt has used, or its maximum while it runs. */
  private used(attempt: AttemptResult): Amount {
    if (attempt.outcome === null) return this.maxAmountOf(attempt.candidate)
    const { usage, rateTokens, budgetNanoUsd } = usageOfAttempt(attempt, this.reserved)
    return {
      units: usage.units ?? {},
      tokens: rateTokens,
      mostTokens: (usage.input ?? 0) + (usage.output ?? 0),
      nanoUsd: budgetNanoUsd ?? this.maxAmountOf(attempt.candidate).nanoUsd,
    }
  }

  private maxAmountOf(candidate: Candidate): Amount {
    return this.reserved.maxAmounts.get(candidate) ?? NOTHING
  }
}

/**
 * The demand as a list if it raises a limit of tokens, units or money. The request itself, and its slot, are
 * counted only at admission.
 */
function moreOf(demand: Demand): Raise['demands'] {
  switch (demand.kind) {
    case 'requests':
    case 'concurrent':
      return []
    case 'requests_total':
      return []
    default:
      if ('perMinute' in demand) return demand.cost > 0 ? [demand] : []
      return windowAmounts(demand).cost > 0 ? [demand] : []
  }
}

/** Tokens that are likely, the most tokens, money, and other units. */
export interface Amount {
  readonly tokens: number
  readonly mostTokens: number
  readonly nanoUsd: number
  readonly units: UnitCounts
}

/** The amount of a request that uses nothing. */
export const NOTHING: Amount = { tokens: 0, mostTokens: 0, nanoUsd: 0, units: {} }

/** The resources that limits restrict, and the settings for unknown lengths and prices. */
interface AmountRules {
  readonly needs: Needs
  readonly limiting: LimitingConfig
  /** The client's field with the maximum of output tokens. */
  readonly outputField?: string | undefined
}

/** The maximum that one attempt may use; 0 for what is not limited. Throws as `maxNanoUsd`. */
export function amountOf(estimate: CostEstimate, model: string, rules: AmountRules): Amount {
  const { needs, limiting, outputField } = rules
  const { assumedOutputTokens } = limiting
  const unknown = outputField === undefined ? limiting : { ...limiting, outputField }
  return {
    tokens: needs.tokens ? likelyTokens(estimate, assumedOutputTokens) : 0,
    mostTokens: needs.mostTokens ? maxTokens(estimate, model, unknown) : 0,
    nanoUsd: needs.money ? maxNanoUsd(estimate, model, unknown) : 0,
    units: needs.units ? (estimate.units ?? {}) : {},
  }
}

/** The units of which there are any. */
function unitsWith(countOf: (unit: (typeof UNITS)[number]) => number): UnitCounts {
  const counts = UNITS.map((unit) => [unit, countOf(unit)] as const)
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}

/** The sum of both amounts. */
function sum(one: Amount, other: Amount): Amount {
  return {
    tokens: one.tokens + other.tokens,
    mostTokens: one.mostTokens + other.mostTokens,
    nanoUsd: one.nanoUsd + other.nanoUsd,
    units: addUnits(one.units, other.units),
  }
}

/** The larger of each member. */
export function larger(one: Amount, other: Amount): Amount {
  return {
    tokens: Math.max(one.tokens, other.tokens),
    mostTokens: Math.max(one.mostTokens, other.mostTokens),
    nanoUsd: Math.max(one.nanoUsd, other.nanoUsd),
    units: unitsWith((unit) => Math.max(one.units[unit] ?? 0, other.units[unit] ?? 0)),
  }
}

/** Whether no member exceeds that of `other`. */
function isWithin(one: Amount, other: Amount): boolean {
  const areUnits = UNITS.every((unit) => (one.units[unit] ?? 0) <= (other.units[unit] ?? 0))
  if (!areUnits) return false
  return one.tokens <= other.tokens && one.mostTokens <= other.mostTokens && one.nanoUsd <= other.nanoUsd
}

/** The expected prompt tokens and the maximum output tokens. */
function likelyTokens({ likelyInput, output, isOpen }: CostEstimate, assumed: number): number {
  return likelyInput + (isOpen ? Math.min(assumed, output ?? assumed) : (output ?? assumed))
}
