/**
 * What the programs of a person used, and what is left of the limits: for `sluice whoami`, the person's page,
 * and the request of Claude Code for it.
 */
import { DAY_MS, timeText } from '../../base/time-units.js'
import type { Identity } from '../../accounts/account.js'
import { accountNameOf } from '../../accounts/account.js'
import { compareNanoUsd } from '../../base/nano-usd.js'
import type { JsonObject } from '../../base/json.js'
import { Rules } from '../../limits/find-limits.js'
import { shownTotals, sumOfTotals, type Totals } from '../../usage/totals.js'
import { monthAt } from './forecast.js'
import { namedLevels, type NamedLevel } from './limit-levels.js'
import { usageOf, type UsageParts } from '../services.js'

/** What the programs of a person used for an account: days and months are those of UTC. */
export interface OwnUsage {
  readonly email: string
  /** The name of the account. */
  readonly account: string
  readonly today: Totals
  readonly month: Totals
  /** Of the month, the dearest model first. */
  readonly models: (Totals & { readonly model: string })[]
  /** Those that do not depend on the model or upstream of a request, with those of the account. */
  readonly limits: NamedLevel[]
}

/** The use of a person who signed in; `identity` is that of one of her programs. */
export async function ownUsage(services: UsageParts, identity: Identity): Promise<OwnUsage> {
  const { store, snapshot, now } = services
  const { keyId, accountId, user = '' } = identity
  const nowMs = now()
  const { fromMs } = monthAt(nowMs)
  const usage = await usageOf(services, { fromMs, toMs: Math.max(nowMs, fromMs + 1), by: 'day' })
  const sums = await usage.sums({ accountId, keyId })
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS
  const models = [...new Set(sums.map(({ model }) => model))].map((model) => {
    return { model, ...sumOfTotals(sums.filter((sum) => sum.model === model)) }
  })
  const none = { model: '', strippedModel: '', modelName: '', upstream: '' }
  const limits = new Rules(snapshot().config).of({ identity, ...none })
  return {
    email: user,
    account: accountNameOf(identity) ?? accountId,
    today: sumOfTotals(sums.filter(({ startMs }) => startMs >= today)),
    month: sumOfTotals(sums),
    models: models.sort((a, b) => {
      return compareNanoUsd(b.costNanoUsd, a.costNanoUsd) || (a.model < b.model ? -1 : 1)
    }),
    limits: await namedLevels(store, accountId, limits, nowMs),
  }
}

/** The reply of `GET /auth/usage`, in the spelling of the admin API. */
export function ownUsageJson({ email, account, today, month, models, limits }: OwnUsage): JsonObject {
  return {
    email,
    account,
    today: sumJson(today),
    month: sumJson(month),
    models: models.map(({ model, ...sum }) => ({ model, ...sumJson(sum) })),
    limits: limits.map(({ limit, amount, used, remaining, resetsAtMs, sinceMs }) => {
      const times = { resets_at: timeText(resetsAtMs), counts_since: timeText(sinceMs) }
      return { limit, amount, used, remaining, ...times }
    }),
  }
}

function sumJson(sum: Totals): JsonObject {
  const { requests, failed, input_tokens, output_tokens, cost_nano_usd, cost_usd, ...more } = shownTotals(sum)
  const { unpriced_requests, units } = more
  const cost = { cost_nano_usd: Number(cost_nano_usd), cost_usd, unpriced_requests }
  return { requests, failed, input_tokens, output_tokens, ...cost, units }
}

const CENTS = 100

/**
 * The reply of `GET /api/oauth/usage`, in cents: the budget that is used most, or without a budget what the
 * month has cost. The windows are those of Anthropic's own plans, which a gateway does not have.
 */
export function claudeUsage({ month, limits }: OwnUsage): JsonObject {
  const budgets = limits.filter(({ limit, amount }) => / usd_\w+$/.test(limit) && amount > 0)
  const shareOf = ({ used, amount }: NamedLevel): number => used / amount
  const [most] = budgets.sort((a, b) => shareOf(b) - shareOf(a))
  const spent = Number(month.costNanoUsd) / 1e9
  return {
    five_hour: null,
    seven_day: null,
    seven_day_opus: null,
    seven_day_sonnet: null,
    extra_usage: {
      is_enabled: true,
      monthly_limit: most === undefined ? null : cents(most.amount),
      used_credits: cents(most?.used ?? spent),
      utilization: most === undefined ? null : Math.round(shareOf(most) * 10_000) / 100,
      currency: 'USD',
      resets_at: timeText(most?.resetsAtMs ?? null),
    },
  }
}

/** To a hundredth of a cent. */
function cents(usdAmount: number): number {
  return Math.round(usdAmount * CENTS * 100) / 100
}
