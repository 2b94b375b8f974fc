/**
 * Admits requests: checks all limits of a request against the store's ledger in one step, and renews the reservations of
 * running requests. While the store does not answer, this process enforces its share of the limits (`local-limits.ts`).
 */
import type { LimitingConfig } from '../config/config.js'
import { GatewayError } from '../errors.js'
import type { Admission, AdmissionResult, Ledger, Raise } from '../store/ledger.js'
import { AnswerTimeout } from './ledger-timeout.js'
import { LastLimitStates } from './last-limit-states.js'
import type {
  AdmissionRequest,
  Decision,
  EachReservation,
  LimitReservation,
  RaisedAmounts,
} from './limit-reservation.js'
import { LocalLimits } from './local-limits.js'

/** The parts and settings of a limiter. */
export interface LimiterOptions {
  readonly ledger: Pick<Ledger, 'admit' | 'releaseSlots' | 'lower' | 'raise' | 'renew'>
  /** Read on every use, so that a reload takes effect at once. */
  readonly settings: () => LimitingConfig
  /** Milliseconds that never go back (`performance.now`). */
  readonly now: () => number
  /** Called when the store stops answering and this process begins to enforce limits alone, with the error. */
  readonly onAway?: (why: unknown) => void
  /** Called when the store answers again, with the length of the outage. */
  readonly onBack?: (elapsedMs: number) => void
  /** Time limit for an answer of the ledger; default 2000. */
  readonly lateMs?: number
}

/** A reservation that is not renewed expires after this time, which frees the slots of a process that exited. */
export const RESERVATION_MS = 60_000
/** Two renewals in a row may fail before a reservation expires. */
export const RENEW_MS = 20_000
/**
 * Interval of writing reservations for requests without one: unlimited requests, and those that a slice admitted. A
 * request gets its reservation in the second interval, because most requests have ended by then and a reservation for
 * each would double the load on the ledger. If the process exits, requests younger than this leave no entry.
 */
export const NOTE_MS = 250
/** A store that fails intermittently must not begin a new outage, with a new share of the budget, each time. */
const CALM_MS = 2_000

/** Holds a timer until `close`. */
export class Limiter {
  private readonly options: LimiterOptions
  private readonly lastStates = new LastLimitStates()
  private readonly timer: NodeJS.Timeout
  private readonly noting: NodeJS.Timeout
  private readonly answers: AnswerTimeout
  private running: EachReservation = () => undefined
  private local: LocalLimits | null = null
  private beganMs = 0
  private failedMs = Number.NEGATIVE_INFINITY

  constructor(options: LimiterOptions) {
    this.options = options
    this.answers = new AnswerTimeout(options.now, options.lateMs)
    this.timer = setInterval(() => void this.renew(), RENEW_MS).unref()
    this.noting = setInterval(() => this.noteRunning(), NOTE_MS).unref()
  }

  /** True while the store does not answer and this process enforces its share of the limits. */
  get isAway(): boolean {
    return this.local !== null
  }

  /** Sets the function that lists the reservations of running requests. */
  watch(running: EachReservation): void {
    this.running = running
  }

  /**
   * Admits a request without limits. If it runs for longer than `NOTE_MS`, a reservation is written in the background, so
   * that the ledger has an entry for it if this process exits.
   */
  note(admissionRequest: AdmissionRequest): LimitReservation {
    return { admissionRequest, taken: 'reserved', looks: 0 }
  }

  /** Writes reservations for requests without one that were running at the previous call too. A timer calls it. */
  noteRunning(): void {
    this.running((limitReservation) => {
      if (limitReservation.looks === 0) limitReservation.looks = 1
      else if (limitReservation.looks === 1) this.reserve(limitReservation)
    })
  }

