/**
 * Creates, changes and revokes keys: each in one transaction with its entry of the audit trail. The
 * dashboard, the command line and the admin API call it; `decide.ts` decides. `rotate-key.ts` replaces a key.
 */
import { GatewayError } from '../../errors.js'
import type { JsonObject } from '../../base/json.js'
import type {
  AccountChangeResult,
  AccountDecision,
  AccountReads,
  AccountState,
  AccountWrites,
} from '../../store/account-changes.js'
import { keyPages } from '../../store/list-all.js'
import type { Store } from '../../store/store.js'
import { hasName, type Account, type ApiKey, type KeyReference, type PlanName } from '../account.js'
import { numberedKeyNames } from '../names.js'
import { planMissing, planNamed, type Plans } from '../plans.js'
import type { Bounds } from './bounds.js'
import { limitsAbove } from './limits-above.js'
import {
  conflictRefusal,
  decideKey,
  decideRevocation,
  freshKey,
  type Actor,
  type ChangeContext,
  type FreshKey,
} from './decide.js'
import { patchedObject, readFields } from './field-types.js'
import { KEY_SETTINGS, keySettings } from './fields.js'
import { noAccount, Refusal } from './refusal.js'

/** The store of a change, its maker and its time. */
export interface Changing {
  readonly store: Store
  /** Those of the configuration. */
  readonly plans: Plans
  readonly nowMs: number
  readonly actor: Actor
  /** What the maker may give; absent: everything. */
  readonly bounds?: Bounds
}

/** Maximum active keys of an account whose plan has no limit (`max_keys: unlimited`). */
const UNLIMITED_KEYS = 10_000

/** The most keys of an account with the plan; none if the configuration does not have the plan. */
export function maxKeysOf(plans: Plans, name: PlanName): number {
  const plan = planNamed(plans, name)
  return plan === null ? 0 : (plan.maxKeys ?? UNLIMITED_KEYS)
}

/** The account has as many keys as its plan allows. */
export function planFull(plans: Plans, plan: PlanName): Refusal {
  if (planNamed(plans, plan) === null) return new Refusal('forbidden', planMissing(plan).message)
  const fix = 'Revoke a key, or choose a larger plan.'
  return new Refusal('plan_limit', `The plan "${plan}" allows no more keys.`, { fix })
}

/** Why nothing was written. `full`: the plan allows no more keys; `taken`: another live key has the name. */
type Hindrance = Refusal | 'full' | 'taken'

/**
 * Creates a key with the values of `KEY_SETTINGS`. If another live key of the account has the name, it gets
 * ` (2)` and so on. Throws a `Refusal`, `store_unavailable`, `store_unconfirmed`.
 */
export async function createKey(
  changing: Changing,
  account: Account,
  settings: JsonObject,
): Promise<{ readonly key: ApiKey; readonly secret: string }> {
  const { name, values } = readSettings({ name: '', ...settings })
  const fresh = freshKey()
  const rules = await rulesOf(changing, account)
  const key = await namedFreely(name, (free) =>
    changedKeys(changing, account, {
      reads: { keys: [free] },
      fresh,
      decide(state, context) {
        if (isTaken(state, free, context)) return { refuse: 'taken' }
        const wish = { name: free, values: values({}), fresh, hasGivenSecret: false }
        const decided = decideKey(null, wish, rules, context)
        if (decided instanceof Refusal) return { refuse: decided }
        if (isFull(changing, account, state)) return { refuse: 'full' }
        return { write: { newKeys: decided.newKeys, audit: decided.audit } }
      },
    }),
  )
  return { key, secret: fresh.secret ?? '' }
}

/** Whether the account has as many keys as its plan allows, beside `extra` ones. */
export function isFull(
  { plans }: Pick<Changing, 'plans'>,
  { plan }: Account,
  { liveKeys, account }: Pick<AccountState, 'liveKeys' | 'account'>,
  extra = 0,
): boolean {
  const own = account?.plan ?? plan
  return planNamed(plans, own) === null || liveKeys >= maxKeysOf(plans, own) + extra
}

/** A change of a key. `replacesMaps`: limits and labels are replaced as a whole, and not merged. */
interface KeyChange {
  readonly key: KeyReference
  readonly settings: JsonObject
  readonly replacesMaps: boolean
}

