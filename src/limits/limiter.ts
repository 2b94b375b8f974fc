/**
 * Admits requests: checks all limits of a request against the store's ledger in one step, and renews the
 * reservations of running requests. While the store is unavailable, this process enforces its share of the
 * limits (`outage-limits.ts`).
 */
import type { LimitingConfig } from '../config/config.js'
import { GatewayError } from '../errors.js'
import type { Admission, AdmissionResult, Ledger, Raise } from '../store/ledger.js'
import { LastLimitStates, OutageLimits } from './outage-limits.js'
import type {
  AdmissionRequest,
  Decision,
  EachReservation,
  LimitReservation,
  RaisedAmounts,
} from './reservation-types.js'

/** The parts and settings of a limiter. */
interface LimiterOptions {
  readonly ledger: Pick<Ledger, 'admit' | 'releaseSlots' | 'lower' | 'raise' | 'renew'>
  /** Read on every use, so that a reload takes effect at once. */
  readonly settings: () => LimitingConfig
  /** Monotonic time in ms (`performance.now`). */
  readonly now: () => number
  /**
   * Called with the error when the store becomes unavailable and this process begins to enforce limits alone.
   */
  readonly onAway?: (cause: unknown) => void
  /** Called with the length of the outage when the store is available again. */
  readonly onBack?: (elapsedMs: number) => void
  /** Called for each admission with the states of its limits in the store. */
  readonly onAdmitted?: (admissionRequest: AdmissionRequest) => void
  /** Time limit for a result of the ledger, in ms; default 2000. */
  readonly lateMs?: number
}

/**
 * A reservation that is not renewed expires after this time, which frees the slots of a process that exited.
 */
export const RESERVATION_MS = 60_000
/** Two renewals in a row may fail before a reservation expires. */
export const RENEW_MS = 20_000
/**
 * Interval of writing reservations for requests without one: unlimited requests, and those that a slice
 * admitted. A request gets its reservation in the second interval, because most requests have ended by then
 * and a reservation for each would double the load on the ledger. If the process exits, requests younger than
 * this leave no entry.
 */
const NOTE_MS = 250
/**
 * A store that fails intermittently must not begin a new outage, with a new share of the budget, each time.
 */
const CALM_MS = 2_000

/** Holds a timer until `close`. */
export class Limiter {
  private readonly options: LimiterOptions
  private readonly lastStates = new LastLimitStates()
  private readonly renewTimer: NodeJS.Timeout
  private readonly noteTimer: NodeJS.Timeout
  private readonly results: LedgerTimeout
  private running: EachReservation = () => undefined
  private local: OutageLimits | null = null
  private beganMs = 0
  private failedMs = Number.NEGATIVE_INFINITY

  constructor(options: LimiterOptions) {
    this.options = options
    this.results = new LedgerTimeout(options.lateMs)
    this.renewTimer = setInterval(() => void this.renew(), RENEW_MS).unref()
    this.noteTimer = setInterval(() => this.noteRunning(), NOTE_MS).unref()
  }

  /** True while the store is unavailable and this process enforces its share of the limits. */
  get isAway(): boolean {
    return this.local !== null
  }

  /** Sets the function that lists the reservations of running requests. */
  watch(running: EachReservation): void {
    this.running = running
  }

  /**
   * Admits a request without limits. If it runs for longer than `NOTE_MS`, a reservation is written in the
   * background, so that the ledger has an entry for it if this process exits.
   */
  note(admissionRequest: AdmissionRequest): LimitReservation {
    return { admissionRequest, taken: 'reserved', timesSeen: 0 }
  }

  /**
   * Writes reservations for requests without one that were running at the previous call too. A timer calls
   * it.
   */
  noteRunning(): void {
    this.running((limitReservation) => {
      if (limitReservation.timesSeen === 0) limitReservation.timesSeen = 1
      else if (limitReservation.timesSeen === 1) this.reserve(limitReservation)
    })
  }

