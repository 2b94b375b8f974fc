/**
 * Questions on their way to the `redis` engine's limits: those that come together go in one command, and each is
 * answered for itself. Knows no slice, and no slot but the one that it is told.
 */
import { unavailable } from '../../errors.js'
import type { Admission, Demand, LimitState } from '../../ledger.js'
import { Batches } from '../connection/batches.js'
import { ADMIT } from '../ledger/scripts.js'
import { limitName, own, type LedgerNames } from '../ledger/key-names.js'
import { holdsText, numbersOf } from './encode-demands.js'
import type { RedisLink } from '../connection/link.js'
import type { Argument } from '../connection/script.js'
import { listOf, numbersOfJson } from '../keys/read-records.js'
import { writeEntry } from '../../records/write-entry.js'

/** Questions of one command: the server does nothing else for about a millisecond. */
const AT_ONCE = 16
const WHAT = 'admitting a request'
/** Of each limit. */
const NUMBERS = 3
const OUTCOMES = ['refused', 'taken', 'known'] as const

/** What is asked of one slot. */
export interface Question {
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
export interface Answer {
  readonly outcome: (typeof OUTCOMES)[number]
  /** In the order of the demands; none of a `note`. */
  readonly limitStates: readonly LimitState[]
  /** Day and month of what was taken. */
  readonly period: readonly [number, number]
}

/** What an admission asks of its account's slot; `shared` is what other slots hold for it. */
export function questionOf(
  { accountId, requestId, leaseMs, unsettled }: Admission,
  what: 'take' | 'note',
  demands: readonly Demand[],
  member: string,
  shared = '[]',
): Question {
  const slot = own(accountId)
  const { atMs } = unsettled
  const row = writeEntry(unsettled)
  return { slot, what, accountId, requestId, leaseMs, atMs, demands, member, shared, row }
}

/** A question that waits for its command. */
interface Asking {
  readonly question: Question
  readonly text: string
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/** The way of questions to one ledger. */
export class Admissions {
  private readonly link: RedisLink
  private readonly names: LedgerNames
  /** As in `RedisLedger`. */
  private readonly clock: () => Argument
  private readonly batches: Batches<Asking>

  constructor(link: RedisLink, names: LedgerNames, clock: () => Argument) {
    this.link = link
    this.names = names
    this.clock = clock
    this.batches = new Batches(AT_ONCE, names.isCluster, (asking) => this.send(asking))
  }

  /** Rejects as `RedisLink` does. */
  ask(question: Question): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const slot = this.names.isCluster ? question.slot : ''
      this.batches.add(slot, { question, text: askingText(question), resolve, reject })
    })
  }

  private async send(asking: readonly Asking[]): Promise<void> {
    const accountId = asking[0]?.question.accountId ?? ''
    const { names } = this
    const keys = this.keysOf(asking)
    const args = [this.clock(), names.ids(accountId), names.ends(accountId)]
    for (const { text } of asking) args.push(text)
    try {
      const [text, ...failures] = listOf(await this.link.run(WHAT, ADMIT, keys, args))
      tell(asking, numbersOfJson(text), failures)
    } catch (error) {
      for (const { reject } of asking) reject(error)
    }
  }

  /** All that the script touches: a Cluster that moves the slot must know. */
  private keysOf(asking: readonly Asking[]): string[] {
    const { names } = this
    const keys = new Set<string>()
    for (const { question } of asking) {
      const { slot, accountId, requestId, demands } = question
      if (!names.isCluster) return [names.open(accountId)]
      keys.add(`${slot}:none`)
      if (requestId !== '') {
        for (const of of ['open', 'ids', 'ends'] as const) keys.add(names[of](accountId))
      }
      for (const { kind, subject } of demands) keys.add(limitName(slot, kind, subject))
    }
    return Array.from(keys)
  }
}

/** A question as `ADMIT` takes it apart; from the holds on it is what the reservation says. */
function askingText(question: Question): string {
  const { what, accountId, requestId, leaseMs, atMs, demands, member, shared, row } = question
  const request = `${accountId}\0${requestId}\0${Math.ceil(leaseMs)}\0${what}\0${Math.floor(atMs)}`
  return `${request}\0${holdsText(accountId, demands, member)}\n${shared}\n${row}`
}

function tell(
  asking: readonly Asking[],
  numbers: readonly number[],
  failures: readonly unknown[],
): void {
  const [day = 0, month = 0] = numbers
  let from = 2
  for (const [at, { question, resolve, reject }] of asking.entries()) {
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
      standingAt(numbers, from + NUMBERS * each, demand),
    )
    from += NUMBERS * demands.length
    resolve({ outcome, limitStates, period: [day, month] })
  }
}

function standingAt(numbers: readonly number[], at: number, demand: Demand): LimitState {
  return {
    limit: numbersOf(demand).limit,
    remaining: numbers[at] ?? 0,
    resetMs: numbers[at + 1] ?? 0,
    retryAfterMs: numbers[at + 2] ?? 0,
  }
}
