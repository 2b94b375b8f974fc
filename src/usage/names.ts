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
  private readonly former = new Map<string, readonly string[]>()

  constructor(store: UsageNames) {
    this.store = store
  }

  async of(use: Pick<AccountUse, 'accountPath' | 'accountId'>): Promise<readonly string[]> {
    const known = this.known(use)
    if (known !== undefined) return known
    const { accountId } = use
    const account = await this.store.accountById(accountId)
    const above = account === null ? [] : await this.store.ancestorsOf(account)
    const path = account === null ? [accountId] : [account, ...above].map(({ name }) => name)
    this.today.set(accountId, path.reverse())
    return path
  }

  /** The same without waiting; undefined if the account must be read from the store. */
  known({
    accountPath,
    accountId,
  }: Pick<AccountUse, 'accountPath' | 'accountId'>): readonly string[] | undefined {
    if (accountPath === '') return this.today.get(accountId)
    const known = this.former.get(accountPath) ?? accountPath.split('/')
    this.former.set(accountPath, known)
    return known
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