  /**
   * Decides on a request. The caller must call `end` for an admitted one. Rejects only with unexpected
   * errors.
   */
  async admit(admissionRequest: AdmissionRequest): Promise<Decision> {
    const admitting = this.options.ledger.admit(admissionOf(admissionRequest))
    let result: AdmissionResult | null
    try {
      result = await this.results.wait(admitting)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.kind !== 'store_unavailable') throw error
      return this.admitLocally(admissionRequest, error)
    }
    if (result === null) return this.admitMeanwhile(admissionRequest, admitting)
    const { admitted, limitStates, isSlice } = result
    const nowMs = this.options.now()
    for (const [index, demand] of admissionRequest.demands.entries()) {
      const limitState = limitStates[index]
      // The state after a refusal does not include the request, and is valid as well.
      if (limitState !== undefined) this.lastStates.note(demand, limitState, nowMs)
    }
    // A slice decides in this process, so the store may still be unavailable.
    if (isSlice) {
      const limitReservation: LimitReservation = { admissionRequest, taken: 'slice', timesSeen: 0 }
      return { limitReservation, closed: false, limitStates }
    }
    this.storeReplied()
    if (admitted) this.options.onAdmitted?.(admissionRequest)
    return {
      limitReservation: admitted ? { admissionRequest, taken: 'reserved', timesSeen: null } : null,
      closed: false,
      limitStates,
    }
  }

  /**
   * Reserves more of the limits for a running request until it ends; resolves to false if they do not allow
   * it. Rejects only with unexpected errors.
   */
  async raise(limitReservation: LimitReservation, demands: Raise['demands']): Promise<boolean> {
    const raised = (limitReservation.raised ??= { byStore: [], locally: [], isOver: false })
    if (this.local !== null) return this.raiseLocally(this.local, raised, demands)
    const raising = this.options.ledger
      .raise(limitReservation.admissionRequest.accountId, demands)
      .then((raise) => {
        if (raise === null) return false
        raised.byStore.push(raise)
        // The request has ended meanwhile.
        if (raised.isOver) this.lower(limitReservation)
        return true
      })
    try {
      return (await this.results.wait(raising)) ?? false
    } catch (error) {
      if (!(error instanceof GatewayError) || error.kind !== 'store_unavailable') throw error
      return this.raiseLocally(this.storeFailed(error), raised, demands)
    }
  }

  /**
   * Ends an admitted request. Call it once, for every outcome, and then `settled`. `spentNanoUsd` is null if
   * the cost is unknown.
   */
  end(limitReservation: LimitReservation, spentNanoUsd: number | null): void {
    const { admissionRequest, taken, raised } = limitReservation
    if (raised !== undefined) this.local?.end(raised.locally, 0, true)
    if (taken === 'slice') this.options.ledger.releaseSlots?.(admissionRequest.requestId)
    this.local?.end(admissionRequest.demands, spentNanoUsd, taken === 'nothing')
  }

  /**
   * Releases raised amounts when the cost of the request has been settled: before that, another request could
   * take them.
   */
  settled(limitReservation: LimitReservation, settling: Promise<unknown> | null): void {
    const { raised } = limitReservation
    if (raised === undefined) return
    const release = (): void => {
      raised.isOver = true
      this.lower(limitReservation)
    }
    if (settling === null) release()
    else void settling.then(release, release)
  }

  /** Writes the reservation of work that outlives its request, if the store has none yet. */
  keep(limitReservation: LimitReservation): void {
    if (limitReservation.timesSeen !== null) this.reserve(limitReservation)
  }

  /** Records a reply of the store: ends the outage if the last failure is at least `CALM_MS` ago. */
  storeReplied(): void {
    if (this.local === null) return
    const nowMs = this.options.now()
    if (nowMs - this.failedMs < CALM_MS) return
    this.local = null
    this.options.onBack?.(nowMs - this.beganMs)
  }

  /** Renews the reservations of all running requests in one call. A timer calls it. Never rejects. */
  async renew(): Promise<void> {
    const requests: { requestId: string; accountId: string }[] = []
    this.running(({ admissionRequest, taken, timesSeen }) => {
      const { requestId, accountId } = admissionRequest
      if (taken !== 'nothing' && timesSeen === null) requests.push({ requestId, accountId })
    })
    if (requests.length === 0) return
    try {
      await this.options.ledger.renew(requests, RESERVATION_MS)
      this.storeReplied()
    } catch (error) {
      this.storeFailed(error)
    }
  }

  /** Stops all timers. */
  close(): void {
    clearInterval(this.renewTimer)
    clearInterval(this.noteTimer)
    this.results.close()
  }

  private raiseLocally(local: OutageLimits, raised: RaisedAmounts, demands: Raise['demands']): boolean {
    const { admitted } = local.admit(demands, this.options.now())
    if (admitted) raised.locally.push(...demands)
    return admitted
  }

  /** Releases raised amounts. If the store fails, they stay charged. */
  private lower({ admissionRequest, raised }: LimitReservation): void {
    for (const raise of raised?.byStore.splice(0) ?? []) {
      this.options.ledger
        .lower(admissionRequest.accountId, raise)
        .catch((error: unknown) => this.storeFailed(error))
    }
  }

  private reserve(limitReservation: LimitReservation): void {
    limitReservation.timesSeen = null
    const isTaken = limitReservation.taken === 'slice' ? ({ isTaken: true } as const) : {}
    this.options.ledger.admit({ ...admissionOf(limitReservation.admissionRequest), ...isTaken }).then(
      () => this.storeReplied(),
      // The ledger entry is written at the end of the request in any case.
      (error: unknown) => void this.storeFailed(error),
    )
  }

  private admitLocally(admissionRequest: AdmissionRequest, cause: unknown): Decision {
    const local = this.storeFailed(cause)
    const { admitted, closed, limitStates } = local.admit(admissionRequest.demands, this.options.now())
    return {
      limitReservation: admitted ? { admissionRequest, taken: 'nothing', timesSeen: null } : null,
      closed,
      limitStates,
    }
  }

  /** Decides without the ledger, whose late result may still include a reservation. */
  private admitMeanwhile(admissionRequest: AdmissionRequest, lateResult: Promise<AdmissionResult>): Decision {
    const decision = this.admitLocally(admissionRequest, new Error('the ledger does not answer in time'))
    const { limitReservation } = decision
    lateResult.then(
      ({ admitted }) => {
        if (limitReservation !== null && admitted) limitReservation.taken = 'reserved'
      },
      () => undefined,
    )
    return decision
  }

  private storeFailed(cause: unknown): OutageLimits {
    const nowMs = this.options.now()
    this.failedMs = nowMs
    if (this.local !== null) return this.local
    const local = new OutageLimits(this.lastStates, this.options.settings().away)
    this.running(({ admissionRequest }) => local.takeSlots(admissionRequest.demands))
    this.local = local
    this.beganMs = nowMs
    this.options.onAway?.(cause)
    return local
  }
}

