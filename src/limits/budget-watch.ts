/**
 * Notifies when 50 %, 80 % and 100 % of a budget are used, once for each day, week or month (or once for a
 * budget that never resets) in the whole fleet: the store decides which process reports. Reservations of this
 * process do not count as used; those of other processes do, so a notification may come early.
 */
import { Lru } from '../base/lru.js'
import type { Notify } from '../observe/notification.js'
import type { ThrottleStore } from '../store/throttle.js'
import type { BudgetDemand, Demand } from '../store/ledger.js'
import { isBudget, periodOf, WINDOWS } from '../store/limit-arithmetic.js'
import type { Decision } from './reservation-types.js'
import { shownSubject, type LimitDemand } from './find-limits.js'

/** The services that a watch uses. */
interface BudgetWatchOptions {
  readonly attempts: Pick<ThrottleStore, 'take'>
  readonly notify: Notify
  /** The account with this id and the e-mail addresses of its owners; null if it does not exist. */
  readonly ownersOf: (accountId: string) => Promise<BudgetOwners | null>
  /** Whether any receiver is configured; called for each request under a budget. */
  readonly isWanted: () => boolean
}

/** The account of a budget, and who gets its reports. */
export interface BudgetOwners {
  /** The account's name. */
  readonly account: string
  readonly owners: readonly string[]
}

const NO_OWNERS = { account: null, owners: [] } as const

/** A budget in its running day, week or month. */
interface Watched {
  readonly budget: Pick<BudgetDemand, 'kind' | 'subject'>
  /** The account that it belongs to; null for a budget of a model, an upstream or a label. */
  readonly accountId: string | null
  limitNanoUsd: number
  /** Spent and reserved, by the last reply of the store. */
  usedNanoUsd: number
  /** Reserved by requests of this process. */
  heldNanoUsd: number
  endsAtMs: number
  /** The highest threshold that was reported, by any process; 0 for none. */
  reported: number
}

const THRESHOLDS = [50, 80, 100] as const
type Threshold = (typeof THRESHOLDS)[number]

/** Maximum number of watched budgets; the oldest is dropped first. */
const MAX_WATCHED = 10_000
/** A refusal with a shorter wait is caused by running requests and not by a spent budget. */
const SOON_MS = 5_000
/** For how long a report about a budget that never resets is not repeated. */
const MAX_MUTE_MS = 366 * 86_400_000
/** Maximum difference between the clocks of processes. */
const SLACK_MS = 3_600_000

/** The budgets of the requests of this process. */
export class BudgetWatch {
  private readonly options: BudgetWatchOptions
  private readonly watched = new Lru<Watched>(MAX_WATCHED)

  constructor(options: BudgetWatchOptions) {
    this.options = options
  }

  /** Records the decision on a request of an account. */
  decided(
    limitDemands: readonly LimitDemand[],
    { limitReservation, limitStates }: Decision,
    accountId: string,
  ): void {
    if (!this.options.isWanted()) return
    for (const [index, { demand }] of limitDemands.entries()) {
      const limitState = limitStates[index]
      if (!isBudget(demand) || limitState === undefined) continue
      const { limit, remaining, resetMs, retryAfterMs } = limitState
      const watched = this.watchedBudget(demand, resetMs, accountId)
      watched.limitNanoUsd = limit
      watched.usedNanoUsd = limit - remaining
      if (limitReservation !== null) watched.heldNanoUsd += demand.costNanoUsd
      // A budget that refuses a request counts as used up, even if a part of it is left.
      if (limitReservation === null && retryAfterMs > SOON_MS) {
        for (const threshold of THRESHOLDS) this.reached(watched, threshold, 'refused')
      } else this.check(watched)
    }
  }

  /**
   * Records the settlement of an admitted request with these demands; null: it is charged the reserved
   * amount.
   */
  settled(demands: readonly Demand[], chargedNanoUsd: number | null): void {
    for (const demand of demands) {
      if (!isBudget(demand)) continue
      const watched = this.watched.get(nameOf(demand))
      if (watched === undefined) continue
      const { costNanoUsd } = demand
      watched.heldNanoUsd = Math.max(0, watched.heldNanoUsd - costNanoUsd)
      watched.usedNanoUsd += (chargedNanoUsd ?? costNanoUsd) - costNanoUsd
      this.check(watched)
    }
  }

  private watchedBudget({ kind, subject }: BudgetDemand, resetMs: number, requestedBy: string): Watched {
    const budget = { kind, subject }
    const name = nameOf(budget)
    const nowMs = Date.now()
    const existing = this.watched.get(name)
    if (existing !== undefined && nowMs < existing.endsAtMs) return existing
    const unused = { limitNanoUsd: 0, usedNanoUsd: 0, heldNanoUsd: 0, reported: 0 }
    const accountId = accountOf(subject, requestedBy)
    const isTotal = WINDOWS[kind].window === 'total'
    const endsAtMs = isTotal ? Number.POSITIVE_INFINITY : nowMs + resetMs
    const watched = { budget, accountId, ...unused, endsAtMs }
    this.watched.set(name, watched)
    return watched
  }

  private check(watched: Watched): void {
    const spent = watched.usedNanoUsd - watched.heldNanoUsd
    for (const threshold of THRESHOLDS) {
      if (spent * 100 >= watched.limitNanoUsd * threshold) {
        this.reached(watched, threshold, 'used')
      }
    }
  }

  /** Notifies of the threshold, unless it or a higher one was reported. */
  private reached(watched: Watched, threshold: Threshold, reason: 'used' | 'refused'): void {
    if (threshold <= watched.reported) return
    const previous = watched.reported
    watched.reported = threshold
    const { budget, accountId, limitNanoUsd, usedNanoUsd, heldNanoUsd, endsAtMs } = watched
    const nowMs = Date.now()
    const period = WINDOWS[budget.kind].window
    const name = `notify:budget:${budget.kind}:${periodOf(budget.kind, nowMs)}:${threshold}:${budget.subject}`
    const attempt = {
      name,
      burst: 1,
      everyMs: Math.min(Math.max(0, endsAtMs - nowMs), MAX_MUTE_MS) + SLACK_MS,
    }
    const report = async (): Promise<void> => {
      // Read first: once the attempt is counted, no other process reports.
      const owned = accountId === null ? null : await this.options.ownersOf(accountId)
      const [waitMs = 0] = await this.options.attempts.take([attempt], nowMs)
      if (waitMs > 0) return
      this.options.notify({
        type: 'budget.threshold',
        atMs: nowMs,
        data: {
          budget: shownSubject(budget.subject),
          period,
          threshold_percent: threshold,
          reason,
          used_usd: dollars(usedNanoUsd - heldNanoUsd),
          limit_usd: dollars(limitNanoUsd),
          resets_at: Number.isFinite(endsAtMs) ? new Date(endsAtMs).toISOString() : null,
          ...(owned ?? NO_OWNERS),
        },
      })
    }
    // If the store is unavailable, the next request reports.
    report().catch(() => (watched.reported = previous))
  }
}

/** The account of `account:ID…`, or that of the request for a key; other subjects belong to no account. */
function accountOf(subject: string, requestedBy: string): string | null {
  if (subject.startsWith('key:')) return requestedBy
  return /^account:([^;]+)/.exec(subject)?.[1] ?? null
}

function nameOf({ kind, subject }: Watched['budget']): string {
  return `${kind} ${subject}`
}

/** US dollars, rounded to micro-dollars. */
function dollars(nanoUsd: number): number {
  return Math.round(Math.max(0, nanoUsd) / 1_000) / 1e6
}
