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
import { LocalLimits } from './local-limits.js'
import { LastLimitStates } from './last-limit-states.js'

/** A request that wants to run; how long its reservation stands is the limiter's business. */
export type AdmissionRequest = Omit<Admission, 'leaseMs' | 'isTaken'>

/** What is held for a request that runs, from its admission to its end. */
export interface LimitReservation {
  readonly admissionRequest: AdmissionRequest
  /** What the store's counters know of it; `nothing` where this process decided alone. */
  taken: TakenFrom
  /** The store has no reservation of it, and is told only if it runs on; 2 looks make it old enough. */
  looks: 0 | 1 | null
  /** Absent until more than the admissionRequest was asked for. */
  raised?: Raised
}

/** What a request was granted beyond its admissionRequest. */
interface Raised {
  readonly byStore: Raise[]
  /** By this process alone, while the store was away. */
  readonly locally: Demand[]
  isOver: boolean
}

/**
 * What became of a admissionRequest: a limitReservation, or null. `closed`: only the store could tell, and it does not answer.
 */
export interface Decision {
  readonly limitReservation: LimitReservation | null
  readonly closed: boolean
  readonly limitStates: readonly LimitState[]
}

/** What the ledger has to know of a request that was let run, when it settles it; none where nothing limits it. */
export function storeReservationOf({
  admissionRequest,
  taken,
}: LimitReservation): Reservation | undefined {
  return admissionRequest.demands.length === 0
    ? undefined
    : { demands: admissionRequest.demands, takenFrom: taken }
}

/** Member by member: a admissionRequest may reckon one of them only when it is asked for. */
function admissionOf({ requestId, accountId, demands, unsettled }: AdmissionRequest): Admission {
  return { requestId, accountId, demands, unsettled, leaseMs: RESERVATION_MS }
}

/** Calls `visit` for the limitReservation of every request that runs. */
export type EachReservation = (visit: (limitReservation: LimitReservation) => void) => void

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

