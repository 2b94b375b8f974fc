/**
 * Resolves limits and checks the rules that the schema cannot express. `limits/find-limits.ts` matches
 * requests with limits.
 */
import type { KeyLimits } from '../accounts/account.js'
import { BUILT_IN_PLANS } from '../accounts/plans.js'
import type { JsonObject } from '../formats/chat/json.js'
import type { LimitConfig } from './config.js'
import type { Path, ReportFinding } from './config-problem.js'
import type { FileValues } from './schema/config-file-schema.js'
import { reportUnknown } from './resolve-routes.js'

type LimitValues = FileValues['limits'][number]
/** The keys that set a limit, and their names in the code. */
const AMOUNTS = [
  ['requests_per_minute', 'requestsPerMinute', 1],
  ['tokens_per_minute', 'tokensPerMinute', 1],
  ['concurrent', 'concurrent', 1],
  ['usd_per_day', 'nanoUsdPerDay', 1e9],
  ['usd_per_week', 'nanoUsdPerWeek', 1e9],
  ['usd_per_month', 'nanoUsdPerMonth', 1e9],
] as const
const SELECTORS = ['plan', 'account', 'key', 'value', 'model', 'prefix', 'upstream'] as const

/** Reports rules without a limit, with unknown names, and duplicates. */
export function checkLimits(values: FileValues, report: ReportFinding): void {
  const upstreams = Object.keys(values.upstreams)
  const plans = [...new Set([...Object.keys(values.plans), ...Object.keys(BUILT_IN_PLANS)])]
  const firsts = new Map<string, number>()
  values.limits.forEach((rule, index) => {
    const path: Path = ['limits', index]
    const given = AMOUNTS.filter(([name]) => rule[name] !== undefined)
    if (given.length === 0) {
      report(path, `sets no limit: add one of ${AMOUNTS.map(([name]) => name).join(', ')}`)
    }
    if (rule.model !== undefined && rule.prefix !== undefined) {
      report(path, 'must have model or prefix, not both')
    }
    if (rule.value !== undefined && !rule.scope.startsWith('label:')) {
      report([...path, 'value'], 'needs a scope of label:NAME: it is the value of that label')
    }
    if (rule.plan !== undefined && !plans.includes(rule.plan)) {
      reportUnknown({ what: 'a plan', name: rule.plan, path: [...path, 'plan'] }, plans, report)
    }
    if (rule.upstream !== undefined && !upstreams.includes(rule.upstream)) {
      const { upstream } = rule
      const unknown = { what: 'an upstream', name: upstream, path: [...path, 'upstream'] } as const
      reportUnknown(unknown, upstreams, report)
    }
    for (const [name] of given) {
      const identity = JSON.stringify([
        name,
        rule.scope,
        ...SELECTORS.map((selector) => rule[selector]),
      ])
      const first = firsts.get(identity)
      if (first === undefined) firsts.set(identity, index)
      else report([...path, name], `is a duplicate: limits[${first}] limits the same requests`)
    }
  })
}

/** The rules in file order. Only for values without findings of `checkLimits`. */
export function limitsOf(values: FileValues): LimitConfig[] {
  return values.limits.map((rule) => ({
    scope: rule.scope,
    plan: rule.plan ?? null,
    account:
      rule.account?.includes('@') === true ? rule.account.toLowerCase() : (rule.account ?? null),
    key: rule.key ?? null,
    value: rule.value ?? null,
    model: rule.model ?? null,
    prefix: rule.prefix ?? null,
    upstream: rule.upstream ?? null,
    amounts: amountsOf(rule),
  }))
}

/** The limits that a rule or a plan sets; absent keys have no limit. */
export function amountsOf(values: Pick<LimitValues, (typeof AMOUNTS)[number][0]>): KeyLimits {
  const amounts: KeyLimits = {}
  for (const [name, field, unit] of AMOUNTS) {
    const value = values[name]
    if (value !== undefined) amounts[field] = Math.round(value * unit)
  }
  return amounts
}

/** A limit in the file's spelling, for `/config`. */
export function shownLimit(rule: LimitConfig): JsonObject {
  const shown: JsonObject = { scope: rule.scope }
  for (const name of SELECTORS) {
    const value = rule[name]
    if (value !== null) shown[name] = value
  }
  return { ...shown, ...shownAmounts(rule.amounts) }
}

/** Amounts in the file's spelling, for `/config`. */
export function shownAmounts(amounts: KeyLimits): JsonObject {
  const shown: JsonObject = {}
  for (const [name, field, unit] of AMOUNTS) {
    const value = amounts[field]
    if (value !== undefined) shown[name] = value / unit
  }
  return shown
}
