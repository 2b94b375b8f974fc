/**
 * What the gateway asks of a store, whatever the engine.
 * Knows no engine; every engine passes the one black-box suite in `test/store`.
 */
import type { Account, ApiKey, KeyLimits } from '../accounts/account.js'
import type { ThrottleStore } from './throttle.js'
import type { Fleet } from './fleet.js'
import type { Ledger } from './ledger.js'
import type { SignInTokens } from './sign-in-tokens.js'
import type { AuditEntriesOf, AuditTrail, AuditEntry } from './audit-trail.js'

/** What an auth look-up needs of a key and its account, in one read. */
export interface KeyLookup {
  readonly key: ApiKey
  readonly account: Account
}

/** A change that may make a cached look-up wrong. */
export interface KeyChange {
  /** The key's digest; null means "anything may have changed" (an account's plan or state, a lost link). */
  readonly digest: string | null
}

/**
 * What became of a new account. `id_taken`: its id is in use. `bad_name`: an id or e-mail that no
 * engine could keep (empty, with spaces or control characters, over 400 characters).
 */
export type AccountOutcome = 'created' | 'email_taken' | 'id_taken' | 'bad_name'

/**
 * What became of a new key. `id_taken`: its id or digest is in use, by a revoked key too.
 * `account_full`: the account has `StoreBounds.keysPerAccount` keys, revoked ones included.
 */
export type KeyOutcome =
  'created' | 'plan_limit' | 'account_full' | 'no_account' | 'id_taken' | 'bad_name'

/** What may be changed of an account; what is left out stays. */
export interface AccountEdit {
  readonly plan?: Account['plan']
  readonly disabled?: boolean
  readonly passwordHash?: string
}

/** What may be changed of a key; what is left out stays, null takes it away. */
export interface KeyEdit {
  readonly name?: string
  readonly expiresAtMs?: number | null
  readonly models?: readonly string[] | null
  readonly limits?: KeyLimits | null
  readonly replacedBy?: string
}

/** Which part of a list to read. */
export interface PageQuery {
  /** By creation, not by date. */
  readonly order: 'oldest_first' | 'newest_first'
  /** `Page.next` of the page before, read in the same order; null for the first page. */
  readonly after: string | null
  /** 1 to 1,000. */
  readonly limit: number
}

/** A part of a list. Items added or removed between two pages do not shift the others. */
export interface Page<Item> {
  readonly items: readonly Item[]
  /**
   * Reads on behind the last item: 1 to 100 characters of A-Z, a-z, 0-9, `_`, `-`, whose meaning is the
   * engine's. Null on the last page. A text that is no such cursor reads as an empty last page.
   */
  readonly next: string | null
}

/** The most that a store keeps of what grows with the actions of clients. */
export interface StoreCapacity {
  /** Keys of one account, revoked and expired ones included. */
  readonly keysPerAccount: number
  /** Audit entries of one account; the account's oldest entry goes first. */
  readonly auditEntriesPerAccount: number
  /** Audit entries of all accounts together; the oldest entry goes first. */
  readonly auditEntries: number
}

/** The bounds of every engine. */
export const STORE_CAPACITY: StoreCapacity = {
  keysPerAccount: 20_000,
  auditEntriesPerAccount: 5_000,
  auditEntries: 500_000,
}

/** How much a shelf may hold. */
export interface CacheCapacity {
  readonly entries: number
  /** Of names and values together. */
  readonly bytes: number
}

/** A value on a shelf. */
export interface CachedValue {
  readonly value: Uint8Array
  readonly expiresAtMs: number
}

/**
 * Values that need not last, shared by every process of the store: whoever asks must be able to do
 * without. Fails as the store does.
 */
export interface SharedCache {
  /**
   * Every process finds the value once this resolves; one of the same name is replaced. Where the room
   * is short, what would expire first goes first. `name` is 1 to 200 characters without spaces.
   */
  put(name: string, item: CachedValue, room: CacheCapacity, nowMs: number): Promise<void>
  /**
   * In the order of the names; null for what is not there, or has expired. A synchronous answer where
   * the engine can; an engine's failure is then thrown and not a rejection.
   */
  get(
    names: readonly string[],
    nowMs: number,
  ): (CachedValue | null)[] | Promise<(CachedValue | null)[]>
  /** Removes what has expired and what there is no room for; how many that were. */
  sweep(room: CacheCapacity, nowMs: number): Promise<number>
}