/** Changes those values of `KEY_SETTINGS` that are given; null is the default. Throws as `createKey` does. */
export async function changeKey(
  changing: Changing,
  account: Account,
  { key: { id }, settings, replacesMaps }: KeyChange,
): Promise<ApiKey> {
  const { name, values } = readSettings(settings)
  const maps = replacesMaps ? ['limits', 'labels'].filter((field) => settings[field] !== undefined) : []
  const emptied = Object.fromEntries(maps.map((field) => [field, {}]))
  const rules = await rulesOf(changing, account)
  const stored = name === '' ? ((await changing.store.keyById(account.id, id))?.name ?? '') : name
  return namedFreely(stored, (free) =>
    changedKeys(changing, account, {
      reads: { keys: [free], keyIds: [id] },
      decide(state, context) {
        const former = state.keysById.get(id)
        if (former === undefined || former.revokedAtMs !== undefined) return { refuse: gone(former) }
        const own = name === '' && free === stored ? former.name : free
        if (own !== former.name && isTaken(state, own, context, id)) return { refuse: 'taken' }
        const wanted = values({ ...keySettings(former), ...emptied })
        const wish = { name: own, values: wanted, fresh: UNUSED, hasGivenSecret: false }
        const decided = decideKey(former, wish, rules, context)
        if (decided instanceof Refusal) return { refuse: decided }
        return { write: { keys: [decided.item], audit: decided.audit } }
      },
    }),
  )
}

/** An existing key keeps its secret. */
const UNUSED: FreshKey = { id: '', digest: '', prefix: '', lastFour: '', secret: null }

/**
 * Revokes the key; revoking it again changes nothing. `accounts/authentication/check-running-requests.ts`
 * then ends its running requests. Throws `not_found`, `store_unavailable`.
 */
export async function revokeKey(changing: Changing, account: Account, { id }: KeyReference): Promise<ApiKey> {
  const key = await changedKeys(changing, account, {
    reads: { keyIds: [id] },
    decide({ keysById }, context) {
      const former = keysById.get(id)
      if (former === undefined) return { refuse: gone(former) }
      // A repetition writes the key again, so that it waits for the replicas, too.
      if (former.revokedAtMs !== undefined) return { write: { keys: [former], audit: [] } }
      const { key: revoked, audit } = decideRevocation(former, context)
      return { write: { keys: [revoked], audit: [audit] } }
    },
  })
  if (typeof key === 'string') throw new GatewayError('bug', `a revocation is refused: ${key}`)
  return key
}

/** The refusal of a change of a key that is revoked, or that the account does not have. */
export function gone(key: ApiKey | undefined): Refusal {
  const detail = key === undefined ? 'The account has no key with this id.' : 'This key has ended.'
  const advice = key === undefined ? {} : { fix: 'Create a new one.' }
  return new Refusal('not_found', detail, { field: 'key', ...advice })
}

/** The checked values as a function of those before, and the name; empty: none is given. */
function readSettings({ name: givenName, ...given }: JsonObject): {
  readonly name: string
  readonly values: (before: JsonObject) => JsonObject
} {
  const text = typeof givenName === 'string' ? givenName.trim() : givenName
  const named = text === undefined ? given : { name: text, ...given }
  const { name = '', ...read } = readFields(KEY_SETTINGS, named, { isPatch: true })
  return {
    name: typeof name === 'string' ? name : '',
    values: (before) => patchedObject(KEY_SETTINGS, before, read),
  }
}

async function rulesOf({ store, plans, bounds = null }: Changing, account: Account) {
  return { bounds, most: await limitsAbove({ store, plans }, account) }
}

/** Whether another live key has the name. */
export function isTaken(
  { keys }: AccountState,
  name: string,
  { nowMs }: ChangeContext,
  ownId: string | null = null,
): boolean {
  const holder = keys.get(name)
  return holder !== undefined && holder.id !== ownId && (holder.expiresAtMs ?? Infinity) > nowMs
}

/** Tries the name, then with a number, until no other key has it. */
export async function namedFreely(
  name: string,
  attempt: (name: string) => Promise<ApiKey | 'taken'>,
): Promise<ApiKey> {
  for (const free of numberedKeyNames(name)) {
    const key = await attempt(free)
    if (key !== 'taken') return key
  }
  throw new GatewayError('bug', 'there is always a free name')
}

/** What is decided about a key. */
interface KeyDecision<Reason> {
  readonly reads: AccountReads
  /** The id and secret of the key that it makes. */
  readonly fresh?: FreshKey
  readonly decide: (state: AccountState, context: ChangeContext) => AccountDecision<Reason>
}

/** Makes the change. Resolves with the new key, or the changed one. */
export async function changedKeys(
  changing: Changing,
  account: Account,
  decision: KeyDecision<Hindrance>,
): Promise<ApiKey | 'taken'> {
  const result = await writeKeys(changing, account, {
    ...decision,
    decide(state, context) {
      if (state.account === null) return { refuse: noAccount() }
      return decision.decide(state, context)
    },
  })
  if (result.kind === 'conflict') {
    if (result.conflict === 'name_taken') return 'taken'
    throw conflictRefusal(result.conflict, account.name)
  }
  if (result.kind === 'refused') {
    if (result.reason === 'taken') return 'taken'
    throw result.reason === 'full' ? planFull(changing.plans, account.plan) : result.reason
  }
  const [key] = [...(result.writes.newKeys ?? []), ...(result.writes.keys ?? [])]
  if (key === undefined) throw new GatewayError('bug', 'a change of a key writes none')
  return key
}

