/**
 * The interface of a store, with its records. Every engine implements it and passes the suite in
 * `test/store/contract`.
 */
import type { Account, ApiKey, Member, SavedView, User } from '../accounts/account.js'
import type { AdminTokens } from './admin-tokens.js'
import type { AccountChange, AccountChangeResult, AccountsByName, UsersByEmail } from './account-changes.js'
import type { AuditEntriesOf, AuditEntry, AuditTrail } from './audit-trail.js'
import type { Denial, DenialSubject } from './denials.js'
import type { Directory } from './account-and-key-lists.js'
import type { Ledger } from './ledger.js'
import type { ProviderObjects } from './provider-objects.js'
import type { SealedRecords } from './sealed-records.js'
import type { AddedSignIn, ChangedSignIns, SignInTokens } from './sign-in-tokens.js'
import type { DimensionValues } from './dimension-values.js'
import type { ThrottleStore } from './throttle.js'

/** A key and its account, as authentication needs them: one read. */
export interface KeyLookup {
  readonly key: ApiKey
  readonly account: Account
  /** The accounts above it, its parent first; absent: none. */
  readonly ancestors?: readonly Account[]
}

/** A change that may make a cached look-up wrong. */
export interface KeyChange {
  /**
   * The key's digest, or that of an access token (`accessDigest`) or of a value of a dimension; null means
   * that any key may have changed (an account's plan or state, a member, a lost connection).
   */
  readonly digest: string | null
}

/** The result of creating a user. */
export type UserOutcome = 'created' | 'email_taken' | 'id_taken' | 'bad_name'

/** A change of a user; absent members stay, null removes the value. */
export interface UserEdit {
  readonly role?: User['role']
  readonly groupRole?: User['groupRole'] | null
  readonly formerEmail?: null
  readonly disabled?: boolean
  readonly passwordHash?: string
  readonly issuer?: string | null
  readonly subject?: string | null
  readonly signedInAtMs?: number
  readonly unproven?: true | null
  readonly views?: readonly SavedView[]
}

/**
 * The people who sign in. Methods fail as those of `Store` do. Audit entries of a user have its id as their
 * account.
 */
export interface Users {
  /** Durable before it resolves, with the invitation. */
  create(user: User, auditEntries?: readonly AuditEntry[], link?: AddedSignIn | null): Promise<UserOutcome>
  byId(id: string): Promise<User | null>
  /** `email` is compared in lower case. */
  byEmail(email: string): Promise<User | null>
  list(query: UsersByEmail): Promise<Page<User>>
  /**
   * Resolves with the changed user, or null if it does not exist or `edit` returns null. A function makes the
   * change from the stored user; it is pure, and an engine may call it several times. `signIns`: those that
   * change with it. Durable before it resolves.
   */
  change(
    id: string,
    edit: UserEdit | ((user: User) => UserEdit | null),
    auditEntries?: AuditEntriesOf<User>,
    signIns?: (before: User, after: User) => ChangedSignIns,
  ): Promise<User | null>
  /**
   * Gives the user another address, with all memberships; null if the user does not exist. Durable before it
   * resolves. A call that was interrupted is finished by the next one.
   */
  changeEmail(
    id: string,
    email: string,
    auditEntries?: AuditEntriesOf<User>,
  ): Promise<User | 'email_taken' | null>
  /** What the user is a member of, in no order. */
  memberships(userId: string): Promise<Member[]>
}

/** Selects a page of a list. */
export interface PageQuery {
  /** The order of creation. */
  readonly order: 'oldest_first' | 'newest_first'
  /** `Page.next` of the previous page, read in the same order; null for the first page. */
  readonly after: string | null
  /** 1 to 1,000. */
  readonly limit: number
}

/** A page of a list. Items added or removed between two pages do not shift the others. */
export interface Page<Item> {
  readonly items: readonly Item[]
  /**
   * The cursor of the next page: 1 to 100 characters of A-Z, a-z, 0-9, `_`, `-`, whose meaning depends on the
   * engine. Null on the last page. A text that is not a cursor selects an empty last page.
   */
  readonly next: string | null
}

/** Upper bounds of records that grow with the actions of clients. */
export interface StoreCapacity {
  /** Keys of one account, revoked and expired ones included. */
  readonly keysPerAccount: number
  /** Audit entries of one account; the account's oldest entry is removed first. */
  readonly auditEntriesPerAccount: number
  /** Audit entries of all accounts together; the oldest entry is removed first. */
  readonly auditEntries: number
  /** Objects at providers that one account owns; the object that expires first is removed first. */
  readonly providerObjectsPerAccount: number
  /** The same of all accounts together; the account that adds one loses its own. */
  readonly providerObjects: number
  /** Denied workload identities; a further one is refused. */
  readonly denials: number
}

