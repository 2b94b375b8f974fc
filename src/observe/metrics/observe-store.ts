/**
 * Wraps a store to time its operations and count their failures. Operations on the path of a request have
 * labels of their own; those of the dashboard, commands and timers share one per kind, to stay below the
 * metric's cap.
 */
import type { Ledger } from '../../store/ledger.js'
import type { Store } from '../../store/store.js'
import type { Metrics } from './metrics.js'

/** Called with each failure and the name of the operation. */
type OnFailure = (op: string, error: unknown) => void

/** The same store, observed by `sluice_store_duration_seconds{op}` and `sluice_store_errors_total{op}`. */
export function observeStore(store: Store, metrics: Metrics, onFailure: OnFailure): Store {
  const timed = <Value>(op: string, call: () => Promise<Value>): Promise<Value> => {
    const beganMs = performance.now()
    const record = (failed: boolean): void => {
      metrics.storeOperation(op, (performance.now() - beganMs) / 1000, failed)
    }
    // Attached beside the caller's chain, so that the caller waits for no additional promise.
    const answer = call()
    answer.then(
      () => record(false),
      (error: unknown) => {
        record(true)
        onFailure(op, error)
      },
    )
    return answer
  }
  const now = <Value>(op: string, call: () => Value | Promise<Value>): Value | Promise<Value> => {
    const beganMs = performance.now()
    const found = attempt(op, call, { beganMs, metrics, onFailure })
    if (found instanceof Promise) return timed(op, () => found)
    metrics.storeOperation(op, (performance.now() - beganMs) / 1000, false)
    return found
  }
  return {
    id: store.id,
    isNew: store.isNew,
    accountById: (id) => timed('accounts', () => store.accountById(id)),
    accountByEmail: (email) => timed('accounts', () => store.accountByEmail(email)),
    accountByName: (name) => timed('accounts', () => store.accountByName(name)),
    listAccounts: (query) => timed('accounts', () => store.listAccounts(query)),
    accountsByName: (query) => timed('accounts', () => store.accountsByName(query)),
    ancestorsOf: (account) => timed('accounts', () => store.ancestorsOf(account)),
    childrenOf: (accountId) => timed('accounts', () => store.childrenOf(accountId)),
    membersOf: (accountId) => timed('accounts', () => store.membersOf(accountId)),
    memberOf: (accountId, email) => timed('accounts', () => store.memberOf(accountId, email)),
    transact: (change) => timed('accounts', () => store.transact(change)),
    listKeys: (accountId, query) => timed('keys', () => store.listKeys(accountId, query)),
    keyById: (accountId, keyId) => timed('keys', () => store.keyById(accountId, keyId)),
    keyByName: (accountId, name) => timed('keys', () => store.keyByName(accountId, name)),
    countKeys: (accountId) => timed('keys', () => store.countKeys(accountId)),
    removeKeys: (accountId, keyIds, beforeMs) =>
      timed('keys', () => store.removeKeys(accountId, keyIds, beforeMs)),
    findKey: (digest) => now('find_key', () => store.findKey(digest)),
    subscribe: (listener) => store.subscribe(listener),
    probe: () => timed('probe', () => store.probe()),
    close: () => store.close(),
    ...observedHolders(store, timed),
    directory: {
      keys: (query) => timed('keys', () => store.directory.keys(query)),
      accounts: (query) => timed('accounts', () => store.directory.accounts(query)),
      keyNames: (accountId) => timed('keys', () => store.directory.keyNames(accountId)),
    },
    cache: {
      put: (item, room, nowMs, existing) =>
        timed('cache_put', () => store.cache.put(item, room, nowMs, existing)),
      get: (names, nowMs) => now('cache_get', () => store.cache.get(names, nowMs)),
      sweep: (room, nowMs) => timed('sweep', () => store.cache.sweep(room, nowMs)),
    },
    providerObjects: observedObjects(store.providerObjects, timed, now),
    denials: observedDenials(store.denials, timed, now),
    dimensionValues: observedValues(store.dimensionValues, timed),
    sealedRecords: observedRecords(store.sealedRecords, timed),
    ledger: observedLedger(store.ledger, timed),
  }
}

type Timed = <Value>(op: string, call: () => Promise<Value>) => Promise<Value>
type Now = <Value>(op: string, call: () => Value | Promise<Value>) => Value | Promise<Value>