  /** Decides on a request. The caller must call `end` for an admitted one. Rejects only with unexpected errors. */
  async admit(admissionRequest: AdmissionRequest): Promise<Decision> {
    const answer = this.options.ledger.admit(admissionOf(admissionRequest))
    let result: AdmissionResult | null
    try {
      result = await this.answers.wait(answer)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.kind !== 'store_unavailable') throw error
      return this.admitLocally(admissionRequest, error)
    }
    if (result === null) return this.admitMeanwhile(admissionRequest, answer)
    const { admitted, limitStates, isSlice } = result
    const nowMs = this.options.now()
    for (const [index, demand] of admissionRequest.demands.entries()) {
      const limitState = limitStates[index]
      // The state after a refusal does not include the request, and is valid as well.
      if (limitState !== undefined) this.lastStates.note(demand, limitState, nowMs)
    }
    // A slice decides in this process, so the store may still be unavailable.
    if (isSlice) {
      const limitReservation: LimitReservation = { admissionRequest, taken: 'slice', looks: 0 }
      return { limitReservation, closed: false, limitStates }
    }
    this.answered()
    return {
      limitReservation: admitted ? { admissionRequest, taken: 'reserved', looks: null } : null,
      closed: false,
      limitStates,
    }
  }

  /**
   * Takes more of the limits for a running request, until it ends; false if they do not allow it. Rejects only with
   * unexpected errors.
   */
  async raise(limitReservation: LimitReservation, demands: Raise['demands']): Promise<boolean> {
    const raised = (limitReservation.raised ??= { byStore: [], locally: [], isOver: false })
    if (this.local !== null) return this.raiseLocally(this.local, raised, demands)
    const answer = this.options.ledger
      .raise(limitReservation.admissionRequest.accountId, demands)
      .then((raise) => {
        if (raise === null) return false
        raised.byStore.push(raise)
        // The request has ended meanwhile.
        if (raised.isOver) this.lower(limitReservation)
        return true
      })
    try {
      return (await this.answers.wait(answer)) ?? false
    } catch (error) {
      if (!(error instanceof GatewayError) || error.kind !== 'store_unavailable') throw error
      return this.raiseLocally(this.failed(error), raised, demands)
    }
  }

  /** Ends an admitted request. Call it once, for every outcome. `spentNanoUsd` is null if the cost is unknown. */
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

  /** Call when the store has answered: ends the outage if the last failure is at least `CALM_MS` ago. */
  answered(): void {
    if (this.local === null) return
    const nowMs = this.options.now()
    if (nowMs - this.failedMs < CALM_MS) return
    this.local = null
    this.options.onBack?.(nowMs - this.beganMs)
  }

  /** Renews the reservations of all running requests in one call. A timer calls it. Never rejects. */
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

  /** Stops all timers. */
  close(): void {
    clearInterval(this.timer)
    clearInterval(this.noting)
    this.answers.close()
  }

  private raiseLocally(
    local: LocalLimits,
    raised: RaisedAmounts,
    demands: Raise['demands'],
  ): boolean {
    const { admitted } = local.admit(demands, this.options.now())
    if (admitted) raised.locally.push(...demands)
    return admitted
  }

  /** Gives raised amounts back. If the store fails, they stay charged. */
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
        // The ledger entry is written at the end of the request in any case.
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

  /** Decides without the ledger, whose late answer may still have made a reservation. */
  private admitMeanwhile(
    admissionRequest: AdmissionRequest,
    answer: Promise<AdmissionResult>,
  ): Decision {
    const decision = this.admitLocally(
      admissionRequest,
      new Error('the ledger does not answer in time'),
    )
    const { limitReservation } = decision
    answer.then(
      ({ admitted }) => {
        if (limitReservation !== null && admitted) limitReservation.taken = 'reserved'
      },
      () => undefined,
    )
    return decision
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

/** Copies each member: reading `unsettled` of an unlimited request computes it. */
function admissionOf({ requestId, accountId, demands, unsettled }: AdmissionRequest): Admission {
  return { requestId, accountId, demands, unsettled, leaseMs: RESERVATION_MS }
}
