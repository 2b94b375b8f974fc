/**
 * Questions on their way to the `redis` engine's limits: those that come together go in one command, and each is
 * answered for itself. Knows no slice, and no slot but the one that it is reports.
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
import { writeEntry } from '../../records/write-entry.js'

/** Questions of one command: the server does nothing else for about a millisecond. */
const MAX_REQUESTS = 16
const WHAT = 'admitting a request'
/** Of each limit. */
const NUMBERS = 3
const OUTCOMES = ['refused', 'taken', 'known'] as const

/** What is asked of one slot. */
export interface SlotRequest {
  /** What every name in the slot begins with. */
  readonly slot: string
  /** All to be had or none; how they stand; or a reservation of what is had. */
  readonly what: 'take' | 'look' | 'note'
  readonly accountId: string
  /** Empty: nothing is reserved. */
  readonly requestId: string
  readonly leaseMs: number
  /** When the request came; for `note`. */
  readonly atMs: number
  readonly demands: readonly Demand[]
  /** Of the places that it takes; unlike any other's. */
  readonly member: string
  /** What other slots of a Cluster hold for it, as JSON. */
  readonly shared: string
  /** The row of a request that nobody comes back for. */
  readonly row: string
}

/** What the slot says. */
export interface SlotReply {
  readonly outcome: (typeof OUTCOMES)[number]
  /** In the order of the demands; none of a `note`. */
  readonly limitStates: readonly LimitState[]
  /** Day and month of what was taken. */
  readonly period: readonly [number, number]
}

/** What an admission asks of its account's slot; `shared` is what other slots hold for it. */
export function slotRequestOf(
  { accountId, requestId, leaseMs, unsettled }: Admission,
  what: 'take' | 'note',
  demands: readonly Demand[],
  member: string,
  shared = '[]',
): SlotRequest {
  const slot = accountPrefix(accountId)
  const { atMs } = unsettled
  const row = writeEntry(unsettled)
  return { slot, what, accountId, requestId, leaseMs, atMs, demands, member, shared, row }
}

/** A question that waits for its command. */
interface PendingRequest {
  readonly question: SlotRequest
  readonly text: string
  readonly resolve: (answer: SlotReply) => void
  readonly reject: (error: unknown) => void
}

/** The way of questions to one ledger. */
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

  /** All that the script touches: a Cluster that moves the slot must know. */
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

/** A question as `ADMIT` takes it apart; from the holds on it is what the reservation says. */
function encodeRequest(question: SlotRequest): string {
  const { what, accountId, requestId, leaseMs, atMs, demands, member, shared, row } = question
  const request = `${accountId}\0${requestId}\0${Math.ceil(leaseMs)}\0${what}\0${Math.floor(atMs)}`
  return `${request}\0${encodeHolds(accountId, demands, member)}\n${shared}\n${row}`
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
      const why = typeof reason === 'string' ? reason : 'the script gave no answer'
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
