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
  const now = <Value>(op: string, call: () => Value | Promise<Value>): Value | Promise<Value> => {
    const beganMs = performance.now()
    const found = attempt(op, call, metrics, beganMs)
    if (found instanceof Promise) return timed(op, () => found)
    metrics.storeOperation(op, (performance.now() - beganMs) / 1000, false)
    return found
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
    findKey: (digest) => now('find_key', () => store.findKey(digest)),
    subscribe: (listener) => store.subscribe(listener),
    probe: () => timed('probe', () => store.probe()),
    close: () => store.close(),
    shelf: {
      put: (name, item, room, nowMs) =>
        timed('shelf_put', () => store.shelf.put(name, item, room, nowMs)),
      get: (names, nowMs) => now('shelf_get', () => store.shelf.get(names, nowMs)),
      sweep: (room, nowMs) => timed('shelf_sweep', () => store.shelf.sweep(room, nowMs)),
    },
  }
}

/** A synchronous answer, counted where it fails. */
function attempt<Value>(op: string, call: () => Value, metrics: Metrics, beganMs: number): Value {
  try {
    return call()
  } catch (error) {
    metrics.storeOperation(op, (performance.now() - beganMs) / 1000, true)
    throw error
  }
}
