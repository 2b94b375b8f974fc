/**
 * A store whose look-ups and writes are timed and whose failures are counted.
 * Knows no engine.
 */
import type { Ledger } from '../store/ledger.js'
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
    createAccount: (account, told) =>
      timed('create_account', () => store.createAccount(account, told)),
    accountById: (id) => timed('account_by_id', () => store.accountById(id)),
    accountByEmail: (email) => timed('account_by_email', () => store.accountByEmail(email)),
    listAccounts: () => timed('list_accounts', () => store.listAccounts()),
    changeAccount: (id, edit, told) =>
      timed('change_account', () => store.changeAccount(id, edit, told)),
    createKey: (key, maxKeys, told) =>
      timed('create_key', () => store.createKey(key, maxKeys, told)),
    listKeys: (accountId) => timed('list_keys', () => store.listKeys(accountId)),
    keyById: (accountId, keyId) => timed('key_by_id', () => store.keyById(accountId, keyId)),
    countKeys: (accountId) => timed('count_keys', () => store.countKeys(accountId)),
    changeKey: (accountId, keyId, edit, told) =>
      timed('change_key', () => store.changeKey(accountId, keyId, edit, told)),
    revokeKey: (accountId, keyId, atMs, told) =>
      timed('revoke_key', () => store.revokeKey(accountId, keyId, atMs, told)),
    findKey: (digest) => now('find_key', () => store.findKey(digest)),
    subscribe: (listener) => store.subscribe(listener),
    probe: () => timed('probe', () => store.probe()),
    close: () => store.close(),
    ...observedHolders(store, timed),
    shelf: {
      put: (name, item, room, nowMs) =>
        timed('shelf_put', () => store.shelf.put(name, item, room, nowMs)),
      get: (names, nowMs) => now('shelf_get', () => store.shelf.get(names, nowMs)),
      sweep: (room, nowMs) => timed('shelf_sweep', () => store.shelf.sweep(room, nowMs)),
    },
    ledger: observedLedger(store.ledger, timed),
  }
}

type Timed = <Value>(op: string, call: () => Promise<Value>) => Promise<Value>

function observedLedger(ledger: Ledger, timed: Timed): Ledger {
  return {
    admit: (admission) => timed('admit', () => ledger.admit(admission)),
    settle: (row, claim) => timed('settle', () => ledger.settle(row, claim)),
    append: (row) => timed('settle', () => ledger.append(row)),
    renew: (requests, leaseMs) => timed('renew', () => ledger.renew(requests, leaseMs)),
    expire: (overdueMs) => timed('expire', () => ledger.expire(overdueMs)),
    look: (accountId, demands) => timed('look', () => ledger.look(accountId, demands)),
    sums: (query) => timed('sums', () => ledger.sums(query)),
    rows: (query) => timed('rows', () => ledger.rows(query)),
    row: (accountId, requestId) => timed('row', () => ledger.row(accountId, requestId)),
    export: (sinceMs) => ledger.export(sinceMs),
    keyUse: (query) => timed('key_use', () => ledger.keyUse(query)),
    lastUse: (accountId, keyIds) => timed('last_use', () => ledger.lastUse(accountId, keyIds)),
    putSums: (by, sums, lastUse) => timed('put_sums', () => ledger.putSums(by, sums, lastUse)),
    budgets: () => ledger.budgets(),
    putBudgets: (budgets) => timed('put_budgets', () => ledger.putBudgets(budgets)),
    prune: (retention) => timed('prune', () => ledger.prune(retention)),
  }
}

/** One name for all of a kind: nothing of the data plane waits for them. */
function observedHolders(
  { passes, trail, attempts }: Store,
  timed: Timed,
): Pick<Store, 'passes' | 'trail' | 'attempts'> {
  return {
    passes: {
      add: (pass) => timed('passes', () => passes.add(pass)),
      find: (kind, id, nowMs) => timed('passes', () => passes.find(kind, id, nowMs)),
      prolong: (kind, id, expiresAtMs, nowMs) =>
        timed('passes', () => passes.prolong(kind, id, expiresAtMs, nowMs)),
      take: (kind, id, nowMs) => timed('passes', () => passes.take(kind, id, nowMs)),
      end: (kind, accountId, except) => timed('passes', () => passes.end(kind, accountId, except)),
      sweep: (nowMs) => timed('passes', () => passes.sweep(nowMs)),
    },
    trail: {
      add: (entry) => timed('trail', () => trail.add(entry)),
      page: (query) => timed('trail', () => trail.page(query)),
    },
    attempts: {
      take: (subjects, nowMs) => timed('attempts', () => attempts.take(subjects, nowMs)),
      forget: (name) => timed('attempts', () => attempts.forget(name)),
      sweep: (nowMs) => timed('attempts', () => attempts.sweep(nowMs)),
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
