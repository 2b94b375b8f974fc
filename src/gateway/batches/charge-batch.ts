/**
 * Reserves what a batch may use before any of it is sent, and charges what it has used: once, to its creator.
 * The id of the entry is that of the batch, so a second settlement finds the first.
 */
import type { Identity } from '../../accounts/account.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { LedgerWriter } from '../../ledger/ledger-writer.js'
import { limitDemandsOf, type LimitDemand } from '../../limits/find-limits.js'
import { refusalOf } from '../../limits/limit-refusal.js'
import type { Limiter } from '../../limits/limiter.js'
import { isWindowed } from '../../store/limit-arithmetic.js'
import type { RequestContext } from '../client-exchange.js'
import type { Candidate } from '../phases/choose-route.js'
import { provisionalEntry } from '../charges/provisional-entry.js'
import type { Batch } from './batch-records.js'
import type { LineUse } from './journal.js'

/** A batch that is being made. */
export interface NewBatch {
  readonly x: RequestContext
  readonly identity: Identity
  readonly clientRequestId: string | null
  readonly id: string
  /** The model that the client requests. */
  readonly model: string
  readonly candidate: Candidate
  /** What all lines together may use. */
  readonly most: { readonly input: number; readonly output: number; readonly nanoUsd: number | null }
}

interface ChargeServices {
  readonly limiter: Limiter
  readonly ledgerWriter: Pick<LedgerWriter, 'settle'>
}

/** A batch that no vendor reports for so long is charged what was reserved. */
const RESERVED_MS = 31 * 86_400_000

/** The entry of a batch that uses its maximum. */
export function entryOfBatch({
  x,
  identity,
  clientRequestId,
  id,
  model,
  candidate,
  most,
}: NewBatch): LedgerEntry {
  const { target } = candidate
  const modelName = x.generation.limitedAs(model, target)
  const request = { model, stream: false }
  const parts = { x, identity, clientRequestId, request, target, model: candidate.model, modelName }
  const { input, output, nanoUsd } = most
  const use = { usage: { input, output }, nanoUsd, isPriced: nanoUsd !== null }
  return { ...provisionalEntry(parts, use), requestId: id, atMs: Date.now(), ingress: 'batches' }
}

/**
 * Takes the batch's share of all limits: one request, and the maximum of tokens and money of its lines.
 * Whether the store has the reservation: without it the limits are charged when the batch ends. Rejects as
 * the direct request of all of them would be refused.
 */
export async function reserveBatch(
  { x, identity, id }: NewBatch,
  {
    unsettled,
    limitDemands,
  }: { readonly unsettled: LedgerEntry; readonly limitDemands: readonly LimitDemand[] },
  { limiter }: ChargeServices,
): Promise<boolean> {
  const demands = limitDemands.map(({ demand }) => demand)
  if (demands.length === 0) return false
  const request = { requestId: id, accountId: identity.accountId, demands, unsettled, leaseMs: RESERVED_MS }
  const { limitReservation, limitStates } = await limiter.admit(request)
  if (limitReservation === null) {
    const { budgetStatus } = x.generation.snapshot.config.limiting
    throw refusalOf(limitDemands, limitStates, budgetStatus).error
  }
  limiter.keep(limitReservation)
  return limitReservation.taken !== 'nothing'
}

/** What it takes of limits: its tokens count for none per minute, and it holds no slot. */
export function demandsOf({ x, identity, model, candidate, most }: NewBatch): LimitDemand[] {
  const limits = x.generation.limitsOf(identity, model, candidate.target)
  const need = { tokens: 0, mostTokens: most.input + most.output, nanoUsd: most.nanoUsd ?? 0 }
  return limitDemandsOf(limits, need).filter(({ demand }) => isWindowed(demand) || demand.kind === 'requests')
}

/** Writes the entry of a batch that has ended, which replaces its reservation. */
export async function settleBatch(
  { info, secrets }: Batch,
  { used, outcome }: { readonly used: LineUse; readonly outcome: LedgerEntry['outcome'] },
  { ledgerWriter }: ChargeServices,
): Promise<void> {
  const { usage, source, nanoUsd } = used
  const own = secrets.entry
  const entry: LedgerEntry = {
    ...own,
    ...{ atMs: Date.now(), status: 200, outcome, usage, source, costNanoUsd: nanoUsd, errorMessage: null },
    durationMs: Math.max(0, Date.now() - own.atMs),
    priceVersion: nanoUsd === null || source === 'none' ? null : own.priceVersion,
  }
  const { demands, isHeld } = info.reserved
  if (demands.length === 0) await ledgerWriter.settle(entry)
  else await ledgerWriter.settle(entry, { demands, takenFrom: isHeld ? 'reserved' : 'nothing' })
}