/** The capacity of every engine. */
export const STORE_CAPACITY: StoreCapacity = {
  keysPerAccount: 20_000,
  auditEntriesPerAccount: 5_000,
  auditEntries: 500_000,
  providerObjectsPerAccount: 50_000,
  providerObjects: 1_000_000,
  denials: 100_000,
}

/** The capacity of a shared cache. */
export interface CacheCapacity {
  readonly entries: number
  /** Of names and values together. */
  readonly bytes: number
}

/** A value of the shared cache. */
export interface CachedValue {
  readonly value: Uint8Array
  readonly expiresAtMs: number
}

export interface NamedValue extends CachedValue {
  /** 1 to 200 characters without spaces. */
  readonly name: string
}

/**
 * Values that may be lost, such as reasoning state, shared by every process of the store. Callers must work
 * without a value. Methods fail as those of `Store` do.
 */
export interface SharedCache {
  /**
   * Stores a value; every process finds it once this resolves. `existing`: whether a value of
   * the same name that has not expired is replaced (the default) or kept. If the capacity is exceeded, the
   * values that expire first are removed.
   */
  put(item: NamedValue, capacity: CacheCapacity, nowMs: number, existing?: 'replaced' | 'kept'): Promise<void>
  /**
   * Values in the order of the names; null for one that does not exist or has expired. The SQLite engine
   * answers synchronously and throws where Redis rejects.
   */
  get(names: readonly string[], nowMs: number): (CachedValue | null)[] | Promise<(CachedValue | null)[]>
  /** Removes expired values and those beyond the capacity; returns their number. */
  sweep(capacity: CacheCapacity, nowMs: number): Promise<number>
}

/** Options of every engine. */
export interface StoreOptions {
  /** Called with messages for the operator about the engine, when it is opened and later. */
  readonly warn?: (message: string) => void
  /** Reject if there is no store yet, instead of creating one. */
  readonly mustExist?: boolean
  /**
   * `Store.id` when this machine last opened the store. If the store at the address is another one, or does
   * not exist, opening rejects with `GatewayError(store_unavailable)` and changes nothing (`storeReplaced` in
   * store-errors.ts).
   */
  readonly expectedId?: string
  /** For tests: a smaller capacity. */
  readonly capacity?: Partial<StoreCapacity>
  /** Minimum time limit of a command to Redis, in ms: for commands of the CLI, which no request waits for. */
  readonly minTimeoutMs?: number
  /** For tests: ms since 1970, used by the ledger instead of the engine's clock. */
  readonly nowMs?: () => number
  /** For tests: monotonic time in ms. Default: `nowMs`, or `performance.now`. */
  readonly monotonicMs?: () => number
}

/**
 * Durable accounts and keys. The audit entries of a change are written with it: both are stored or neither,
 * even if the process is killed. The entries are of the account that changes. Every method rejects with
 * `GatewayError(store_unavailable)` only if the engine fails; a record that does not exist and a rule that is
 * not met are results. A change that took effect and that too few replicas have confirmed rejects with
 * `store_unconfirmed`; repeating it is safe.
 */
