/**
 * What the programs of a person used, and what is left of the limits: for `sluice whoami`, the person's page,
 * and the request of Claude Code for it.
 */
import type { Identity } from '../../accounts/account.js'
import { accountNameOf } from '../../accounts/account.js'
import { addNanoUsd, compareNanoUsd, type NanoUsd } from '../../base/nano-usd.js'
import type { JsonObject } from '../../base/json.js'
import type { Config } from '../../config/config.js'
import { usd } from '../../ledger/export-columns.js'
import { Rules } from '../../limits/find-limits.js'
import type { Ledger } from '../../store/ledger.js'
import type { UsageSum } from '../../store/usage-queries.js'
import { DAY_MS } from '../../usage/ranges.js'
import { namedLevels, type NamedLevel } from './limit-levels.js'

/** Sums of requests of a person's programs. */
interface OwnSum {
  readonly requests: number
  readonly failed: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costNanoUsd: NanoUsd
}

/** What the programs of a person used for an account: days and months are those of UTC. */
export interface OwnUsage {
  readonly email: string
  /** The name of the account. */
  readonly account: string
  readonly today: OwnSum
  readonly month: OwnSum
  /** Of the month, the dearest model first. */
  readonly models: (OwnSum & { readonly model: string })[]
  /** Those that do not depend on the model or upstream of a request, with those of the account. */
  readonly limits: NamedLevel[]
}

/** The parts of the store that are read. */
interface OwnUsageStore {
  readonly ledger: Pick<Ledger, 'sums' | 'limitStates'>
}

/** The use of a person who signed in; `identity` is that of one of her programs. */
export async function ownUsage(
  store: OwnUsageStore,
  config: Pick<Config, 'limits' | 'plans' | 'dimensions'>,
  identity: Identity,
  nowMs: number,
): Promise<OwnUsage> {
  const { keyId, accountId, user = '' } = identity
  const now = new Date(nowMs)
  const fromMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth())
  const sums = await store.ledger.sums({ accountId, keyId, by: 'day', fromMs, toMs: nowMs })
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS
  const models = [...new Set(sums.map(({ model }) => model))].map((model) => {
    return { model, ...added(sums.filter((sum) => sum.model === model)) }
  })
  const limits = new Rules(config).of({ identity, model: '', strippedModel: '', modelName: '', upstream: '' })
  return {
    email: user,
    account: accountNameOf(identity) ?? accountId,
    today: added(sums.filter(({ startMs }) => startMs >= today)),
    month: added(sums),
    models: models.sort((a, b) => {
      return compareNanoUsd(b.costNanoUsd, a.costNanoUsd) || (a.model < b.model ? -1 : 1)
    }),
    limits: await namedLevels(store, accountId, limits, nowMs),
  }
}

function added(sums: readonly UsageSum[]): OwnSum {
  let [requests, failed, inputTokens, outputTokens] = [0, 0, 0, 0]
  let costNanoUsd: NanoUsd = 0
  for (const sum of sums) {
    requests += sum.requests
    failed += sum.failed
    inputTokens += sum.inputTokens
    outputTokens += sum.outputTokens
    costNanoUsd = addNanoUsd(costNanoUsd, sum.costNanoUsd)
  }
  return { requests, failed, inputTokens, outputTokens, costNanoUsd }
}

/** The reply of `GET /auth/usage`, in the spelling of the admin API. */
export function ownUsageJson({ email, account, today, month, models, limits }: OwnUsage): JsonObject {
  return {
    email,
    account,
    today: sumJson(today),
    month: sumJson(month),
    models: models.map(({ model, ...sum }) => ({ model, ...sumJson(sum) })),
    limits: limits.map(({ limit, amount, used, remaining, resetsAtMs }) => {
      return { limit, amount, used, remaining, resets_at: timeText(resetsAtMs) }
    }),
  }
}

function sumJson({ requests, failed, inputTokens, outputTokens, costNanoUsd }: OwnSum): JsonObject {
  return {
    requests,
    failed,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cost_nano_usd: Number(costNanoUsd),
    cost_usd: usd(costNanoUsd),
  }
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

function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
