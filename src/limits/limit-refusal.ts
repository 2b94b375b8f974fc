/** The error that a client receives if a limit refuses its request, and how much of each budget is used. */
import { counted } from '../base/counted.js'
import { GatewayError } from '../errors.js'
import type { LimitState, RateDemand } from '../store/ledger.js'
import {
  byMember,
  isUnitRate,
  unitOfKind,
  type LimitedUnit,
  type LimitKind,
  type WindowKind,
} from '../base/limit-members.js'
import { isBudget, isBudgetKind, WINDOWS } from '../store/limit-arithmetic.js'
import type { LimitingConfig } from '../config/config.js'
import { shownSubject, type LimitDemand } from './find-limits.js'

/** The error of a refused request, and the limit that refused it. */
interface Refusal {
  readonly kind: LimitKind
  readonly error: GatewayError
  /** The subject of the rule and its name in the configuration; null if no rule refused the request. */
  readonly limit: string | null
}

/** The names of the limits in the configuration. */
export const LIMIT_NAMES = byMember('kind', ({ name }) => name)

/** `retry-after` of a concurrency limit: the time at which a slot becomes free is unknown. */
const CONCURRENT_WAIT_MS = 1_000
/** SDKs do not wait longer than this; they would retry twice at once, without success. */
const WORTH_WAITING_SECONDS = 60
/** The time in which a rate refills completely, for a request that exceeds the whole limit. */
const MINUTE_MS = 60_000

/**
 * The refusal of a request: by the limit with the longest wait, or by the first limit that can never admit
 * it. `retry-after` is in whole seconds, at least 1; absent for a budget, and if no wait helps.
 */
export function refusalOf(
  limitDemands: readonly LimitDemand[],
  limitStates: readonly LimitState[],
  budgetStatus: LimitingConfig['budgetStatus'],
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
    const error = new GatewayError('bug', 'A request was refused although no limit refused it.')
    return { kind: 'requests', error, limit: null }
  }
  const { limitDemand, limitState } = worst
  const never = limitState.retryAfterMs === -1
  const seconds = secondsOf(waitMs(limitDemand, limitState))
  const { kind, subject } = limitDemand.demand
  const message = messageOf(limitDemand, limitState, seconds)
  const error = isBudgetKind(kind)
    ? new GatewayError('budget_exceeded', message, { status: budgetStatus })
    : new GatewayError('rate_limited', message, {
        ...(never ? {} : { retryAfterSeconds: seconds }),
        ...(never || seconds > WORTH_WAITING_SECONDS ? { retryable: false } : {}),
      })
  return { kind, error, limit: `${shownSubject(subject)} ${LIMIT_NAMES[kind]}` }
}

function waitMs({ demand }: LimitDemand, { retryAfterMs, resetMs }: LimitState): number {
  if (demand.kind === 'concurrent') return Math.max(retryAfterMs, CONCURRENT_WAIT_MS)
  if (retryAfterMs >= 0) return retryAfterMs
  return Math.max(resetMs, MINUTE_MS)
}

/** Rounded up, so that a client that waits this long is not too early. */
function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}

/** A number of units in words, such as `2 pictures`. */
export function inUnits(count: number, unit: LimitedUnit): string {
  return `${count} ${UNIT_NAMES[unit][count === 1 ? 0 : 1]}`
}

/** One of a unit, and several. */
const UNIT_NAMES: Readonly<Record<LimitedUnit, readonly [one: string, several: string]>> = {
  image: ['picture', 'pictures'],
  audio_second: ['second of sound', 'seconds of sound'],
  character: ['character', 'characters'],
  page: ['page', 'pages'],
  search: ['search', 'searches'],
  document: ['document', 'documents'],
  line: ['line', 'lines'],
}

