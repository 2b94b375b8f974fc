/**
 * Admits requests: all that one is limited by is asked of the ledger in one step, what runs is kept alive
 * there, and while the store is away the process decides by itself (`local.ts`).
 * Knows no rule, no price and no HTTP.
 */
import type { LimitingConfig } from '../config/config.js'
import { GatewayError } from '../errors.js'
import type {
  Admission,
  Reservation,
  Demand,
  Ledger,
  Raise,
  LimitState,
  TakenFrom,
  AdmissionResult,
} from '../store/ledger.js'
import { Local } from './local-limits.js'
import { Seen } from './last-limit-states.js'

/** A request that wants to run; how long its reservation stands is the limiter's business. */
export type Wish = Omit<Admission, 'leaseMs' | 'isTaken'>

/** What is held for a request that runs, from its admission to its end. */
export interface Lease {
  readonly wish: Wish
  /** What the store's counters know of it; `nothing` where this process decided alone. */
  taken: TakenFrom
  /** The store has no reservation of it, and is told only if it runs on; 2 looks make it old enough. */
  looks: 0 | 1 | null
  /** Absent until more than the wish was asked for. */
  raised?: Raised
}

/** What a request was granted beyond its wish. */
interface Raised {
  readonly byStore: Raise[]
  /** By this process alone, while the store was away. */
  readonly locally: Demand[]
  isOver: boolean
}

/**
 * What became of a wish: a lease, or null. `closed`: only the store could tell, and it does not answer.
 */
export interface Decision {
  readonly lease: Lease | null
  readonly closed: boolean
  readonly standings: readonly LimitState[]
}

/** What the ledger has to know of a request that was let run, when it settles it; none where nothing limits it. */
export function claimOf({ wish, taken }: Lease): Reservation | undefined {
  return wish.demands.length === 0 ? undefined : { demands: wish.demands, takenFrom: taken }
}

/** Member by member: a wish may reckon one of them only when it is asked for. */
function admissionOf({ requestId, accountId, demands, unsettled }: Wish): Admission {
  return { requestId, accountId, demands, unsettled, leaseMs: LEASE_MS }
}

/** Calls `visit` for the lease of every request that runs. */
export type EachLease = (visit: (lease: Lease) => void) => void

/** What a limiter is given. */
export interface LimiterOptions {
  readonly ledger: Pick<Ledger, 'admit' | 'releaseSlots' | 'lower' | 'raise' | 'renew'>
  /** Read on every use, so that a reload takes effect at once. */
  readonly settings: () => LimitingConfig
  /** Milliseconds that never go back (`performance.now`). */
  readonly now: () => number
  /** Told that limits begin to be kept by this process alone, and why. */
  readonly onAway?: (why: unknown) => void
  /** Told that the store keeps them again, and how long it was away. */
  readonly onBack?: (elapsedMs: number) => void
  /** After how long a ledger that does not answer counts as away; tests are in a hurry. */
  readonly lateMs?: number
}

/** A reservation that is not renewed lasts this long: so long a process that died keeps its places. */
export const LEASE_MS = 60_000
/** Two renewals may fail. */
export const RENEW_MS = 20_000
/**
 * Redis is given up by its own client after 100 ms; an embedded store has no client, and a process that was
 * stopped in the middle of a transaction holds up all others for as long as it is.
 */
const LATE_MS = 2_000
const SWEEP_MS = 100
/**
 * How often requests without a reservation are looked at: those that nothing limits, and those that a slice
 * let in. At the second look the ledger is told of them: most are over by then, and an entry for each would
 * double what a request costs the ledger. Should the process die, such a request, if it is younger than this,
 * leaves no row.
 */
export const NOTE_MS = 250
/** A store that fails now and then must not begin an outage, with what one may spend, each time. */
const CALM_MS = 2_000

/** A question that the ledger has not answered yet. */
interface Waiting {
  readonly sinceMs: number
  isAnswered: boolean
  readonly giveUp: () => void
}