/** A reservation that is not renewed lasts this long: so long a process that died keeps its slots. */
export const RESERVATION_MS = 60_000
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
 * let in. At the second stateOf the ledger is told of them: most are over by then, and an entry for each would
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
  private readonly lastStates = new LastLimitStates()
  private readonly timer: NodeJS.Timeout
  private readonly noting: NodeJS.Timeout
  private waiting: Waiting[] = []
  private sweep: NodeJS.Timeout | null = null
  private running: EachReservation = () => undefined
  private local: LocalLimits | null = null
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
  watch(running: EachReservation): void {
    this.running = running
  }

  /**
   * Lets a request run that nothing limits. Where it runs on, a reservation is written and not waited for,
   * so that the ledger hears of it should this process die.
   */
  note(admissionRequest: AdmissionRequest): LimitReservation {
    return { admissionRequest, taken: 'reserved', looks: 0 }
  }

  /** Tells the ledger of what has run on since the last stateOf; the timer does it. */
  noteRunning(): void {
    this.running((limitReservation) => {
      if (limitReservation.looks === 0) limitReservation.looks = 1
      else if (limitReservation.looks === 1) this.reserve(limitReservation)
    })
  }

  /** Decides; what is admitted must be ended. Rejects only with what nobody foresaw. */
  async admit(admissionRequest: AdmissionRequest): Promise<Decision> {
    const asked = this.options.ledger.admit(admissionOf(admissionRequest))
    let result: AdmissionResult | null
    try {
      result = await this.inTime(asked)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.kind !== 'store_unavailable') throw error
      return this.admitLocally(admissionRequest, error)
    }
    if (result === null) return this.admitMeanwhile(admissionRequest, asked)
    const { admitted, limitStates: limitStates, isSlice } = result
    const nowMs = this.options.now()
    for (const [index, demand] of admissionRequest.demands.entries()) {
      const limitState = limitStates[index]
      // A refused request says how the limit stands without it, which is as good.
      if (limitState !== undefined) this.lastStates.note(demand, limitState, nowMs)
    }
    // A slice says nothing of the store: it may be away.
    if (isSlice)
      return {
        limitReservation: { admissionRequest, taken: 'slice', looks: 0 },
        closed: false,
        limitStates,
      }
    this.answered()
    return {
      limitReservation: admitted ? { admissionRequest, taken: 'reserved', looks: null } : null,
      closed: false,
      limitStates,
    }
  }

  /**
   * Takes more for a request that runs, until it ends; false if its limits do not allow it. Rejects only with what nobody
   * foresaw.
   */
  async raise(limitReservation: LimitReservation, demands: Raise['demands']): Promise<boolean> {
    const raised = (limitReservation.raised ??= { byStore: [], locally: [], isOver: false })
    if (this.local !== null) return this.raiseLocally(this.local, raised, demands)
    const asked = this.options.ledger
      .raise(limitReservation.admissionRequest.accountId, demands)
      .then((raise) => {
        if (raise === null) return false
        raised.byStore.push(raise)
        // The request ended, or did not wait so long.
        if (raised.isOver) this.lower(limitReservation)
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
  end(limitReservation: LimitReservation, spentNanoUsd: number | null): void {
    const { admissionRequest, taken, raised } = limitReservation
    if (raised !== undefined) {
      raised.isOver = true
      this.lower(limitReservation)
      this.local?.end(raised.locally, 0, true)
    }
    if (taken === 'slice') this.options.ledger.releaseSlots?.(admissionRequest.requestId)
    this.local?.end(admissionRequest.demands, spentNanoUsd, taken === 'nothing')
  }

  /** The store has been lastStates to work, by whoever looked. */
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
    this.running(({ admissionRequest, taken, looks }) => {
      const { requestId, accountId } = admissionRequest
      if (taken !== 'nothing' && looks === null) requests.push({ requestId, accountId })
    })
    if (requests.length === 0) return
    try {
      await this.options.ledger.renew(requests, RESERVATION_MS)
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

  private raiseLocally(local: LocalLimits, raised: Raised, demands: Raise['demands']): boolean {
    const { admitted } = local.admit(demands, this.options.now())
    if (admitted) raised.locally.push(...demands)
    return admitted
  }

  /** What the store does not take back stays charged. */
  private lower({ admissionRequest, raised }: LimitReservation): void {
    for (const raise of raised?.byStore.splice(0) ?? []) {
      this.options.ledger
        .lower(admissionRequest.accountId, raise)
        .catch((error: unknown) => this.failed(error))
    }
  }

  private reserve(limitReservation: LimitReservation): void {
    limitReservation.looks = null
    const isTaken = limitReservation.taken === 'slice' ? ({ isTaken: true } as const) : {}
    this.options.ledger
      .admit({ ...admissionOf(limitReservation.admissionRequest), ...isTaken })
      .then(
        () => this.answered(),
        // Its row is written at its end all the same.
        (error: unknown) => void this.failed(error),
      )
  }

  private admitLocally(admissionRequest: AdmissionRequest, why: unknown): Decision {
    const local = this.failed(why)
    const { admitted, closed, limitStates } = local.admit(
      admissionRequest.demands,
      this.options.now(),
    )
    return {
      limitReservation: admitted ? { admissionRequest, taken: 'nothing', looks: null } : null,
      closed,
      limitStates,
    }
  }

  /** What the ledger is late to say is not lost: it may have set something aside. */
  private admitMeanwhile(
    admissionRequest: AdmissionRequest,
    asked: Promise<AdmissionResult>,
  ): Decision {
    const decision = this.admitLocally(
      admissionRequest,
      new Error('the ledger does not answer in time'),
    )
    const { limitReservation } = decision
    asked.then(
      ({ admitted }) => {
        if (limitReservation !== null && admitted) limitReservation.taken = 'reserved'
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

  private failed(why: unknown): LocalLimits {
    const nowMs = this.options.now()
    this.failedMs = nowMs
    if (this.local !== null) return this.local
    const local = new LocalLimits(this.lastStates, this.options.settings().away)
    this.running(({ admissionRequest }) => local.takeSlots(admissionRequest.demands))
    this.local = local
    this.beganMs = nowMs
    this.options.onAway?.(why)
    return local
  }
}