function messageOf(
  { demand, whose, isAssumed, advice }: LimitDemand,
  limitState: LimitState,
  seconds: number,
): string {
  const again = `try again in ${seconds} s`
  const never = limitState.retryAfterMs === -1
  const field = advice?.outputField ?? null
  const lower = field === null ? '' : `, or lower ${field}`
  switch (demand.kind) {
    case 'requests':
      return `The limit of ${counted(demand.perMinute, 'request')} a minute for ${whose} is reached; ${again}.`
    case 'tokens': {
      const limit = `${demand.perMinute} tokens a minute for ${whose}`
      const need = `this request may need up to ${demand.cost}`
      if (never) {
        return `The limit is ${limit}, and ${need} at once; shorten it${lower}.`
      }
      return `The limit of ${limit} leaves ${limitState.remaining}, and ${need}; ${again}.`
    }
    case 'concurrent':
      return `The limit of ${counted(demand.limit, 'request')} at the same time for ${whose} is reached; try again when one has ended.`
    case 'requests_total':
      return `The limit of ${counted(demand.limit, 'request')} in all for ${whose} is reached; it does not reset.`
    case 'tokens_day':
    case 'tokens_week':
    case 'tokens_month':
    case 'tokens_total': {
      const limit = `The limit of ${demand.limit} tokens ${timeOf(demand.kind)} for ${whose}`
      const need = `this request may need up to ${demand.cost}`
      if (demand.cost > demand.limit) {
        return `${limit} is too small for this request: ${need}; shorten it${lower}.`
      }
      const left = `${limit} leaves ${limitState.remaining}, and ${need}`
      return withHelp(left, waitOf('it', limitState, seconds), `shorten it${lower}`)
    }
    case 'usd_day':
    case 'usd_week':
    case 'usd_month':
    case 'usd_total': {
      const limit = `The budget of $${dollars(demand.limitNanoUsd)} ${timeOf(demand.kind)} for ${whose}`
      const assumption = isAssumed === true ? ASSUMED : ''
      const need = `this request may cost up to $${dollars(demand.costNanoUsd)}${assumption}`
      const part = advice?.largestPart() ?? null
      const most = part === null ? '' : ` (${part})`
      // A native request, whose format the gateway does not know, costs what its upstream is set to cost.
      const change = advice === undefined ? '' : field === null ? 'send less' : `lower ${field}`
      if (demand.costNanoUsd > demand.limitNanoUsd) {
        return withHelp(`${limit} is too small for this request: ${need}${most}`, change)
      }
      const left = `${limit} leaves $${dollars(limitState.remaining)}, and ${need}${most}`
      return withHelp(left, waitOf('the budget', limitState, seconds), change)
    }
    default: {
      const { perMinute, cost } = demand satisfies RateDemand
      const unit = isUnitRate(demand.kind) ? unitOfKind(demand.kind) : 'document'
      const limit = `${inUnits(perMinute, unit)} a minute for ${whose}`
      const need = `this request may need up to ${inUnits(cost, unit)}`
      if (never) return `The limit is ${limit}, and ${need} at once; no waiting helps, send less at once.`
      return `The limit of ${limit} leaves ${limitState.remaining}, and ${need}; ${again}.`
    }
  }
}

/**
 * What a client can wait for: the end of the window, or, before it, what running requests return when they
 * end, or a store that is away; also for an amount that never resets. Empty if no wait helps.
 */
function waitOf(name: string, { retryAfterMs, resetMs }: LimitState, seconds: number): string {
  if (retryAfterMs === -1) return ''
  const renews = resetMs > 0 && retryAfterMs >= resetMs
  return `${name} ${renews ? 'renews' : 'may have room'} in ${seconds} s`
}

/** A sentence, and what helps; an empty text is no help. */
function withHelp(sentence: string, ...helps: readonly string[]): string {
  const help = helps.filter((text) => text !== '').join(', or ')
  return help === '' ? `${sentence}.` : `${sentence}; ${help}.`
}

/** `a day`, or `in all`. */
function timeOf(kind: WindowKind): string {
  const { window } = WINDOWS[kind]
  return window === 'total' ? 'in all' : `a ${window}`
}

/** Names the settings for models of unknown price. */
const ASSUMED =
  ' at limiting.assumed_price, since the price of the model is not known (set it under upstreams.NAME.prices)'

/** To the nano-dollar, without zeros at the end: `0.0125`. */
export function dollars(nanoUsd: number): string {
  const text = (nanoUsd / 1e9).toFixed(9).replace(/0{1,9}$/, '')
  return text.endsWith('.') ? text.slice(0, -1) : text
}

/** The part of a budget that is spent or reserved for other requests. */
interface BudgetUse {
  /** `key`, `account`, `model`, `upstream` or `label`. */
  readonly scope: string
  readonly kind: LimitKind
  /** 0 to 1. */
  readonly ratio: number
}

/** The use of the budgets of a request, without its own reservation, since it may cost far less. */
export function budgetsUsed(
  limitDemands: readonly LimitDemand[],
  limitStates: readonly LimitState[],
  isAdmitted: boolean,
): readonly BudgetUse[] {
  const uses: BudgetUse[] = []
  for (const [index, { demand }] of limitDemands.entries()) {
    const limitState = limitStates[index]
    if (limitState === undefined || !isBudget(demand)) continue
    const { kind, subject, costNanoUsd } = demand
    const remaining = limitState.remaining + (isAdmitted ? costNanoUsd : 0)
    const ratio = limitState.limit <= 0 ? 1 : Math.min(1, Math.max(0, 1 - remaining / limitState.limit))
    uses.push({ scope: subject.slice(0, subject.indexOf(':')), kind, ratio })
  }
  return uses
}