/**
 * Copies the members one by one, because `unsettled` of an unlimited request is a getter that computes it.
 */
function admissionOf({
  requestId,
  accountId,
  demands,
  unsettled,
  leaseMs = RESERVATION_MS,
}: AdmissionRequest): Admission {
  return { requestId, accountId, demands, unsettled, leaseMs }
}

/**
 * Redis commands fail after 100 ms by the setting of their client. An embedded store has no such limit: a
 * process that was stopped in the middle of a transaction blocks all others until it continues.
 */
const TIMEOUT_MS = 2_000
const SWEEP_MS = 100

interface PendingResult {
  /** Sweeps since it began. A late sweep counts once, however late: this process may not have run. */
  sweeps: number
  isSettled: boolean
  readonly giveUp: () => void
}

/** Holds a timer while results are pending. */
class LedgerTimeout {
  private readonly maxSweeps: number
  private pending: PendingResult[] = []
  private timer: NodeJS.Timeout | null = null

  constructor(timeoutMs = TIMEOUT_MS) {
    this.maxSweeps = Math.ceil(timeoutMs / SWEEP_MS)
  }

  /** Resolves to the result, or null if it does not arrive in time. Rejects if `result` does. */
  wait<Result>(result: Promise<Result>): Promise<Result | null> {
    return new Promise((resolve, reject) => {
      const pending: PendingResult = { sweeps: 0, isSettled: false, giveUp: () => resolve(null) }
      this.pending.push(pending)
      this.timer ??= setInterval(() => this.sweep(), SWEEP_MS).unref()
      result.then(
        (value) => {
          pending.isSettled = true
          resolve(value)
        },
        (error: unknown) => {
          pending.isSettled = true
          reject(error instanceof Error ? error : new Error(String(error)))
        },
      )
    })
  }

  /** Stops the timer. */
  close(): void {
    if (this.timer !== null) clearInterval(this.timer)
    this.timer = null
  }

  private sweep(): void {
    this.pending = this.pending.filter((pending) => {
      if (pending.isSettled) return false
      pending.sweeps += 1
      // The first sweep may follow at once.
      if (pending.sweeps <= this.maxSweeps) return true
      // The result may have arrived, too: this turn reads it.
      setImmediate(pending.giveUp)
      return false
    })
    if (this.pending.length === 0) this.close()
  }
}
