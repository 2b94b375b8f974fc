/**
 * What the gateway asks of a store, whatever the engine.
 * Knows no engine; every engine passes the one black-box suite in `test/store`.
 */
import type { Account, ApiKey, PlanName } from '../accounts/account.js'

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
 * Durable accounts and keys. Every method rejects with `GatewayError(store_unavailable)` when the
 * engine fails, and only then; "not there" is `null`.
 */
export interface Store {
  /** Rejects with `StoreConflict('email_taken')`. */
  createAccount(account: Account): Promise<void>
  accountById(id: string): Promise<Account | null>
  /** `email` is compared in lower case. */
  accountByEmail(email: string): Promise<Account | null>
  /** In order of creation. */
  listAccounts(): Promise<Account[]>
  /** False where there is no such account. Durable before it resolves. */
  setPlan(accountId: string, plan: PlanName): Promise<boolean>
  /**
   * Adds a key if the account then has at most `maxKeys` that are not revoked (null: no limit);
   * count and insert are one atomic step. Rejects with `StoreConflict('plan_limit' | 'no_account')`.
   */
  createKey(key: ApiKey, maxKeys: number | null): Promise<void>
  /** In order of creation, revoked ones included. */
  listKeys(accountId: string): Promise<ApiKey[]>
  /** False where the account has no such key. Idempotent; durable before it resolves. */
  revokeKey(accountId: string, keyId: string, atMs: number): Promise<boolean>
  /**
   * By digest, lower-case hex. A synchronous answer where the engine can; an engine's failure is
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

/**
 * A rule of the store was not met; not a failure of the engine. `id_taken`: an id or a digest is in
 * use (a revoked key's too); `bad_name`: an id, digest or e-mail that no engine could keep.
 */
export class StoreConflict extends Error {
  readonly reason: 'email_taken' | 'plan_limit' | 'no_account' | 'id_taken' | 'bad_name'

  constructor(reason: StoreConflict['reason'], message: string) {
    super(message)
    this.name = 'StoreConflict'
    this.reason = reason
  }
}
