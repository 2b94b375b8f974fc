/**
 * Sends admissions to Redis in batches: one command for those of one turn of the event loop, each decided separately.
 */
import { unavailable } from '../../errors.js'
import type { Admission, Demand, LimitState } from '../../ledger.js'
import { Batches } from '../connection/batches.js'
import { ADMIT } from '../ledger/scripts.js'
import { limitKey, accountPrefix, type LedgerKeys } from '../ledger/key-names.js'
import { encodeHolds, amountsOf } from './encode-demands.js'
import type { RedisLink } from '../connection/link.js'
import type { Argument } from '../connection/script.js'
import { listOf, parseNumbers } from '../keys/read-records.js'
import { writeEntry } from '../../records/entry-text.js'

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
  /** `take` all or none; `look`: read the states; `note`: write the reservation of a request admitted by slices. */
  readonly what: 'take' | 'look' | 'note'
  readonly accountId: string
  /** Empty for no reservation. */
  readonly requestId: string
  readonly leaseMs: number
  /** Arrival of the request; for `note`. */
  readonly atMs: number
  readonly demands: readonly Demand[]
  /** The beginning of its members in sets of concurrent requests; unique to the attempt. */
  readonly member: string
  /** Its holds in other slots of a Cluster, as JSON. */
  readonly shared: string
  /** The record of the entry to write if the reservation expires. */
  readonly entry: string
}

/** The decision of a slot. */
export interface SlotReply {
  readonly outcome: (typeof OUTCOMES)[number]
  /** In the order of the demands; empty for a `note`. */
  readonly limitStates: readonly LimitState[]
  /** The day and month that were charged. */
  readonly period: readonly [number, number]
}

/** The request of an admission to its account's slot; `shared`: its holds in other slots. */
export function slotRequestOf(
  { accountId, requestId, leaseMs, unsettled }: Admission,
  what: 'take' | 'note',
  demands: readonly Demand[],
  member: string,
  shared = '[]',
): SlotRequest {
  const slot = accountPrefix(accountId)
  const { atMs } = unsettled
  const entry = writeEntry(unsettled)
  return { slot, what, accountId, requestId, leaseMs, atMs, demands, member, shared, entry }
}

/** A request that waits for its command. */
interface PendingRequest {
  readonly question: SlotRequest
  readonly text: string
  readonly resolve: (answer: SlotReply) => void
  readonly reject: (error: unknown) => void
}

/** Sends the admissions of one ledger. */
export class AdmissionBatches {
  private readonly link: RedisLink
  private readonly names: LedgerKeys
  /** As in `RedisLedger`. */
  private readonly clock: () => Argument
  private readonly batches: Batches<PendingRequest>

  constructor(link: RedisLink, names: LedgerKeys, clock: () => Argument) {
    this.link = link
    this.names = names
    this.clock = clock
    this.batches = new Batches(MAX_REQUESTS, names.isCluster, (pending) => this.send(pending))
  }

  /** Rejects as `RedisLink` does. */
  request(question: SlotRequest): Promise<SlotReply> {
    return new Promise((resolve, reject) => {
      const slot = this.names.isCluster ? question.slot : ''
      this.batches.add(slot, { question, text: encodeRequest(question), resolve, reject })
    })
  }

  private async send(pending: readonly PendingRequest[]): Promise<void> {
    const accountId = pending[0]?.question.accountId ?? ''
    const { names } = this
    const keys = this.keysOf(pending)
    const args = [this.clock(), names.ids(accountId), names.ends(accountId)]
    for (const { text } of pending) args.push(text)
    try {
      const [text, ...failures] = listOf(await this.link.run(WHAT, ADMIT, keys, args))
      resolveAll(pending, parseNumbers(text), failures)
    } catch (error) {
      for (const { reject } of pending) reject(error)
    }
  }

  /** The keys that the script accesses: a Cluster needs them while it moves the slot. */
  private keysOf(pending: readonly PendingRequest[]): string[] {
    const { names } = this
    const keys = new Set<string>()
    for (const { question } of pending) {
      const { slot, accountId, requestId, demands } = question
      if (!names.isCluster) return [names.reservations(accountId)]
      keys.add(`${slot}:none`)
      if (requestId !== '') {
        for (const of of ['reservations', 'ids', 'ends'] as const) keys.add(names[of](accountId))
      }
      for (const { kind, subject } of demands) keys.add(limitKey(slot, kind, subject))
    }
    return Array.from(keys)
  }
}

/** A request as `ADMIT` parses it; from the holds on it is the text of the reservation. */
function encodeRequest(question: SlotRequest): string {
  const { what, accountId, requestId, leaseMs, atMs, demands, member, shared, entry } = question
  const request = `${accountId}\0${requestId}\0${Math.ceil(leaseMs)}\0${what}\0${Math.floor(atMs)}`
  return `${request}\0${encodeHolds(accountId, demands, member)}\n${shared}\n${entry}`
}

function resolveAll(
  pending: readonly PendingRequest[],
  numbers: readonly number[],
  failures: readonly unknown[],
): void {
  const [day = 0, month = 0] = numbers
  let from = 2
  for (const [at, { question, resolve, reject }] of pending.entries()) {
    const outcome = OUTCOMES[numbers[from] ?? -1]
    from += 1
    if (outcome === undefined) {
      const reason = failures[failures.indexOf(at + 1) + 1]
      const why = typeof reason === 'string' ? reason : 'the script returned no result'
      reject(unavailable(`${WHAT} failed`, new Error(why)))
      continue
    }
    const demands = question.what === 'note' ? [] : question.demands
    const limitStates = demands.map((demand, each) =>
      limitStateAt(numbers, from + NUMBERS * each, demand),
    )
    from += NUMBERS * demands.length
    resolve({ outcome, limitStates, period: [day, month] })
  }
}

function limitStateAt(numbers: readonly number[], at: number, demand: Demand): LimitState {
  return {
    limit: amountsOf(demand).limit,
    remaining: numbers[at] ?? 0,
    resetMs: numbers[at + 1] ?? 0,
    retryAfterMs: numbers[at + 2] ?? 0,
  }
}
