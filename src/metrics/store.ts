/**
 * A store whose look-ups and writes are timed and whose failures are counted.
 * Knows no engine.
 */
import type { Store } from '../store/store.js'
import type { Metrics } from './hops.js'

/** The same store, observed: `sluice_store_duration_seconds{op}`, `sluice_store_errors_total{op}`. */
export function observeStore(store: Store, metrics: Metrics): Store {
  const timed = <Value>(op: string, call: () => Promise<Value>): Promise<Value> => {
    const beganMs = performance.now()
    const record = (failed: boolean): void => {
      metrics.storeOperation(op, (performance.now() - beganMs) / 1000, failed)
    }
    return call().then(
      (value) => {
        record(false)
        return value
      },
      (error: unknown) => {
        record(true)
        throw error
      },
    )
  }
  return {
    createAccount: (account) => timed('create_account', () => store.createAccount(account)),
    accountById: (id) => timed('account_by_id', () => store.accountById(id)),
    accountByEmail: (email) => timed('account_by_email', () => store.accountByEmail(email)),
    listAccounts: () => timed('list_accounts', () => store.listAccounts()),
    setPlan: (id, plan) => timed('set_plan', () => store.setPlan(id, plan)),
    createKey: (key, maxKeys) => timed('create_key', () => store.createKey(key, maxKeys)),
    listKeys: (accountId) => timed('list_keys', () => store.listKeys(accountId)),
    revokeKey: (accountId, keyId, atMs) =>
      timed('revoke_key', () => store.revokeKey(accountId, keyId, atMs)),
    findKey: (digest) => {
      const beganMs = performance.now()
      const found = attempt(() => store.findKey(digest), metrics, beganMs)
      if (found instanceof Promise) return timed('find_key', () => found)
      metrics.storeOperation('find_key', (performance.now() - beganMs) / 1000, false)
      return found
    },
    subscribe: (listener) => store.subscribe(listener),
    probe: () => timed('probe', () => store.probe()),
    close: () => store.close(),
  }
}

/** A synchronous answer, counted where it fails. */
function attempt<Value>(call: () => Value, metrics: Metrics, beganMs: number): Value {
  try {
    return call()
  } catch (error) {
    metrics.storeOperation('find_key', (performance.now() - beganMs) / 1000, true)
    throw error
  }
}
