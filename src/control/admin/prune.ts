/** What `--prune` of `apply` removes: what has its label `managed-by` and no document. */
import type { Account } from '../../accounts/account.js'
import { MANAGED_BY } from '../../accounts/labels.js'
import { adminTurns } from '../../base/turn-queue.js'
import { keyPages } from '../../store/list-all.js'
import type { Store } from '../../store/store.js'
import type { WantedObject } from './documents.js'

/** What of an account is removed. */
export interface Pruned {
  /** Whether the account is disabled: no document is about it. */
  readonly isPruned: boolean
  /** Names of keys, which are revoked. */
  readonly prunedKeys: readonly string[]
  /** Addresses of members. */
  readonly prunedMembers: readonly string[]
}

export const NOTHING_PRUNED: Pruned = { isPruned: false, prunedKeys: [], prunedMembers: [] }

/** `own`: the documents about the account, its keys and its members. */
export async function prunedOf(
  { store, managedBy }: { readonly store: Store; readonly managedBy: string },
  account: Account,
  own: readonly WantedObject[],
): Promise<Pruned> {
  const isManaged = ({ labels }: { readonly labels?: Account['labels'] }): boolean => {
    return labels?.[MANAGED_BY] === managedBy
  }
  const names = new Set(own.map(({ kind, name }) => `${kind} ${name}`))
  const prunedKeys: string[] = []
  for await (const page of keyPages(store, account.id)) {
    for (const key of page) {
      const isThere = key.revokedAtMs === undefined && key.replacedBy === undefined
      if (isThere && isManaged(key) && !names.has(`Key ${key.name}`)) prunedKeys.push(key.name)
    }
    await adminTurns.next()
  }
  const members = await store.membersOf(account.id)
  const prunedMembers = members
    .filter((member) => isManaged(member) && !names.has(`Member ${member.email}`))
    .map(({ email }) => email)
  const isPruned = isManaged(account) && !account.disabled && own.length === 0
  return { isPruned, prunedKeys, prunedMembers }
}
