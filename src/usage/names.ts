/** The names of accounts and keys in usage: the path of an account, and the name and maker of a key. */
import type { KeyName } from '../store/account-and-key-lists.js'
import type { Store } from '../store/store.js'
import type { AccountUse } from '../store/usage-queries.js'

/** The parts of the store that have the names of accounts and keys. */
export type UsageNames = Pick<Store, 'accountById' | 'ancestorsOf' | 'keyById' | 'directory'>

/** The paths of accounts; those of today for entries of earlier versions, which have none. */
export class AccountPaths {
  private readonly store: UsageNames
  private readonly today = new Map<string, readonly string[]>()

  constructor(store: UsageNames) {
    this.store = store
  }

  async of({
    accountPath,
    accountId,
  }: Pick<AccountUse, 'accountPath' | 'accountId'>): Promise<readonly string[]> {
    if (accountPath !== '') return accountPath.split('/')
    const known = this.today.get(accountId)
    if (known !== undefined) return known
    const account = await this.store.accountById(accountId)
    const above = account === null ? [] : await this.store.ancestorsOf(account)
    const path = account === null ? [accountId] : [account, ...above].map(({ name }) => name)
    this.today.set(accountId, path.reverse())
    return path
  }
}

/** Names of more keys are read together. */
const FEW_KEYS = 100

/** The names of all keys if more than `FEW_KEYS` are needed, else null. */
export async function manyKeyNames(
  { directory }: UsageNames,
  accountId: string | null,
  count: number,
): Promise<ReadonlyMap<string, KeyName> | null> {
  return count > FEW_KEYS ? directory.keyNames(accountId) : null
}

/** Names and makers of keys. */
export class KeyNames {
  private readonly store: UsageNames
  private readonly all: ReadonlyMap<string, KeyName> | null
  private readonly keys = new Map<string, KeyName | null>()

  /** Reads the names of all keys at once if many are needed. */
  static async for(store: UsageNames, count: number, accountId: string | null = null): Promise<KeyNames> {
    return new KeyNames(store, await manyKeyNames(store, accountId, count))
  }

  private constructor(store: UsageNames, all: ReadonlyMap<string, KeyName> | null) {
    this.store = store
    this.all = all
  }

  async of(key: Pick<AccountUse, 'accountId' | 'keyId'>): Promise<KeyName | null> {
    const known = this.known(key)
    if (known !== undefined) return known
    const { accountId, keyId } = key
    const found = await this.store.keyById(accountId, keyId)
    this.keys.set(`${accountId} ${keyId}`, found)
    return found
  }

  /** The same without waiting; undefined for a key that must be read from the store. */
  known({ accountId, keyId }: Pick<AccountUse, 'accountId' | 'keyId'>): KeyName | null | undefined {
    // The playground, or `NAME/KEY_NAME` of a workload identity.
    if (!keyId.startsWith('key_')) return { name: keyId.slice(keyId.indexOf('/') + 1) }
    if (this.all !== null) return this.all.get(keyId) ?? null
    return this.keys.get(`${accountId} ${keyId}`)
  }
}
