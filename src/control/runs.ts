/**
 * Runs: the values of the dimension `run`. What a run has used and what is left of its limits, and the end of
 * one, for the admin API and the command.
 */
import { timeText } from '../base/time-units.js'
import type { Account, Identity } from '../accounts/account.js'
import { entryOf, type Actor } from '../accounts/changes/decide.js'
import { checkedReason } from '../accounts/changes/fields.js'
import { accountPart } from '../accounts/authentication/authentication-result.js'
import type { JsonObject } from '../base/json.js'
import type { Config } from '../config/config.js'
import type { DimensionConfig } from '../config/schema/dimensions-schema.js'
import { usd } from '../ledger/export-columns.js'
import { dimensionSubject, Rules } from '../limits/find-limits.js'
import type { ToolCalls, ValueName, ValueRecord } from '../store/dimension-values.js'
import type { Store } from '../store/store.js'
import { namedLevels, type NamedLevel } from './dashboard/limit-levels.js'

/** The dimension whose values are runs. */
const RUN = 'run'

/** The dimension of runs; null if the configuration has none. */
export function runDimension({ dimensions }: Pick<Config, 'dimensions'>): DimensionConfig | null {
  return dimensions.find(({ name }) => name === RUN) ?? null
}

/** The name of a run of an account. */
export function runName({ id }: Account, run: string): ValueName {
  return { accountId: id, dimension: RUN, value: run }
}

/** Whether a text may be a run. */
export function isRun(text: string): boolean {
  return Array.from(text).length <= 128 && !/\p{Cc}/u.test(text)
}

/** Whether a value has a place, and no admitted request; one that was ended in advance is known. */
export function isUnused({ requests, endedAtMs }: ValueRecord): boolean {
  return requests === 0 && endedAtMs === null
}

/** A run as the admin API and the command show it. */
export async function shownRun(
  store: Pick<Store, 'ledger'>,
  config: Pick<Config, 'limits' | 'plans' | 'dimensions'>,
  { account, run, record }: { readonly account: Account; readonly run: string; readonly record: ValueRecord },
): Promise<JsonObject> {
  const { requests, inputTokens, outputTokens, costNanoUsd, tools } = record
  const { firstAtMs, lastAtMs, endedAtMs } = record
  return {
    account: account.name,
    run,
    state: endedAtMs === null ? 'live' : 'ended',
    requests,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cost_nano_usd: costNanoUsd,
    cost_usd: usd(costNanoUsd),
    tools: mostCalled(tools).map((tool) => ({ ...tool })),
    limits: (await limitsOfRun(store, config, { account, run, firstAtMs })).map(({ sinceMs, ...limit }) => {
      return { ...limit, counts_since: timeText(sinceMs) }
    }),
    first_at: timeText(firstAtMs),
    last_at: timeText(lastAtMs),
    ended_at: timeText(endedAtMs),
  }
}

/** The tools that the model called most first. */
export function mostCalled(tools: readonly ToolCalls[]): ToolCalls[] {
  return tools.toSorted((one, other) => other.calls - one.calls)
}

/** A limit of a run; amounts of money are dollars. */
type RunLimit = Omit<NamedLevel, 'resetsAtMs'>

/** A run of an account, and its first request. */
interface BegunRun {
  readonly account: Account
  readonly run: string
  /** Null before it. */
  readonly firstAtMs: number | null
}

/** A counter that begins so long after its run has no earlier use. */
const SAME_MS = 60_000

/** The limits of the run that do not depend on the model or upstream of a request. */
export async function limitsOfRun(
  { ledger }: Pick<Store, 'ledger'>,
  config: Pick<Config, 'limits' | 'plans' | 'dimensions'>,
  { account, run, firstAtMs }: BegunRun,
): Promise<RunLimit[]> {
  const identity: Identity = {
    ...{ keyId: '', ...accountPart(account, []), digest: null, expiresAtMs: null, models: null },
    ...{ allowTools: null, limits: null, labels: {}, dimensions: { [RUN]: run } },
  }
  const none = { model: '', strippedModel: '', modelName: '', upstream: '' }
  const limits = new Rules(config)
    .of({ identity, ...none })
    .filter(({ subject }) => subject.startsWith(dimensionSubject(RUN)))
  const levels = await namedLevels({ ledger }, account.id, limits, Date.now())
  return levels.map(({ limit, amount, used, remaining, sinceMs: countedMs }) => {
    // The counter of a run begins with its first request, if its limit is no younger.
    const isWhole = countedMs === null || firstAtMs === null || firstAtMs >= countedMs - SAME_MS
    return { limit, amount, used, remaining, sinceMs: isWhole ? null : countedMs }
  })
}

/** A run to end, and who ends it. */
interface RunEnd {
  readonly account: Account
  readonly run: string
  readonly nowMs: number
  readonly actor: Actor
}

/**
 * Ends a run, also before its first request: every gateway cuts its requests within a second. Returns what is
 * known of it then. The audit trail gets an entry unless it had ended before. Rejects with a
 * `Refusal` of the reason.
 */
export async function endRun(
  { dimensionValues }: Pick<Store, 'dimensionValues'>,
  config: Pick<Config, 'dimensions'>,
  { account, run, nowMs, actor: by }: RunEnd,
): Promise<ValueRecord> {
  const actor = { ...by, reason: checkedReason(by.reason ?? '') }
  const entry = entryOf(nowMs, actor, {
    ...{ accountId: account.id, action: 'run.end', target: run, detail: `run ${run}` },
    ...{ before: { state: 'live' }, after: { state: 'ended' } },
  })
  return dimensionValues.end(runName(account, run), runDimension(config)?.keepMs ?? 0, nowMs, [entry])
}
