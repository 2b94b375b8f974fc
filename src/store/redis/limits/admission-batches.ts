/**
 * Sends admissions to Redis in batches: one command for those of one turn of the event loop, each decided
 * separately.
 */
import { unavailable } from '../../errors.js'
import type { Admission, Demand, LimitState } from '../../ledger.js'
import { Batches } from '../connection/batches.js'
import type { LedgerContext } from '../ledger/context.js'
import { limitKey } from '../ledger/key-names.js'
import { LEDGER_SCRIPTS } from '../ledger/scripts.js'
import { parseBatchReply } from '../connection/parse-replies.js'
import { writeEntry } from '../../records/entry-text.js'
import { amountsOf, holdsOf, type SharedHolds } from './encode-demands.js'

/** Requests of one command, which blocks the server for about a millisecond. */
const MAX_REQUESTS = 16
const WHAT = 'admitting a request'
/** Numbers of each limit in the reply. */
const NUMBERS = 3
const OUTCOMES = ['refused', 'taken', 'known'] as const

/** A request to the limits of one slot. */
export interface SlotRequest {
  /** The prefix of every key of the slot. */
  readonly slot: string
  /**
   * `take` all or none; `look`: read the states; `note`: write the reservation of a request admitted by
   * slices.
   */
  readonly what: 'take' | 'look' | 'note'
  readonly accountId: string
  readonly demands: readonly Demand[]
  /** The beginning of its members in sets of concurrent requests; unique to the attempt. */
  readonly member: string
  readonly leaseMs: number
  /** Null for no reservation. */
  readonly reservation: {
    readonly admission: Admission
    /** Its holds in other slots of a Cluster. */
    readonly shared: readonly SharedHolds[]
  } | null
}

/** The decision of a slot. */
export interface SlotReply {
  readonly outcome: (typeof OUTCOMES)[number]
  /** In the order of the demands; empty for a `note`. */
  readonly limitStates: readonly LimitState[]
  /** The day and month that were charged. */
  readonly period: readonly [number, number]
}

/** Sends the admissions of one ledger. */
export class AdmissionBatches {
  private readonly context: LedgerContext
  private readonly batches: Batches<SlotRequest, SlotReply>

  constructor(context: LedgerContext) {
    this.context = context
    const { isCluster } = context.names
    this.batches = new Batches(MAX_REQUESTS, isCluster, (requests) => this.send(requests))
  }

  /** Rejects as `RedisConnection` does. */
  request(request: SlotRequest): Promise<SlotReply> {
    return this.batches.add(this.context.names.isCluster ? request.slot : '', request)
  }

  private async send(requests: readonly SlotRequest[]): Promise<(SlotReply | Error)[]> {
    const { link, names, clock } = this.context
    const accountId = requests[0]?.accountId ?? ''
    const args = [clock(), names.ids(accountId), names.ends(accountId)]
    for (const request of requests) args.push(encodeRequest(request))
    const reply = parseBatchReply(
      await link.run(WHAT, LEDGER_SCRIPTS.admit, { keys: this.keysOf(requests), args }),
    )
    const [day = 0, month = 0, ...numbers] = reply.numbers
    let from = 0
    return requests.map(({ what, demands }, at) => {
      const outcome = OUTCOMES[numbers[from] ?? -1]
      from += 1
      if (outcome === undefined) {
        const why = reply.valueAt(at) ?? 'the script returned no result'
        return unavailable(`${WHAT} failed`, new Error(why))
      }
      const limitStates = (what === 'note' ? [] : demands).map((demand, each) => {
        const start = from + NUMBERS * each
        const [remaining = 0, resetMs = 0, retryAfterMs = 0] = numbers.slice(start, start + NUMBERS)
        return { limit: amountsOf(demand).limit, remaining, resetMs, retryAfterMs }
      })
      from += NUMBERS * limitStates.length
      return { outcome, limitStates, period: [day, month] }
    })
  }

  /** The keys that the script accesses: a Cluster needs them while it moves the slot. */
  private keysOf(requests: readonly SlotRequest[]): string[] {
    const { names } = this.context
    const [first] = requests
    if (!names.isCluster) return [names.reservations(first?.accountId ?? '')]
    const keys = new Set<string>()
    for (const { slot, accountId, reservation, demands } of requests) {
      keys.add(`${slot}:none`)
      if (reservation !== null) {
        for (const name of ['reservations', 'ids', 'ends'] as const)
          keys.add(names[name](accountId))
      }
      for (const { kind, subject } of demands) keys.add(limitKey(slot, kind, subject))
    }
    return Array.from(keys)
  }
}

/** A request as `admit.lua` parses it; from the holds on it is the text of the reservation. */
function encodeRequest(request: SlotRequest): string {
  const { what, accountId, leaseMs, demands, member, reservation } = request
  const { requestId, unsettled } = reservation?.admission ?? { requestId: '', unsettled: null }
  const head = [accountId, requestId, Math.ceil(leaseMs), what, Math.floor(unsettled?.atMs ?? 0)]
  const holds = JSON.stringify(holdsOf(accountId, demands, member))
  const shared = JSON.stringify(reservation?.shared ?? [])
  return `${head.join('\0')}\0${holds}\n${shared}\n${unsettled === null ? '' : writeEntry(unsettled)}`
}
