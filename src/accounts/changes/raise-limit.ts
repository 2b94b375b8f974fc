/**
 * Raises a budget of an account or key until a time, in one transaction with its entry of the audit trail.
 * The former budget stays in the record and holds again afterwards; see `limit-raises.ts`.
 */
import { LIMIT_MEMBERS } from '../../base/limit-members.js'
import type { JsonObject } from '../../base/json.js'
import { GatewayError } from '../../errors.js'
import type { AccountReads, AccountState, AccountWrites } from '../../store/account-changes.js'
import type { AuditEntry } from '../../store/audit-trail.js'
import type { Account, ApiKey, KeyLimits, KeyReference, LimitRaise } from '../account.js'
import { outlives } from './bounds.js'
import { limitsAbove } from './limits-above.js'
import type { Changing } from './change-keys.js'
import { changeEntry, conflictRefusal } from './decide.js'
import { choiceType, numberType, readFields, textIn, textType, TIME, type Fields } from './field-types.js'
import { laterThan, timeOfMs } from './fields.js'
import { invalid, noAccount, Refusal } from './refusal.js'

/** Why the record is not in the state that is meant; null: it is. */
type RaiseCheck = (record: Account | ApiKey) => Error | null

/** The longest raise: what lasts longer is a change of the budget. */
const MAX_RAISE_MS = 366 * 86_400_000
/** Characters of a reason. */
const MAX_REASON = 200

/** Raises a budget; `wish`: the values of `RAISE_TYPES`. Throws a `Refusal` or `store_unavailable`. */
export async function raiseAccountLimit(
  changing: Changing,
  { id, parentId }: Pick<Account, 'id' | 'parentId'>,
  wish: JsonObject,
  check: RaiseCheck = () => null,
): Promise<Account> {
  const parent = parentId === undefined ? null : await changing.store.accountById(parentId)
  const raise = checkedRaise(wish, changing)
  const most = parent === null ? [] : await limitsAbove(changing, parent, raise.untilMs - 1)
  const { account } = await written(changing, id, {}, (own) => {
    const failed = check(own)
    if (failed !== null) return failed
    const item = raised(own, raise, most)
    return { account: item, audit: [entryOf(changing, own, { action: 'account.raise', of: own, raise })] }
  })
  if (account === undefined) throw new GatewayError('bug', 'a raise of an account writes none')
  return account
}

/** A key, and the values of `RAISE_TYPES` for it. */
interface KeyRaise {
  readonly key: KeyReference
  readonly wish: JsonObject
  readonly check?: RaiseCheck
}

/** Raises a budget of the key. Throws a `Refusal` or `store_unavailable`. */
export async function raiseKeyLimit(
  changing: Changing,
  account: Account,
  { key: { id }, wish, check = () => null }: KeyRaise,
): Promise<ApiKey> {
  const raise = checkedRaise(wish, changing)
  const most = await limitsAbove(changing, account, raise.untilMs - 1)
  const { keys: [key] = [] } = await written(changing, account.id, { keyIds: [id] }, (own, state) => {
    const former = state.keysById.get(id)
    if (former === undefined || former.revokedAtMs !== undefined) {
      throw new Refusal('not_found', 'The account has no live key with this id.', { field: 'key' })
    }
    const failed = check(former)
    if (failed !== null) return failed
    const item = raised(former, raise, most)
    return { keys: [item], audit: [entryOf(changing, own, { action: 'key.raise', of: former, raise })] }
  })
  if (key === undefined) throw new GatewayError('bug', 'a raise of a key writes none')
  return key
}

/** The raise of a wish. Throws a `Refusal`. */
function checkedRaise(wish: JsonObject, changing: Changing): LimitRaise {
  const { nowMs, actor, bounds = null } = changing
  const { budget: name, usd, until, reason } = readFields(RAISE_TYPES, wish)
  const budget = BUDGETS.get(textIn(name))
  if (budget === undefined) throw new GatewayError('bug', 'a budget without a field was accepted')
  const untilMs = Date.parse(textIn(until))
  if (!(untilMs > nowMs) || untilMs > nowMs + MAX_RAISE_MS) {
    throw invalid('until', 'A raise ends in the future, within a year.', 'Send such a time.')
  }
  if (bounds?.of === 'token' && untilMs > bounds.endsAtMs) throw outlives('until', bounds.endsAtMs)
  const by = actor.actor
  return {
    ...{ budget, nanoUsd: Math.round(Number(usd) * 1e9), untilMs },
    ...{ reason: textIn(reason).trim(), by, atMs: nowMs },
  }
}