export interface Store {
  /** Random, created with the store; 1 to 100 characters. An emptied store gets another one. */
  readonly id: string
  /** Whether this process created the store when it opened it. */
  readonly isNew: boolean
  readonly cache: SharedCache
  /** Limits, budgets and usage. */
  readonly ledger: Ledger
  readonly signInTokens: SignInTokens
  /** Tokens of the admin API. */
  readonly adminTokens: AdminTokens
  readonly auditTrail: AuditTrail
  readonly throttle: ThrottleStore
  readonly dimensionValues: DimensionValues
  /** The owners of objects at providers. */
  readonly providerObjects: ProviderObjects
  /** Denied workload identities. */
  readonly denials: Denials
  /** Cached replies and recordings. */
  readonly sealedRecords: SealedRecords
  /** The gateways that share the store; null for an embedded store. */
  readonly fleet: Fleet | null
  readonly users: Users
  /** Lists of keys and accounts in any order. */
  readonly directory: Directory
  accountById(id: string): Promise<Account | null>
  accountByName(name: string): Promise<Account | null>
  /** The account that was made with this login. `email` is compared in lower case. */
  accountByEmail(email: string): Promise<Account | null>
  /** A page of the accounts. */
  listAccounts(query: PageQuery): Promise<Page<Account>>
  /** A page of the accounts in the order of their names; an account that exists throughout is in one page. */
  accountsByName(query: AccountsByName): Promise<Page<Account>>
  /** The accounts above an account, its parent first. */
  ancestorsOf(account: Pick<Account, 'id' | 'parentId'>): Promise<Account[]>
  /** The ids of the accounts whose parent it is, in no order. */
  childrenOf(accountId: string): Promise<string[]>
  /** The members in the order of their addresses. */
  membersOf(accountId: string): Promise<Member[]>
  /** Null if the user with this address, in lower case, is not a member. */
  memberOf(accountId: string, email: string): Promise<Member | null>
  /** The key that has the name (`hasName`); null if there is none. */
  keyByName(accountId: string, name: string): Promise<ApiKey | null>
  /** See `account-changes.ts`. Durable before it resolves. */
  transact<Reason = never>(change: AccountChange<Reason>): Promise<AccountChangeResult<Reason>>
  /** A page of the account's keys, revoked and expired ones included. */
  listKeys(accountId: string, query: PageQuery): Promise<Page<ApiKey>>
  /** Null if the account (null: any account) has no such key. */
  keyById(accountId: string | null, keyId: string): Promise<ApiKey | null>
  /** The number of the account's keys that are not revoked; 0 if the account does not exist. */
  countKeys(accountId: string): Promise<number>
  /**
   * Removes those of the account's keys (at most 1,000) that were revoked, or expired, before
   * `endedBeforeMs`, and returns their number. It ignores other keys and unknown ids. The digests of removed
   * keys are unknown, and the keys no longer count towards a limit. Durable before it resolves.
   */
  removeKeys(accountId: string, keyIds: readonly string[], endedBeforeMs: number): Promise<number>
  /**
   * Finds a key by its digest, lower-case hex. A damaged record is a failure of the engine, not null; so is a
   * key that this process found before and that disappeared without being revoked or expiring. The SQLite
   * engine answers synchronously and throws where Redis rejects.
   */
  findKey(digest: string): KeyLookup | null | Promise<KeyLookup | null>
  /**
   * Calls the listener within 500 ms of a change made by any process, and once with null when the engine
   * stops answering. Returns a function that unsubscribes.
   */
  subscribe(listener: (change: KeyChange) => void): () => void
  /** Writes and reads a value, to check that the engine works. */
  probe(): Promise<void>
  /** Flushes and releases every handle. */
  close(): Promise<void>
}

/**
 * The denials of a store. Methods fail as those of `Store` do; a change is durable before it resolves, is
 * written with its audit entries, and reaches the listeners of `Store.subscribe` as a change of every key.
 */
export interface Denials {
  /** `full`: the store has `StoreCapacity.denials` of them. */
  create(denial: Denial, auditEntries?: readonly AuditEntry[]): Promise<'created' | 'full'>
  byId(id: string): Promise<Denial | null>
  /** A page of the denials; expired ones are listed until they are removed. */
  list(query: PageQuery): Promise<Page<Denial>>
  /** Null if there is no such denial. */
  remove(id: string, auditEntries?: (removed: Denial) => readonly AuditEntry[]): Promise<Denial | null>
  /**
   * Whether a denial of the token's `sub` or `jti` is in force. The SQLite engine answers synchronously and
   * throws where Redis rejects.
   */
  isDenied(token: DenialSubject, nowMs: number): boolean | Promise<boolean>
  /** Removes expired denials; returns their number. */
  sweep(nowMs: number): Promise<number>
}

/** A gateway of the fleet. */
export interface FleetMember {
  /** Random at each start; 1 to 100 characters. */
  readonly id: string
  /** Its name: `server.name`, by default that of its machine or container. */
  readonly host: string
  readonly generation: number
  /** SHA-256 of its configuration and catalogue, hex. */
  readonly hash: string
}

/** Methods fail as those of `Store` do. */
export interface Fleet {
  /**
   * Publishes a gateway for `ttlMs` and resolves with all published gateways, at most 1,000, in order of ids.
   */
  publish(member: FleetMember, ttlMs: number): Promise<FleetMember[]>
  /** Removes a gateway before `ttlMs` is over. */
  leave(id: string): Promise<void>
}

/** More gateways than this are not listed. */
export const MAX_MEMBERS = 1_000