/**
 * Runs a decision about keys in one transaction. If the plan's keys are used up (`full`), replaced keys that
 * have ended are revoked in the same transaction, so that they no longer count.
 */
export async function writeKeys<Reason>(
  changing: Changing,
  account: Account,
  decision: KeyDecision<Reason | 'full'>,
): Promise<AccountChangeResult<Reason | 'full'>> {
  const result = await written(changing, account, decision, [])
  if (result.kind !== 'refused' || result.reason !== 'full') return result
  const ended = await endedReplacedKeys(changing, account.id)
  return ended.length === 0 ? result : written(changing, account, decision, ended)
}

async function written<Reason>(
  { store, nowMs, actor }: Changing,
  { id: accountId, name }: Account,
  { reads, fresh, decide }: KeyDecision<Reason>,
  endedIds: readonly string[],
): Promise<AccountChangeResult<Reason>> {
  const context = { nowMs, actor, accountId, account: name }
  const last: { before: AccountState | null; writes: AccountWrites | null } = { before: null, writes: null }
  try {
    return await store.transact<Reason>({
      ...{ accountId, nowMs },
      reads: { ...reads, keyIds: [...(reads.keyIds ?? []), ...endedIds] },
      decide(state) {
        const freed = endedIds.flatMap((id) => {
          const key = state.keysById.get(id)
          return key === undefined || key.revokedAtMs !== undefined
            ? []
            : [{ ...key, revokedAtMs: key.expiresAtMs ?? nowMs }]
        })
        const decision = decide({ ...state, liveKeys: state.liveKeys - freed.length }, context)
        if ('refuse' in decision) return decision
        const { write } = decision
        const writes = { ...write, keys: [...(write.keys ?? []), ...freed] }
        Object.assign(last, { before: state, writes })
        return { write: writes }
      },
    })
  } catch (error) {
    const { before, writes } = last
    if (fresh === undefined || fresh.secret === null || before === null || writes === null) throw error
    if (error instanceof GatewayError && error.kind === 'store_unconfirmed') {
      await takeBack(store, { accountId, nowMs, before, writes })
      throw unconfirmedKey(fresh.id, error)
    }
    // The store may have written the key and lost the connection: then its secret must be shown.
    if (await isThere(store, accountId, fresh).catch(() => false)) return { kind: 'written', before, writes }
    throw error
  }
}

/** Ids of replaced keys that have ended and still count for the plan. */
async function endedReplacedKeys({ store, nowMs }: Changing, accountId: string): Promise<string[]> {
  const ids: string[] = []
  for await (const page of keyPages(store, accountId)) {
    for (const { id, replacedBy, expiresAtMs = Infinity, revokedAtMs } of page) {
      if (replacedBy !== undefined && revokedAtMs === undefined && expiresAtMs <= nowMs) ids.push(id)
    }
  }
  return ids
}

/** Number of look-ups of a new key in a store that failed, and the time between them. */
const ASKED = { times: 5, everyMs: 200 } as const

async function isThere(store: Store, accountId: string, { id, digest }: FreshKey): Promise<boolean> {
  for (let times = 1; ; times += 1) {
    try {
      return (await store.keyById(accountId, id))?.digest === digest
    } catch (error) {
      if (times >= ASKED.times) throw error
      await new Promise((resolve) => setTimeout(resolve, ASKED.everyMs))
    }
  }
}

/**
 * A failover could lose the change, and the secret has not been shown: revokes the new key, and restores a
 * replaced one that was not revoked. If that fails, the key stays listed.
 */
async function takeBack(
  store: Store,
  change: {
    readonly accountId: string
    readonly nowMs: number
    readonly before: AccountState
    readonly writes: AccountWrites
  },
): Promise<void> {
  const { accountId, nowMs, before, writes } = change
  const { newKeys = [], keys = [] } = writes
  const former = new Map([...before.keys.values(), ...before.keysById.values()].map((key) => [key.id, key]))
  const undone = store.transact({
    ...{ accountId, nowMs, reads: { keyIds: [...newKeys, ...keys].map(({ id }) => id) } },
    decide({ keysById }) {
      const restored = keys.flatMap(({ id, replacedBy }) => {
        const [key, own] = [keysById.get(id), former.get(id)]
        if (own === undefined || key?.revokedAtMs !== undefined || key?.replacedBy !== replacedBy) return []
        return [{ ...own, updatedAtMs: Math.max(nowMs, (key?.updatedAtMs ?? 0) + 1) }]
      })
      const revoked = newKeys.map((key) => ({ ...key, revokedAtMs: nowMs }))
      return { write: { keys: [...revoked, ...restored.filter(hasName)], audit: [] } }
    },
  })
  await undone.catch(() => undefined)
}

function unconfirmedKey(id: string, { cause }: GatewayError): GatewayError {
  const message = `Key ${id} is applied, not yet confirmed by a replica; it is revoked and its secret is not shown. Create another one.`
  return new GatewayError('store_unconfirmed', message, { retryAfterSeconds: 1, cause })
}