function observedValues(values: Store['dimensionValues'], timed: Timed): Store['dimensionValues'] {
  return {
    claim: (name, bounds, nowMs) => timed('values', () => values.claim(name, bounds, nowMs)),
    add: (uses) => timed('values', () => values.add(uses)),
    find: (name, nowMs) => timed('values', () => values.find(name, nowMs)),
    end: (name, keepMs, nowMs) => timed('values', () => values.end(name, keepMs, nowMs)),
    all: () => values.all(),
    sweep: (nowMs) => timed('sweep', () => values.sweep(nowMs)),
  }
}

function observedRecords(records: Store['sealedRecords'], timed: Timed): Store['sealedRecords'] {
  return {
    put: (record, maxBytes, nowMs) => timed('objects', () => records.put(record, maxBytes, nowMs)),
    replace: (record, before) => timed('objects', () => records.replace(record, before)),
    find: (kind, id, nowMs) => timed('objects', () => records.find(kind, id, nowMs)),
    list: (kind, filter, nowMs) => timed('objects', () => records.list(kind, filter, nowMs)),
    remove: (kind, filter) => timed('objects', () => records.remove(kind, filter)),
    sweep: (nowMs) => timed('sweep', () => records.sweep(nowMs)),
  }
}

function observedDenials(denials: Store['denials'], timed: Timed, now: Now): Store['denials'] {
  return {
    create: (denial, auditEntries) => timed('keys', () => denials.create(denial, auditEntries)),
    byId: (id) => timed('keys', () => denials.byId(id)),
    list: (query) => timed('keys', () => denials.list(query)),
    remove: (id, auditEntries) => timed('keys', () => denials.remove(id, auditEntries)),
    isDenied: (token, nowMs) => now('keys', () => denials.isDenied(token, nowMs)),
    sweep: (nowMs) => timed('sweep', () => denials.sweep(nowMs)),
  }
}

function observedObjects(
  objects: Store['providerObjects'],
  timed: Timed,
  now: Now,
): Store['providerObjects'] {
  return {
    put: (added, nowMs) => timed('objects', () => objects.put(added, nowMs)),
    find: (upstream, ids, nowMs) => now('objects', () => objects.find(upstream, ids, nowMs)),
    remove: (upstream, id) => timed('objects', () => objects.remove(upstream, id)),
    all: () => objects.all(),
    sweep: (nowMs) => timed('sweep', () => objects.sweep(nowMs)),
  }
}

function observedLedger(ledger: Ledger, timed: Timed): Ledger {
  return {
    archive: ledger.archive,
    admit: (admission) => timed('admit', () => ledger.admit(admission)),
    settle: (row, claim) => timed('settle', () => ledger.settle(row, claim)),
    releaseSlots: (requestId) => ledger.releaseSlots?.(requestId),
    append: (row) => timed('settle', () => ledger.append(row)),
    raise: (accountId, demands) => timed('admit', () => ledger.raise(accountId, demands)),
    lower: (accountId, raise) => timed('settle', () => ledger.lower(accountId, raise)),
    renew: (requests, leaseMs) => timed('renew', () => ledger.renew(requests, leaseMs)),
    expire: (overdueMs) => timed('expire', () => ledger.expire(overdueMs)),
    addToBudget: (accountId, demand, added) =>
      timed('settle', () => ledger.addToBudget(accountId, demand, added)),
    limitStates: (accountId, demands) => timed('usage', () => ledger.limitStates(accountId, demands)),
    sums: (query) => timed('usage', () => ledger.sums(query)),
    cells: (query) => timed('usage', () => ledger.cells(query)),
    entries: (query) => timed('usage', () => ledger.entries(query)),
    entry: (accountId, requestId) => timed('usage', () => ledger.entry(accountId, requestId)),
    export: (sinceMs) => ledger.export(sinceMs),
    keyUse: (query) => timed('usage', () => ledger.keyUse(query)),
    groupUse: (query) => timed('usage', () => ledger.groupUse(query)),
    prepareGroupUse: async (span) => ledger.prepareGroupUse?.(span),
    accountUse: (query) => timed('usage', () => ledger.accountUse(query)),
    prunedUse: () => timed('usage', () => ledger.prunedUse()),
    putAccountUse: (uses) => timed('usage', () => ledger.putAccountUse(uses)),
    lastUse: (accountId, keyIds) => timed('usage', () => ledger.lastUse(accountId, keyIds)),
    putSums: (by, sums, lastUse) => timed('usage', () => ledger.putSums(by, sums, lastUse)),
    budgets: () => ledger.budgets(),
    putBudgets: (budgets) => timed('usage', () => ledger.putBudgets(budgets)),
    prune: (retention) => timed('sweep', () => ledger.prune(retention)),
    memory: (limit) => timed('sweep', () => ledger.memory(limit)),
    fitMemory: (limit) => timed('sweep', () => ledger.fitMemory(limit)),
  }
}

