/** Limits of an account or a key are within those of its account, the plan and the accounts above. */
import type { JsonObject } from '../../base/json.js'
import { LIMIT_MEMBERS, unitOf } from '../../base/limit-members.js'
import type { Store } from '../../store/store.js'
import type { Account, KeyLimits } from '../account.js'
import { limitsAt } from '../limit-raises.js'
import { planNamed, type Plans } from '../plans.js'
import { limitsIn } from './fields.js'
import { Refusal } from './refusal.js'

/**
 * The limits of the account, of its plan and of the accounts above it; with `atMs` those at this time, raises
 * included.
 */
export async function limitsAbove(
  { store, plans }: { readonly store: Pick<Store, 'ancestorsOf'>; readonly plans: Plans },
  account: Account,
  atMs = Infinity,
): Promise<KeyLimits[]> {
  const above = [account, ...(await store.ancestorsOf(account))]
  return above.flatMap(({ limits = {}, raises, plan }) => [
    limitsAt({ limits, raises }, atMs),
    planNamed(plans, plan)?.limits ?? {},
  ])
}

/** The refusal of a changed limit that is above one of `most`; null: there is none. */
export function limitBeyond(
  values: JsonObject,
  before: JsonObject,
  most: readonly KeyLimits[],
): Refusal | null {
  const former = limitsIn(before['limits']) ?? {}
  const wanted = limitsIn(values['limits']) ?? {}
  for (const member of LIMIT_MEMBERS) {
    const { field, name } = member
    const amount = wanted[field]
    if (amount === undefined || amount === former[field]) continue
    const bound = most.map((limits) => limits[field]).find((limit) => limit !== undefined && limit < amount)
    if (bound === undefined) continue
    const detail = `The account allows ${bound / unitOf(member)} at most.`
    return new Refusal('forbidden', detail, { field: `limits.${name.replace(' ', '.')}`, fix: 'Send less.' })
  }
  return null
}
