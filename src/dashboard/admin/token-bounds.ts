/**
 * What an admin token with an account may give: nothing that its account does not have. Plans of accounts,
 * limits, labels that matter, and the ends of keys and tokens are decided here, for every endpoint.
 */
import type { Account, KeyLimits } from '../../accounts/account.js'
import { PRIORITY, readLabel } from '../../accounts/labels.js'
import { childPlans, planNamed, planOfNewAccounts } from '../../accounts/plans.js'
import { shownAmounts } from '../../config/schema/limits-schema.js'
import { isObject, type JsonObject, type JsonValue } from '../../formats/chat/json.js'
import type { AdminToken } from '../../store/admin-tokens.js'
import { MANAGED_BY, type WantedObject } from './documents.js'
import { isSame, textIn } from './field-types.js'
import { limitsIn } from './objects.js'
import { Problem } from './problem-details.js'
import type { AdminServices } from './services.js'

type Sources = Pick<AdminServices, 'store' | 'snapshot'>

/** What a token with an account may give. */
export interface TokenBounds {
  /** The plans of accounts, the default of new ones first. */
  readonly plans: readonly string[]
  /** The names of labels with which workload identities select accounts. */
  readonly labels: readonly string[]
  /** When the token ends, in ms since 1970. */
  readonly endsAtMs: number
}

/** The bounds of the token; null for one of the whole gateway, which has none. */
export async function tokenBounds(services: Sources, token: AdminToken): Promise<TokenBounds | null> {
  const { accountId, expiresAtMs: endsAtMs } = token
  if (accountId === null) return null
  const { plans, limiting, identity } = services.snapshot().config
  const account = await services.store.accountById(accountId)
  const given = account === null ? [] : childPlans(plans, account.plan, limiting.childPlans)
  const usual = planOfNewAccounts(plans)
  const labels = identity.flatMap(({ label }) => (label === undefined ? [] : [readLabel(label).name]))
  return { plans: given.includes(usual) ? [usual, ...given] : given, labels, endsAtMs }
}

/** The limits of the account, of its plan and of the accounts above it. */
export async function limitsAbove({ store, snapshot }: Sources, account: Account): Promise<KeyLimits[]> {
  const above = [account, ...(await store.ancestorsOf(account))]
  return above.flatMap(({ limits = {}, plan }) => {
    return [limits, planNamed(snapshot().config.plans, plan)?.limits ?? {}]
  })
}

/**
 * The limits that hold in the account with the name and in those above it, as documents want them: those of
 * its document, else those that it has.
 */
export async function documentLimits(
  services: Sources,
  wanted: ReadonlyMap<string, WantedObject>,
  name: string | null,
): Promise<KeyLimits[]> {
  const limits: KeyLimits[] = []
  const seen = new Set<string>()
  for (let at = name; at !== null && !seen.has(at);) {
    seen.add(at)
    const document = wanted.get(at)
    if (document === undefined) {
      const account = await services.store.accountByName(at)
      return account === null ? limits : [...limits, ...(await limitsAbove(services, account))]
    }
    const { plan, parent, limits: own } = document.values
    const ofPlan = planNamed(services.snapshot().config.plans, textIn(plan))
    limits.push(limitsIn(own) ?? {}, ofPlan?.limits ?? {})
    at = typeof parent === 'string' ? parent : null
  }
  return limits
}

/** Values that a request has, beside those before it. */
interface Wish {
  readonly values: JsonObject
  /** Empty for a new object. */
  readonly before: JsonObject
  /** The limits of the accounts above. */
  readonly most: readonly KeyLimits[]
}

/** The first value of an account that the token may not give; null: it may give all. */
export function accountBeyond(bounds: TokenBounds | null, { values, before, most }: Wish): Problem | null {
  if (bounds === null) return null
  const { plan } = values
  if (plan !== before['plan'] && !bounds.plans.some((name) => name === plan)) {
    return new Problem('forbidden', `This token cannot give the plan "${textIn(plan)}".`, {
      field: 'plan',
      fix:
        bounds.plans.length === 0
          ? 'Use a token of the whole gateway.'
          : `Send one of: ${[...new Set(bounds.plans)].join(', ')}.`,
    })
  }
  for (const name of [MANAGED_BY, ...bounds.labels]) {
    const value = labelOf(values, name)
    if (value !== undefined && value !== labelOf(before, name)) return labelRefusal(name)
  }
  return limitBeyond(values, before, most) ?? priorityChange(values, before)
}

/** The first value of a key that the token may not give; null: it may give all. */
export function keyBeyond(bounds: TokenBounds | null, { values, before, most }: Wish): Problem | null {
  if (bounds === null) return null
  const { expires_at: end } = values
  const isChanged = end !== before['expires_at']
  if (typeof end === 'string' && isChanged && Date.parse(end) > bounds.endsAtMs) {
    return outlives('expires_at', bounds.endsAtMs)
  }
  return limitBeyond(values, before, most) ?? priorityChange(values, before)
}

/**
 * The values of a key without an end: one that a token with an account makes ends with the token, and an
 * existing key without an end keeps none. `former` is null if the secret is new, too.
 */
export function withEnd(values: JsonObject, former: JsonObject | null, latestMs: number | null): JsonObject {
  const isEndless = (values['expires_at'] ?? null) === null
  if (latestMs === null || !isEndless) return values
  const keepsNone = former !== null && (former['expires_at'] ?? null) === null
  return keepsNone ? values : { ...values, expires_at: new Date(latestMs).toISOString() }
}

/** The refusal of an end after that of the token. */
export function outlives(field: string, endsAtMs: number): Problem {
  const end = new Date(endsAtMs).toISOString()
  return new Problem('forbidden', `This token ends at ${end} and makes nothing that outlives it.`, {
    field,
    fix: 'Send that time or an earlier one.',
  })
}

/** A changed limit above one of the accounts above. */
export function limitBeyond(
  values: JsonObject,
  before: JsonObject,
  most: readonly KeyLimits[],
): Problem | null {
  const shown = (limits: JsonValue | undefined): JsonObject => shownAmounts(limitsIn(limits) ?? {})
  const former = shown(before['limits'])
  const bounds = most.map((limits) => shownAmounts(limits))
  for (const [name, amount] of Object.entries(shown(values['limits']))) {
    if (isSame(amount, former[name])) continue
    const bound = bounds.find((limits) => Number(limits[name] ?? Infinity) < Number(amount))
    if (bound === undefined) continue
    const detail = `The account allows ${JSON.stringify(bound[name])} at most.`
    return new Problem('forbidden', detail, { field: `limits.${name}`, fix: 'Send less.' })
  }
  return null
}

/** Keys with high priority are served first under overload, and a low one is a restriction. */
function priorityChange(values: JsonObject, before: JsonObject): Problem | null {
  return labelOf(values, PRIORITY) === labelOf(before, PRIORITY) ? null : labelRefusal(PRIORITY)
}

function labelOf({ labels }: JsonObject, name: string): JsonValue | undefined {
  return isObject(labels) && Object.hasOwn(labels, name) ? labels[name] : undefined
}

function labelRefusal(name: string): Problem {
  return new Problem('forbidden', `A token with an account neither gives nor changes the label "${name}".`, {
    field: `labels.${name}`,
    fix: 'Send the value that the object has, or leave the label out if it has none.',
  })
}
