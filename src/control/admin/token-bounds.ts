/** What an admin token with an account may give: nothing that its account does not have. */
import type { TokenBounds } from '../../accounts/changes/bounds.js'
import { limitsAbove } from '../../accounts/changes/limits-above.js'
import { limitsIn } from '../../accounts/changes/fields.js'
import type { Changing } from '../../accounts/changes/change-keys.js'
import type { KeyLimits } from '../../accounts/account.js'
import { textIn } from '../../accounts/changes/field-types.js'
import { readLabel } from '../../accounts/labels.js'
import { childPlans, planNamed, planOfNewAccounts, type Plans } from '../../accounts/plans.js'
import type { AdminToken } from '../../store/admin-tokens.js'
import type { Store } from '../../store/store.js'
import type { WantedObject } from './documents.js'
import type { AdminRequest } from './route.js'
import { actorOf, type AdminServices } from './services.js'

/** The bounds of the token; null for one of the whole gateway, which has none. */
export async function tokenBounds(
  services: Pick<AdminServices, 'store' | 'snapshot'>,
  token: AdminToken,
): Promise<TokenBounds | null> {
  const { accountId, expiresAtMs: endsAtMs } = token
  if (accountId === null) return null
  const { plans, limiting, identity } = services.snapshot().config
  const account = await services.store.accountById(accountId)
  const given = account === null ? [] : childPlans(plans, account.plan, limiting.childPlans)
  const usual = planOfNewAccounts(plans)
  const labels = identity.flatMap(({ label }) => (label === undefined ? [] : [readLabel(label).name]))
  const own = given.includes(usual) ? [usual, ...given] : given
  return { of: 'token', plans: own, labels, endsAtMs }
}

/**
 * The limits that hold in the account with the name and in those above it, as documents want them: those of
 * its document, else those that it has.
 */
export async function documentLimits(
  sources: { readonly store: Store; readonly plans: Plans },
  wanted: ReadonlyMap<string, WantedObject>,
  name: string | null,
): Promise<KeyLimits[]> {
  const limits: KeyLimits[] = []
  const seen = new Set<string>()
  for (let at = name; at !== null && !seen.has(at);) {
    seen.add(at)
    const document = wanted.get(at)
    if (document === undefined) {
      const account = await sources.store.accountByName(at)
      return account === null ? limits : [...limits, ...(await limitsAbove(sources, account))]
    }
    const { plan, parent, limits: own } = document.values
    const ofPlan = planNamed(sources.plans, textIn(plan))
    limits.push(limitsIn(own) ?? {}, ofPlan?.limits ?? {})
    at = typeof parent === 'string' ? parent : null
  }
  return limits
}

/** What a change of keys or limits with this token depends on. */
export async function changingOf(services: AdminServices, request: AdminRequest): Promise<Changing> {
  const { store, snapshot, now } = services
  const bounds = await tokenBounds(services, request.token)
  return { store, plans: snapshot().config.plans, nowMs: now(), actor: actorOf(request), bounds }
}
