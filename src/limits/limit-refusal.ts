/**
 * What is told of limits: to a client that is refused, and on every answer.
 * Knows no engine; a result is handed in with what was demanded.
 */
import { GatewayError } from '../errors.js'
import type { LimitState } from '../store/ledger.js'
import type { LimitDemand } from './rules.js'

/** What a limit is about; the label of `sluice_limit_rejections_total`. */
export type LimitKind = LimitDemand['demand']['kind']

/** A refusal, and the limit that it is for. */
export interface Refusal {
  readonly kind: LimitKind
  readonly error: GatewayError
  /** The rule by its subject and its name in the configuration; null if none is at fault. */
  readonly limit: string | null
}

/** What a limit is called in the configuration. */
export const LIMIT_NAMES = {
  requests: 'requests_per_minute',
  tokens: 'tokens_per_minute',
  concurrent: 'concurrent',
  usd_day: 'usd_per_day',
  usd_month: 'usd_per_month',
} as const satisfies Record<LimitKind, string>

/** A place that comes free is not announced; a second is what clients of all kinds can do. */
const CONCURRENT_WAIT_MS = 1_000
/** SDKs wait no longer: they try again at once instead, twice, for nothing. */
const WORTH_WAITING_SECONDS = 60
/** What a rate needs to be whole again, for a request that is larger than the whole. */
const MINUTE_MS = 60_000

/**
 * Why the request is refused: of the limits that are not met the one that takes longest, and of those
 * that never can be the first. `retry-after` is in whole seconds, at least 1.
 */
export function refusalOf(
  limitDemands: readonly LimitDemand[],
  limitStates: readonly LimitState[],
): Refusal {
  let worst: { limitDemand: LimitDemand; limitState: LimitState } | null = null
  for (const [index, limitDemand] of limitDemands.entries()) {
    const limitState = limitStates[index]
    if (limitState === undefined || limitState.retryAfterMs === 0) continue
    if (worst !== null && worst.limitState.retryAfterMs === -1) break
    const isWorse =
      worst === null ||
      limitState.retryAfterMs === -1 ||
      limitState.retryAfterMs > worst.limitState.retryAfterMs
    if (isWorse) worst = { limitDemand, limitState }
  }
  if (worst === null) {
    const error = new GatewayError('bug', 'A request was refused and every limit was met.')
    return { kind: 'requests', error, limit: null }
  }
  const { limitDemand, limitState } = worst
  const never = limitState.retryAfterMs === -1
  const seconds = secondsOf(waitMs(limitDemand, limitState))
  const error = new GatewayError('rate_limited', messageOf(limitDemand, limitState, seconds), {
    retryAfterSeconds: seconds,
    ...(never || seconds > WORTH_WAITING_SECONDS ? { retryable: false } : {}),
  })
  const { kind, subject } = limitDemand.demand
  return { kind, error, limit: `${subject} ${LIMIT_NAMES[kind]}` }
}

function waitMs({ demand }: LimitDemand, { retryAfterMs, resetMs }: LimitState): number {
  if (demand.kind === 'concurrent') return Math.max(retryAfterMs, CONCURRENT_WAIT_MS)
  if (retryAfterMs >= 0) return retryAfterMs
  return Math.max(resetMs, MINUTE_MS)
}