/** Holds a timer until `close`. */
export class Limiter {
  private readonly options: LimiterOptions
  private readonly seen = new Seen()
  private readonly timer: NodeJS.Timeout
  private readonly noting: NodeJS.Timeout
  private waiting: Waiting[] = []
  private sweep: NodeJS.Timeout | null = null
  private running: EachLease = () => undefined
  private local: Local | null = null
  private beganMs = 0
  private failedMs = Number.NEGATIVE_INFINITY

  constructor(options: LimiterOptions) {
    this.options = options
    this.timer = setInterval(() => void this.renew(), RENEW_MS).unref()
    this.noting = setInterval(() => this.noteRunning(), NOTE_MS).unref()
  }

  /** True while the store does not answer and this process keeps its share of the limits by itself. */
  get isAway(): boolean {
    return this.local !== null
  }

  /** Whom to ask for what runs: who runs it has a list of it, and one is enough. */
  watch(running: EachLease): void {
    this.running = running
  }

  /**
   * Lets a request run that nothing limits. Where it runs on, a reservation is written and not waited for,
   * so that the ledger hears of it should this process die.
   */
  note(wish: Wish): Lease {
    return { wish, taken: 'reserved', looks: 0 }
  }

  /** Tells the ledger of what has run on since the last look; the timer does it. */
  noteRunning(): void {
    this.running((lease) => {
      if (lease.looks === 0) lease.looks = 1
      else if (lease.looks === 1) this.reserve(lease)
    })
  }