/** What a store may be given, whatever the engine. */
export interface StoreOptions {
  /** Told what an operator should know of the engine, when it is opened and later. */
  readonly warn?: (message: string) => void
  /** Reject where there is no store yet, in place of making one. */
  readonly mustExist?: boolean
  /**
   * `Store.id` as it was when this store was last opened. If another store, or none, is found there, opening
   * rejects with `GatewayError(store_unavailable)` and changes nothing (`storeLost` in failure.ts).
   */
  readonly expectedId?: string
  /** For tests: smaller bounds. */
  readonly capacity?: Partial<StoreCapacity>
  /** For work that no request waits for: an engine at a distance may take so long to answer, in ms. */
  readonly minTimeoutMs?: number
  /** For tests: ms since 1970 in place of the engine's own clock, for all that the ledger decides. */
  readonly nowMs?: () => number
}

/**
 * Durable accounts and keys. What a change is to leave in the audit trail is given with it: of the two there
 * are both or neither, whatever dies in between. Its entries are of the account that changes.
 * Every method rejects with `GatewayError(store_unavailable)` when the engine fails, and only then; "not there"
 * and a rule that was not met are answers. A change that took effect and that too few replicas have confirmed
 * rejects with `store_unconfirmed`; repeating it is safe.
 */
export interface Store {
  /** Made once, with the store, at random; 1 to 100 characters. An emptied store gets another one. */
  readonly id: string
  /** This process made the store when it opened it: there was none. */
  readonly isNew: boolean
  readonly cache: SharedCache
  /** Limits, budgets and usage. */
  readonly ledger: Ledger
  readonly signInTokens: SignInTokens
  readonly auditTrail: AuditTrail
  readonly throttle: ThrottleStore
  /** The gateways that share the store; null if it is of one machine. */
  readonly fleet: Fleet | null
  /** Durable before it resolves. */
  createAccount(account: Account, told?: readonly AuditEntry[]): Promise<AccountOutcome>
  accountById(id: string): Promise<Account | null>
  /** `email` is compared in lower case. */
  accountByEmail(email: string): Promise<Account | null>
  /** A page of the accounts. */
  listAccounts(query: PageQuery): Promise<Page<Account>>
  /** As it then is; null where there is no such account. Durable before it resolves. */
  changeAccount(
    accountId: string,
    edit: AccountEdit,
    told?: AuditEntriesOf<Account>,
  ): Promise<Account | null>
  /**
   * Adds a key if the account then has at most `maxKeys` that are not revoked (null: no limit), and at most
   * `StoreBounds.keysPerAccount` in all; counts and insert are one atomic step. Durable before it resolves.
   */
  createKey(key: ApiKey, maxKeys: number | null, told?: readonly AuditEntry[]): Promise<KeyOutcome>
  /** A page of the account's keys, revoked and expired ones included. */
  listKeys(accountId: string, query: PageQuery): Promise<Page<ApiKey>>
  /** Null where the account has no such key. */
  keyById(accountId: string, keyId: string): Promise<ApiKey | null>
  /** Keys of the account that are not revoked; 0 where there is no such account. */
  countKeys(accountId: string): Promise<number>
  /**
   * As it then is; null where the account has no such key, or where it is revoked. Durable before it
   * resolves.
   */
  changeKey(
    accountId: string,
    keyId: string,
    edit: KeyEdit,
    told?: AuditEntriesOf<ApiKey>,
  ): Promise<ApiKey | null>
  /**
   * False where the account has no such key. Idempotent, and told once; durable before it resolves.
   */
  revokeKey(
    accountId: string,
    keyId: string,
    atMs: number,
    told?: readonly AuditEntry[],
  ): Promise<boolean>
  /**
   * Removes those of the account's keys (at most 1,000) that were revoked, or expired, before `endedBeforeMs`,
   * and answers how many; the others, and ids that the account does not have, are left alone. Their digests
   * are then unknown, and they no longer count for any limit. Durable before it resolves.
   */
  removeKeys(accountId: string, keyIds: readonly string[], endedBeforeMs: number): Promise<number>
  /**
   * By digest, lower-case hex. A record that cannot be read, and a key that this process found before and
   * that is gone without having been revoked or having expired, is a failure of the engine, not null. A synchronous answer where the engine can; an engine's failure is
   * then thrown and not a rejection.
   */
  findKey(digest: string): KeyLookup | null | Promise<KeyLookup | null>
  /**
   * Calls back within 500 ms of a change made by any process, and once with null when the engine
   * stops answering; returns a function that stops it.
   */
  subscribe(listener: (change: KeyChange) => void): () => void
  /** A write and a read that prove the engine works. */
  probe(): Promise<void>
  /** Flushes and lets go of every handle. */
  close(): Promise<void>
}