/** Rounded up, so that who waits as long as it was told is not too early. */
function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function messageOf(
  { demand, whose, isAssumed }: LimitDemand,
  limitState: LimitState,
  seconds: number,
): string {
  const again = `try again in ${seconds} s`
  const never = limitState.retryAfterMs === -1
  switch (demand.kind) {
    case 'requests':
      return `The limit of ${counted(demand.perMinute, 'request')} a minute for ${whose} is reached; ${again}.`
    case 'tokens': {
      const limit = `${demand.perMinute} tokens a minute for ${whose}`
      const asked = `this request may need up to ${demand.cost}`
      if (never) {
        return `The limit is ${limit}, and ${asked} at once; shorten it, or lower max_completion_tokens.`
      }
      return `The limit of ${limit} leaves ${limitState.remaining}, and ${asked}; ${again}.`
    }
    case 'concurrent':
      return `The limit of ${counted(demand.limit, 'request')} at the same time for ${whose} is reached; try again when one has ended.`
    case 'usd_day':
    case 'usd_month': {
      const time = demand.kind === 'usd_day' ? 'day' : 'month'
      const limit = `The budget of $${dollars(demand.limitNanoUsd)} a ${time} for ${whose}`
      const at = isAssumed === true ? ASSUMED : ''
      const asked = `this request may cost up to $${dollars(demand.costNanoUsd)}${at}`
      if (never) return `${limit} is less than what it asks: ${asked}; lower max_completion_tokens.`
      return `${limit} leaves $${dollars(limitState.remaining)}, and ${asked}; ${again}, or lower max_completion_tokens.`
    }
    default:
      return demand satisfies never
  }
}

/** Which settings decide what a request for a model of unknown price counts as. */
const ASSUMED =
  ' at limiting.assumed_price, since the price of the model is not known (set it under upstreams.NAME.prices)'

/** To the nano-dollar, without zeros at the end: `0.0125`. */
function dollars(nanoUsd: number): string {
  const text = (nanoUsd / 1e9).toFixed(9).replace(/0{1,9}$/, '')
  return text.endsWith('.') ? text.slice(0, -1) : text
}

/**
 * Name, value, …: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` of the tightest limit of each,
 * with the reset as OpenAI spells it (`12s`); empty where no such limit applies.
 */
export function rateHeaders(
  limitDemands: readonly LimitDemand[],
  limitStates: readonly LimitState[],
): string[] {
  const headers: string[] = []
  for (const kind of ['requests', 'tokens'] as const) {
    let tightest: LimitState | null = null
    for (const [index, { demand }] of limitDemands.entries()) {
      const limitState = limitStates[index]
      if (demand.kind !== kind || limitState === undefined) continue
      if (tightest === null || isTighter(limitState, tightest)) tightest = limitState
    }
    if (tightest === null) continue
    const { limit, remaining, resetMs } = tightest
    headers.push(`x-ratelimit-limit-${kind}`, String(limit))
    headers.push(`x-ratelimit-remaining-${kind}`, String(Math.max(0, Math.floor(remaining))))
    headers.push(`x-ratelimit-reset-${kind}`, `${Math.max(0, Math.ceil(resetMs / 1_000))}s`)
  }
  return headers
}

/** Fewer left; of two alike the smaller. */
function isTighter(one: LimitState, other: LimitState): boolean {
  if (one.remaining !== other.remaining) return one.remaining < other.remaining
  return one.limit < other.limit
}

/** How much of a budget is spent, or reserved for other requests. */
export interface BudgetUse {
  /** What the budget limits: `key`, `account`, `model`, `upstream` or `label`. */
  readonly scope: string
  readonly kind: LimitKind
  /** 0 to 1. */
  readonly ratio: number
}

/** The budgets among the limits of a request, without what an admitted request itself reserves: it may cost far less. */
export function budgetsUsed(
  limitDemands: readonly LimitDemand[],
  limitStates: readonly LimitState[],
  isAdmitted: boolean,
): readonly BudgetUse[] {
  const used: BudgetUse[] = []
  for (const [index, { demand }] of limitDemands.entries()) {
    const limitState = limitStates[index]
    if (limitState === undefined || (demand.kind !== 'usd_day' && demand.kind !== 'usd_month'))
      continue
    const { kind, subject, costNanoUsd } = demand
    const left = limitState.remaining + (isAdmitted ? costNanoUsd : 0)
    const ratio = limitState.limit <= 0 ? 1 : Math.min(1, Math.max(0, 1 - left / limitState.limit))
    used.push({ scope: subject.slice(0, subject.indexOf(':')), kind, ratio })
  }
  return used
}