  /** Decides; what is admitted must be ended. Rejects only with what nobody foresaw. */
  async admit(wish: Wish): Promise<Decision> {
    const asked = this.options.ledger.admit(admissionOf(wish))
    let verdict: AdmissionResult | null
    try {
      verdict = await this.inTime(asked)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.kind !== 'store_unavailable') throw error
      return this.admitLocally(wish, error)
    }
    if (verdict === null) return this.admitMeanwhile(wish, asked)
    const { admitted, limitStates: standings, isSlice } = verdict
    const nowMs = this.options.now()
    for (const [index, demand] of wish.demands.entries()) {
      const standing = standings[index]
      // A refused request says how the limit stands without it, which is as good.
      if (standing !== undefined) this.seen.note(demand, standing, nowMs)
    }
    // A slice says nothing of the store: it may be away.
    if (isSlice) return { lease: { wish, taken: 'slice', looks: 0 }, closed: false, standings }
    this.answered()
    return {
      lease: admitted ? { wish, taken: 'reserved', looks: null } : null,
      closed: false,
      standings,
    }
  }

  /**
   * Takes more for a request that runs, until it ends; false if its limits do not allow it. Rejects only with what nobody
   * foresaw.
   */
  async raise(lease: Lease, demands: Raise['demands']): Promise<boolean> {
    const raised = (lease.raised ??= { byStore: [], locally: [], isOver: false })
    if (this.local !== null) return this.raiseLocally(this.local, raised, demands)
    const asked = this.options.ledger.raise(lease.wish.accountId, demands).then((raise) => {
      if (raise === null) return false
      raised.byStore.push(raise)
      // The request ended, or did not wait so long.
      if (raised.isOver) this.lower(lease)
      return true
    })
    try {
      return (await this.inTime(asked)) ?? false
    } catch (error) {
      if (!(error instanceof GatewayError) || error.kind !== 'store_unavailable') throw error
      return this.raiseLocally(this.failed(error), raised, demands)
    }
  }

  /** The request has ended, whatever became of it; once. `spentNanoUsd` is null where it is not known. */
  end(lease: Lease, spentNanoUsd: number | null): void {
    const { wish, taken, raised } = lease
    if (raised !== undefined) {
      raised.isOver = true
      this.lower(lease)
      this.local?.end(raised.locally, 0, true)
    }
    if (taken === 'slice') this.options.ledger.releaseSlots?.(wish.requestId)
    this.local?.end(wish.demands, spentNanoUsd, taken === 'nothing')
  }

  /** The store has been seen to work, by whoever looked. */
  answered(): void {
    if (this.local === null) return
    const nowMs = this.options.now()
    if (nowMs - this.failedMs < CALM_MS) return
    this.local = null
    this.options.onBack?.(nowMs - this.beganMs)
  }

  /** Prolongs the reservations of all that runs, in one call; the timer does it. Never rejects. */
  async renew(): Promise<void> {
    const requests: { requestId: string; accountId: string }[] = []
    this.running(({ wish, taken, looks }) => {
      const { requestId, accountId } = wish
      if (taken !== 'nothing' && looks === null) requests.push({ requestId, accountId })
    })
    if (requests.length === 0) return
    try {
      await this.options.ledger.renew(requests, LEASE_MS)
      this.answered()
    } catch (error) {
      this.failed(error)
    }
  }

  /** Stops renewing. */
  close(): void {
    clearInterval(this.timer)
    clearInterval(this.noting)
    if (this.sweep !== null) clearInterval(this.sweep)
  }

  private raiseLocally(local: Local, raised: Raised, demands: Raise['demands']): boolean {
    const { admitted } = local.admit(demands, this.options.now())
    if (admitted) raised.locally.push(...demands)
    return admitted
  }

  /** What the store does not take back stays charged. */
  private lower({ wish, raised }: Lease): void {
    for (const raise of raised?.byStore.splice(0) ?? []) {
      this.options.ledger.lower(wish.accountId, raise).catch((error: unknown) => this.failed(error))
    }
  }

  private reserve(lease: Lease): void {
    lease.looks = null
    const isTaken = lease.taken === 'slice' ? ({ isTaken: true } as const) : {}
    this.options.ledger.admit({ ...admissionOf(lease.wish), ...isTaken }).then(
      () => this.answered(),
      // Its row is written at its end all the same.
      (error: unknown) => void this.failed(error),
    )
  }

  private admitLocally(wish: Wish, why: unknown): Decision {
    const local = this.failed(why)
    const { admitted, closed, standings } = local.admit(wish.demands, this.options.now())
    return { lease: admitted ? { wish, taken: 'nothing', looks: null } : null, closed, standings }
  }

  /** What the ledger is late to say is not lost: it may have set something aside. */
  private admitMeanwhile(wish: Wish, asked: Promise<AdmissionResult>): Decision {
    const decision = this.admitLocally(wish, new Error('the ledger does not answer in time'))
    const { lease } = decision
    asked.then(
      ({ admitted }) => {
        if (lease !== null && admitted) lease.taken = 'reserved'
      },
      () => undefined,
    )
    return decision
  }

  /** The ledger's answer; null where it is late. */
  private inTime<Answer>(asked: Promise<Answer>): Promise<Answer | null> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        sinceMs: this.options.now(),
        isAnswered: false,
        giveUp: () => resolve(null),
      }
      this.waiting.push(waiting)
      this.sweep ??= setInterval(() => this.giveUpLate(), SWEEP_MS).unref()
      asked.then(
        (answer) => {
          waiting.isAnswered = true
          resolve(answer)
        },
        (error: unknown) => {
          waiting.isAnswered = true
          reject(error instanceof Error ? error : new Error(String(error)))
        },
      )
    })
  }

  private giveUpLate(): void {
    const oldestMs = this.options.now() - (this.options.lateMs ?? LATE_MS)
    this.waiting = this.waiting.filter(({ isAnswered, sinceMs, giveUp }) => {
      if (!isAnswered && sinceMs <= oldestMs) giveUp()
      return !isAnswered && sinceMs > oldestMs
    })
    if (this.waiting.length > 0 || this.sweep === null) return
    clearInterval(this.sweep)
    this.sweep = null
  }

  private failed(why: unknown): Local {
    const nowMs = this.options.now()
    this.failedMs = nowMs
    if (this.local !== null) return this.local
    const local = new Local(this.seen, this.options.settings().away)
    this.running(({ wish }) => local.takePlaces(wish.demands))
    this.local = local
    this.beganMs = nowMs
    this.options.onAway?.(why)
    return local
  }
}
