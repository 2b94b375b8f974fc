/**
 * Changes of an account with its members and keys in one transaction (`src/store/account-changes.ts`).
 */
import { atOnce } from '../../../base/steps.js'
import {
  decisionSteps,
  isLarge,
  NO_ACCOUNT,
  type AccountChange,
  type AccountChangeResult,
  type AccountReads,
  type AccountState,
} from '../../account-changes.js'
import { adminTurns } from '../../../base/turn-queue.js'
import type { Engine } from '../engine.js'
import { apply, conflictOf, type ChangeTables } from './account-writes.js'
import { encoded, stateIn } from './large-change.js'
import type { SqliteNotifications } from './notifications.js'

/** The parts of the store that a change needs. */
interface TransactOptions extends ChangeTables {
  readonly engine: Engine
  readonly notifications: SqliteNotifications
}

const WHAT = 'changing an account'

/** See `Store.transact`. */
export function transact<Reason>(
  tables: TransactOptions,
  change: AccountChange<Reason>,
): Promise<AccountChangeResult<Reason>> {
  const { accountId, reads = {}, decide, nowMs } = change
  if (isLarge(reads)) return transactLarge(tables, change)
  const { engine, notifications } = tables
  return notifications.announced(
    engine.writeDurably<AccountChangeResult<Reason>>(WHAT, () => {
      const before = stateOf(tables, accountId, reads)
      const decision = atOnce(decisionSteps(decide(before)))
      if ('refuse' in decision) return { kind: 'refused', reason: decision.refuse }
      const writes = decision.write
      const conflict = conflictOf(tables, before.account, writes, nowMs)
      if (conflict !== null) return { kind: 'conflict', conflict }
      apply(tables, accountId, nowMs, writes)
      return { kind: 'written', before, writes }
    }),
  )
}

/** The same for many members and keys: the event loop neither reads nor writes their rows. */
async function transactLarge<Reason>(
  { engine, notifications, capacity }: TransactOptions,
  { accountId, reads = {}, decide, nowMs }: AccountChange<Reason>,
): Promise<AccountChangeResult<Reason>> {
  for (;;) {
    const texts = await engine.background.run(WHAT, 'readAccount', accountId, reads)
    const before = await adminTurns.start(stateIn(texts))
    const decision = await adminTurns.start(decisionSteps(decide(before)))
    if ('refuse' in decision) return { kind: 'refused', reason: decision.refuse }
    const change = {
      ...{ accountId, reads, version: texts.version, nowMs },
      ...{ capacity, changesKept: notifications.mostRows },
      writes: await adminTurns.start(encoded(decision.write)),
    }
    const written = engine.writeInBackground(WHAT, () => engine.background.run(WHAT, 'changeAccount', change))
    const outcome = await notifications.announced(written)
    if (outcome === 'written') return { kind: 'written', before, writes: decision.write }
    if (outcome !== 'changed') return { kind: 'conflict', conflict: outcome }
  }
}

function stateOf(
  { accounts, keys }: ChangeTables,
  accountId: string,
  { members = [], keys: names = [], keyIds = [] }: AccountReads,
): AccountState {
  const record = accounts.record(accountId)
  if (record === null) return NO_ACCOUNT
  const found =
    members === 'all'
      ? accounts.members(accountId)
      : members.map((email) => accounts.member(accountId, email))
  const named = names.map((name) => [name, keys.named(accountId, name)] as const)
  const owned = keyIds.map((id) => [id, keys.own(accountId, id)] as const)
  return {
    account: record.account,
    members: new Map(found.flatMap((member) => (member === null ? [] : [[member.email, member]]))),
    keys: new Map(named.flatMap(([name, key]) => (key === null ? [] : [[name, key]]))),
    keysById: new Map(owned.flatMap(([id, key]) => (key === null ? [] : [[id, key]]))),
    liveKeys: record.liveKeys,
  }
}
