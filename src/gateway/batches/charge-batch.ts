/**
 * Reserves what a batch may use before any of it is sent, and charges what it has used: once, to its creator.
 * The id of the entry is that of the batch, so a second settlement finds the first.
 */
import type { Identity } from '../../accounts/account.js'
import { DAY_MS } from '../../base/time-units.js'
import { addUsage } from '../../formats/chat/usage.js'
import type { ClientFormat } from '../../formats/chat/operations.js'
import { unitsText } from '../../ledger/entry-units.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { LedgerWriter } from '../../ledger/ledger-writer.js'
import { limitDemandsOf, type LimitDemand } from '../../limits/find-limits.js'
import { refusalOf } from '../../limits/limit-refusal.js'
import type { Limiter } from '../../limits/limiter.js'
import type { Exchange } from '../client-exchange.js'
import type { RequestValues } from '../dimensions/request-values.js'
import type { Candidate } from '../phases/route.js'
import { provisionalEntry } from '../charges/provisional-entry.js'
import type { Batch } from '../../policy/batch-records.js'
import type { LineUse } from './journal.js'

/** A part of a batch that is being made. */
export interface NewPart {
  readonly x: Exchange
  /** With the values of dimensions of its lines. */
  readonly identity: Identity
  readonly program: string | null
  /** The form of its client. */
  readonly ingress: ClientFormat
  /** Of its entry. */
  readonly id: string
  /** The model that the client requests. */
  readonly model: string
  readonly candidate: Candidate
  /** The batch. */
  readonly batch: string
  /** The number of its lines. */
  readonly lines: number
  /** What its lines together may use. */
  readonly most: { readonly input: number; readonly output: number; readonly nanoUsd: number | null }
}

interface ChargeServices {
  readonly limiter: Limiter
  readonly ledgerWriter: Pick<LedgerWriter, 'settle'>
  /** Counts what values of dimensions use. */
  readonly values: Pick<RequestValues, 'admitted' | 'used'>
}

/** A batch that has not ended after this time is charged what was reserved. */
export const LONGEST_MS = 31 * DAY_MS

/** The use of a part whose lines did not run, or have entries of their own. */
export const UNUSED: LineUse = { usage: {}, source: 'none', nanoUsd: 0 }

/** The entry of a part that uses its maximum. */
export function entryOfPart({
  x,
  identity,
  program,
  ingress,
  id,
  model,
  candidate,
  batch,
  most,
}: NewPart): LedgerEntry {
  const { target } = candidate
  const modelName = x.generation.limitedAs(model, target)
  const request = { model, stream: false }
  const parts = { x, identity, request, target, model: candidate.model, modelName }
  const { input, output, nanoUsd } = most
  const use = { usage: { input, output }, nanoUsd, isPriced: nanoUsd !== null }
  const whole = { ...provisionalEntry(parts, use), requestId: id, batch, atMs: Date.now() }
  return { ...whole, ingress, program }
}

/**
 * Takes the part's share of all limits: one request, and the maximum of tokens and money of its lines.
 * Whether the store has the reservation: without it the limits are charged when the batch ends. Rejects as
 * the direct request of all of them would be refused.
 */
export async function reservePart(
  { x, identity, id }: NewPart,
  {
    unsettled,
    limitDemands,
  }: { readonly unsettled: LedgerEntry; readonly limitDemands: readonly LimitDemand[] },
  { limiter, values }: Pick<ChargeServices, 'limiter' | 'values'>,
): Promise<boolean> {
  const demands = limitDemands.map(({ demand }) => demand)
  if (demands.length === 0) {
    values.admitted(identity)
    return false
  }
  const leaseMs = LONGEST_MS + DAY_MS
  const request = { requestId: id, accountId: identity.accountId, demands, unsettled, leaseMs }
  const { limitReservation, limitStates } = await limiter.admit(request)
  if (limitReservation === null) {
    const { budgetStatus } = x.generation.snapshot.config.limiting
    throw refusalOf(limitDemands, limitStates, budgetStatus).error
  }
  limiter.keep(limitReservation)
  values.admitted(identity)
  return limitReservation.taken !== 'nothing'
}

/** What it takes of limits: its tokens count for none per minute, and it holds no slot. */
export function demandsOf({ x, identity, model, candidate, lines, most }: NewPart): LimitDemand[] {
  const limits = x.generation.limitsOf(identity, model, candidate.target)
  const { input, output, nanoUsd } = most
  const need = { tokens: 0, mostTokens: input + output, nanoUsd: nanoUsd ?? 0, units: { line: lines } }
  return limitDemandsOf(limits, need).filter(({ demand: { kind } }) => {
    return kind !== 'tokens' && kind !== 'concurrent'
  })
}

/** What the parts of a batch used, in their order. */
interface BatchEnd {
  readonly used: readonly LineUse[]
  readonly outcome: LedgerEntry['outcome']
}

/** Writes the entries of a batch that has ended, which replace its reservations. */
export async function settleBatch(
  { accountId, info, secrets }: Batch,
  { used, outcome }: BatchEnd,
  { ledgerWriter, values }: Pick<ChargeServices, 'ledgerWriter' | 'values'>,
): Promise<void> {
  for (const [at, { entry: own, dimensions, lines }] of secrets.parts.entries()) {
    const { source, nanoUsd, ...of } = used[at] ?? UNUSED
    const usage = addUsage(of.usage, { units: { line: lines } })
    const entry: LedgerEntry = {
      ...own,
      ...{ atMs: Date.now(), status: 200, outcome, usage, source, costNanoUsd: nanoUsd, errorMessage: null },
      durationMs: Math.max(0, Date.now() - own.atMs),
      units: unitsText(usage),
      priceVersion: nanoUsd === null || source === 'none' ? null : own.priceVersion,
    }
    const { demands, isHeld } = info.reserved[at] ?? { demands: [], isHeld: false }
    if (demands.length === 0) await ledgerWriter.settle(entry)
    else await ledgerWriter.settle(entry, { demands, takenFrom: isHeld ? 'reserved' : 'nothing' })
    if (dimensions !== undefined) values.used({ accountId, dimensions }, entry)
  }
}

/** Releases the parts of a batch that was not made which have a reservation. */
export async function releaseBatch(batch: Batch, services: ChargeServices): Promise<void> {
  const { info, secrets } = batch
  const held = secrets.parts.flatMap((part, at) => {
    const reserved = info.reserved[at]
    return reserved?.isHeld === true ? [{ part, reserved }] : []
  })
  const parts = held.map(({ part }) => ({ ...part, lines: 0 }))
  const reserved = held.map((each) => each.reserved)
  const own = { ...batch, info: { ...info, reserved }, secrets: { ...secrets, parts } }
  await settleBatch(own, { used: [], outcome: 'draining' }, services)
}