/** The budgets that can be raised, by their names in the configuration. */
export const BUDGETS: ReadonlyMap<string, LimitRaise['budget']> = new Map([
  ['usd_per_day', 'nanoUsdPerDay'],
  ['usd_per_week', 'nanoUsdPerWeek'],
  ['usd_per_month', 'nanoUsdPerMonth'],
])

const REASON = textType((text) => text.trim() !== '' && text.length <= MAX_REASON && !/\p{Cc}/u.test(text), {
  fix: `Send one line of 1 to ${MAX_REASON} characters.`,
  schema: { minLength: 1, maxLength: MAX_REASON },
})

/** What a raise has. */
export const RAISE_TYPES = {
  budget: { type: choiceType([...BUDGETS.keys()]), means: 'The budget, which must exist.' },
  usd: {
    type: numberType(0.01, 1_000_000, { isWhole: false }),
    means: 'The higher amount in dollars, within the budgets of the accounts above at the end.',
  },
  until: { type: TIME, means: 'When the former budget holds again, at most 366 days from now.' },
  reason: { type: REASON, means: 'Why, for the audit trail.' },
} satisfies Fields

/** The record with the raise instead of an earlier one of the same budget. Throws a `Refusal`. */
function raised<Item extends Account | ApiKey>(
  former: Item,
  raise: LimitRaise,
  most: readonly KeyLimits[],
): Item {
  const { budget, nanoUsd, atMs } = raise
  const amount = former.limits?.[budget]
  if (amount === undefined) {
    throw invalid('budget', 'There is no such budget to raise.', 'Set it first.')
  }
  if (nanoUsd <= amount) {
    const fix = 'Send more, or change the budget itself.'
    throw invalid('usd', `The budget is ${dollarsOf(amount)} without a raise.`, fix)
  }
  const bound = Math.min(...most.map((limits) => limits[budget] ?? Infinity))
  if (bound < nanoUsd) {
    const detail = `The account above allows ${dollarsOf(bound)} at most at the end of the raise.`
    throw new Refusal('forbidden', detail, { field: 'usd', fix: 'Send less, or an earlier end.' })
  }
  const others = (former.raises ?? []).filter((each) => each.budget !== budget && each.untilMs > atMs)
  return { ...former, raises: [...others, raise], updatedAtMs: laterThan(former.updatedAtMs, atMs) }
}

function dollarsOf(nanoUsd: number): string {
  return `$${nanoUsd / 1e9}`
}

interface RaiseEntry {
  readonly action: string
  /** The record before. */
  readonly of: Account | ApiKey
  readonly raise: LimitRaise
}

function entryOf(
  { nowMs, actor }: Changing,
  { id: accountId, name: account }: Account,
  { action, of, raise: { budget, nanoUsd, untilMs, reason } }: RaiseEntry,
): AuditEntry {
  const name = LIMIT_MEMBERS.find(({ field }) => field === budget)?.name
  const [from, to] = [(of.limits?.[budget] ?? 0) / 1e9, nanoUsd / 1e9]
  const until = timeOfMs(untilMs)
  return changeEntry(
    { nowMs, actor: { ...actor, reason }, accountId, account },
    {
      ...{ action, target: of.id, detail: `${of.name}; ${name ?? ''}: ${from} → ${to} until ${until}` },
      before: { [`limits.${name ?? ''}`]: from, until: null },
      after: { [`limits.${name ?? ''}`]: to, until },
    },
  )
}

/** Runs the decision in one transaction; what it throws as a `Refusal` is refused. */
async function written(
  { store, nowMs }: Changing,
  accountId: string,
  reads: AccountReads,
  decide: (account: Account, state: AccountState) => AccountWrites | Error,
): Promise<AccountWrites> {
  const result = await store.transact<Error>({
    ...{ accountId, nowMs, reads },
    decide(state) {
      if (state.account === null) return { refuse: noAccount() }
      try {
        const decided = decide(state.account, state)
        return decided instanceof Error ? { refuse: decided } : { write: decided }
      } catch (error) {
        if (error instanceof Refusal) return { refuse: error }
        throw error
      }
    },
  })
  if (result.kind === 'refused') throw result.reason
  if (result.kind === 'conflict') throw conflictRefusal(result.conflict, '')
  return result.writes
}
