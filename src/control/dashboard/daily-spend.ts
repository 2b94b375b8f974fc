/** The spend of the last 28 full days (UTC) of accounts and keys, for forecasts. */
import { DAY_MS } from '../../base/time-units.js'
import { adminTurns } from '../../base/turn-queue.js'
import { dayOf } from '../../store/limit-arithmetic.js'
import { FORECAST_DAYS } from './forecast.js'
import { usageOf, type UsageParts } from '../services.js'

/** Days that are over hardly change; a request that ended late is in the next reading. */
const KEPT_MS = 600_000

/** What was spent on each of the 28 days, the oldest first, by the id of the account or key. */
type DailySpend = ReadonlyMap<string, readonly number[]>

interface Kept {
  readonly day: number
  readonly readMs: number
  readonly keyIds: ReadonlySet<string>
  readonly spend: Promise<DailySpend>
}

const kept = new WeakMap<object, Kept>()

/** The spend of every account itself, and of these keys. */
export function dailySpend(services: UsageParts, keyIds: readonly string[]): Promise<DailySpend> {
  const { ledger } = services.store
  const nowMs = services.now()
  const day = dayOf(nowMs)
  const known = kept.get(ledger)
  const isKnown =
    known?.day === day && nowMs - known.readMs < KEPT_MS && keyIds.every((each) => known.keyIds.has(each))
  if (isKnown) return known.spend
  const wanted = new Set(keyIds)
  const spend = readDays(services, day, wanted)
  spend.catch(() => kept.delete(ledger))
  kept.set(ledger, { day, readMs: nowMs, keyIds: wanted, spend })
  return spend
}

async function readDays(
  services: UsageParts,
  today: number,
  keyIds: ReadonlySet<string>,
): Promise<DailySpend> {
  const spend = new Map<string, number[]>()
  const add = (id: string, at: number, nanoUsd: number): void => {
    const days = spend.get(id) ?? new Array<number>(FORECAST_DAYS).fill(0)
    days[at] = (days[at] ?? 0) + nanoUsd
    spend.set(id, days)
  }
  for (let at = 0; at < FORECAST_DAYS; at += 1) {
    const fromMs = (today - FORECAST_DAYS + at) * DAY_MS
    const usage = await usageOf(services, { fromMs, toMs: fromMs + DAY_MS, by: 'day' })
    for (const { accountId, keyId, costNanoUsd } of await usage.groups({ accountId: null, by: 'key' })) {
      add(accountId, at, Number(costNanoUsd))
      if (keyIds.has(keyId)) add(keyId, at, Number(costNanoUsd))
    }
    await adminTurns.next()
  }
  return spend
}

/** The days of several accounts together; null without any. */
export function daysOf(spend: DailySpend, ids: Iterable<string>): readonly number[] | null {
  let sum: number[] | null = null
  for (const id of ids) {
    const days = spend.get(id)
    if (days === undefined) continue
    sum = days.map((nanoUsd, at) => nanoUsd + (sum?.[at] ?? 0))
  }
  return sum
}
