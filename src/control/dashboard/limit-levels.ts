/** How much of limits is used, for pages, the admin API and commands. */
import { byMember } from '../../base/limit-members.js'
import { limitDemandsOf, shownSubject, type Limit } from '../../limits/find-limits.js'
import { LIMIT_NAMES } from '../../limits/limit-refusal.js'
import type { Demand, Ledger } from '../../store/ledger.js'
import { isWindowed } from '../../store/limit-arithmetic.js'

const COUNTS = byMember('kind', ({ counts }) => counts)

/** A limit and what is left of it; amounts of money are dollars. */
export interface NamedLevel {
  /** The rule and the name of the limit: `dimension:run usd_total`. */
  readonly limit: string
  readonly amount: number
  readonly used: number
  readonly remaining: number
  /** When it is unused again; null: never, or it is unused. */
  readonly resetsAtMs: number | null
  /** It counts what was used from this time on; null: in its whole period. */
  readonly sinceMs: number | null
}

/**
 * Since when the counters of limits count, ms since 1970: those of budgets and quotas that began within their
 * period and whose earlier use is not added, or not as a whole. Null: since the start of the period.
 */
export async function countedSince(
  ledger: Pick<Ledger, 'budgetMarks'>,
  limits: readonly { readonly accountId: string; readonly demand: Demand }[],
): Promise<(number | null)[]> {
  return Promise.all(
    limits.map(async ({ accountId, demand }) => {
      if (!isWindowed(demand)) return null
      const [mark] = await ledger.budgetMarks(accountId, [demand])
      return mark?.sinceMs ?? null
    }),
  )
}

/** The levels of limits for the account. */
export async function namedLevels(
  { ledger }: { readonly ledger: Pick<Ledger, 'limitStates' | 'budgetMarks'> },
  accountId: string,
  limits: readonly Limit[],
  nowMs: number,
): Promise<NamedLevel[]> {
  const demands = limitDemandsOf(limits, { tokens: 0, mostTokens: 0, nanoUsd: 0 }).map(({ demand }) => demand)
  const states = await ledger.limitStates(accountId, demands)
  const sinceMs = await countedSince(
    ledger,
    demands.map((demand) => ({ accountId, demand })),
  )
  return demands.map(({ kind, subject }, at) => {
    const { limit = 0, remaining = 0, resetMs = 0 } = states[at] ?? {}
    const left = Math.max(0, Math.min(limit, Math.floor(remaining)))
    const unit = COUNTS[kind] === 'usd' ? 1e9 : 1
    return {
      limit: `${shownSubject(subject)} ${LIMIT_NAMES[kind]}`,
      amount: limit / unit,
      used: (limit - left) / unit,
      remaining: left / unit,
      resetsAtMs: resetMs > 0 ? nowMs + resetMs : null,
      sinceMs: sinceMs[at] ?? null,
    }
  })
}