function observedHolders(
  { users, signInTokens, adminTokens, auditTrail, throttle, fleet }: Store,
  timed: Timed,
): Pick<Store, 'users' | 'signInTokens' | 'adminTokens' | 'auditTrail' | 'throttle' | 'fleet'> {
  return {
    adminTokens: {
      add: (token, entries) => timed('tokens', () => adminTokens.add(token, entries)),
      byDigest: (digest) => timed('tokens', () => adminTokens.byDigest(digest)),
      byId: (id) => timed('tokens', () => adminTokens.byId(id)),
      page: (after, limit) => timed('tokens', () => adminTokens.page(after, limit)),
      change: (id, edit, entries) => timed('tokens', () => adminTokens.change(id, edit, entries)),
      remove: (ids) => timed('tokens', () => adminTokens.remove(ids)),
    },
    users: {
      create: (user, auditEntries) => timed('accounts', () => users.create(user, auditEntries)),
      byId: (id) => timed('accounts', () => users.byId(id)),
      byEmail: (email) => timed('accounts', () => users.byEmail(email)),
      list: (query) => timed('accounts', () => users.list(query)),
      change: (id, edit, auditEntries) => timed('accounts', () => users.change(id, edit, auditEntries)),
      changeEmail: (id, email, auditEntries) =>
        timed('accounts', () => users.changeEmail(id, email, auditEntries)),
      memberships: (userId) => timed('accounts', () => users.memberships(userId)),
    },
    signInTokens: {
      add: (token) => timed('tokens', () => signInTokens.add(token)),
      find: (kind, id, nowMs) => timed('tokens', () => signInTokens.find(kind, id, nowMs)),
      change: (kind, id, edit, nowMs) => timed('tokens', () => signInTokens.change(kind, id, edit, nowMs)),
      take: (kind, id, nowMs) => timed('tokens', () => signInTokens.take(kind, id, nowMs)),
      tokensOf: (kind, accountId, nowMs) =>
        timed('tokens', () => signInTokens.tokensOf(kind, accountId, nowMs)),
      end: (kind, accountId, except) => timed('tokens', () => signInTokens.end(kind, accountId, except)),
      sweep: (nowMs) => timed('tokens', () => signInTokens.sweep(nowMs)),
    },
    auditTrail: {
      add: (entry) => timed('audit_trail', () => auditTrail.add(entry)),
      page: (query) => timed('audit_trail', () => auditTrail.page(query)),
      find: (query) => timed('audit_trail', () => auditTrail.find(query)),
    },
    throttle: {
      take: (subjects, nowMs) => timed('throttle', () => throttle.take(subjects, nowMs)),
      forget: (name) => timed('throttle', () => throttle.forget(name)),
      sweep: (nowMs) => timed('throttle', () => throttle.sweep(nowMs)),
    },
    fleet:
      fleet === null
        ? null
        : {
            publish: (member, ttlMs) => timed('probe', () => fleet.publish(member, ttlMs)),
            leave: (id) => timed('probe', () => fleet.leave(id)),
          },
  }
}

interface StartedOperation {
  /** Monotonic milliseconds. */
  readonly beganMs: number
  readonly metrics: Metrics
  readonly onFailure: OnFailure
}

/** Calls a synchronous operation and counts a failure. */
function attempt<Value>(
  op: string,
  call: () => Value,
  { beganMs, metrics, onFailure }: StartedOperation,
): Value {
  try {
    return call()
  } catch (error) {
    metrics.storeOperation(op, (performance.now() - beganMs) / 1000, true)
    onFailure(op, error)
    throw error
  }
}
