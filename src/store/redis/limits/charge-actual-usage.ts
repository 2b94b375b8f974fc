/**
 * Returns what requests hold of limits outside the slot of their account, or without a reservation.
 */
import type { LedgerContext } from '../ledger/context.js'
import { LEDGER_SCRIPTS } from '../ledger/scripts.js'
import type { SharedHolds } from './encode-demands.js'

/** The usage that replaces the amounts of the holds. */
export interface ReleasedUsage {
  /**
   * Empty: unknown, what is reserved stays. `never`: the request was not sent, so rates of requests get
   * theirs back.
   */
  readonly tokens: number | '' | 'never'
  /** Nano-dollars; empty: unknown. */
  readonly cost: number | ''
}

/** The holds of one slot, and the usage that replaces their amounts. */
export interface Release {
  readonly holds: SharedHolds
  readonly usage: ReleasedUsage
}

/** Replaces the amounts of the holds by the usage. */
export async function chargeActualUsage(
  { link, clock }: LedgerContext,
  what: string,
  { holds: [slot, period, holds], usage: { tokens, cost } }: Release,
): Promise<void> {
  const args = [clock(), JSON.stringify(holds), ...period, tokens, cost]
  await link.run(what, LEDGER_SCRIPTS.releaseShared, { keys: [`${slot}:none`], args })
}
