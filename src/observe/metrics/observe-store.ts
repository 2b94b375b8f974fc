/**
 * Wraps a store to time its operations and count their failures. Operations on the path of a request have
 * labels of their own; those of the dashboard, commands and timers share one per kind, to stay below the
 * metric's cap.
 */
import type { Store } from '../../store/store.js'
import type { Metrics } from './metrics.js'

/** Called with each failure and the name of the operation. */
type OnFailure = (op: string, error: unknown) => void

type Method = (...values: never[]) => unknown

/** The label of each method; null: neither timed nor counted. */
type LabelsOf<Part> = {
  readonly [Name in keyof Part as NonNullable<Part[Name]> extends Method ? Name : never]-?: string | null
}

/** The parts of a store, and the store itself. */
interface Parts extends Pick<
  Store,
  | 'users'
  | 'signInTokens'
  | 'adminTokens'
  | 'auditTrail'
  | 'throttle'
  | 'directory'
  | 'cache'
  | 'providerObjects'
  | 'denials'
  | 'dimensionValues'
  | 'sealedRecords'
  | 'ledger'
> {
  readonly fleet: NonNullable<Store['fleet']>
  readonly store: Store
}

const LABELS: { readonly [Name in keyof Parts]: LabelsOf<Parts[Name]> } = {
  store: {
    accountById: 'accounts',
    accountByEmail: 'accounts',
    accountByName: 'accounts',
    listAccounts: 'accounts',
    accountsByName: 'accounts',
    ancestorsOf: 'accounts',
    childrenOf: 'accounts',
    membersOf: 'accounts',
    memberOf: 'accounts',
    transact: 'accounts',
    listKeys: 'keys',
    keyById: 'keys',
    keyByName: 'keys',
    countKeys: 'keys',
    removeKeys: 'keys',
    findKey: 'find_key',
    subscribe: null,
    probe: 'probe',
    close: null,
  },
  directory: { keys: 'keys', accounts: 'accounts', keyNames: 'keys' },
  cache: { put: 'cache_put', get: 'cache_get', sweep: 'sweep' },
  dimensionValues: {
    claim: 'values',
    add: 'values',
    find: 'values',
    end: 'values',
    all: null,
    sweep: 'sweep',
  },
  sealedRecords: {
    put: 'objects',
    replace: 'objects',
    find: 'objects',
    list: 'objects',
    take: 'objects',
    remove: 'objects',
    sweep: 'sweep',
  },
  denials: { create: 'keys', byId: 'keys', list: 'keys', remove: 'keys', isDenied: 'keys', sweep: 'sweep' },
  providerObjects: { put: 'objects', find: 'objects', remove: 'objects', all: null, sweep: 'sweep' },
  ledger: {
    admit: 'admit',
    settle: 'settle',
    releaseSlots: null,
    append: 'settle',
    raise: 'admit',
    lower: 'settle',
    renew: 'renew',
    expire: 'expire',
    addToBudget: 'settle',
    budgetMarks: 'usage',
    limitStates: 'usage',
    sums: 'usage',
    cells: 'usage',
    entries: 'usage',
    entry: 'usage',
    export: null,
    keyUse: 'usage',
    groupUse: 'usage',
    prepareGroupUse: null,
    accountUse: 'usage',
    prunedUse: 'usage',
    putAccountUse: 'usage',
    lastUse: 'usage',
    putSums: 'usage',
    budgets: null,
    putBudgets: 'usage',
    prune: 'sweep',
    memory: 'sweep',
    fitMemory: 'sweep',
  },
  adminTokens: {
    add: 'tokens',
    byDigest: 'tokens',
    byId: 'tokens',
    page: 'tokens',
    change: 'tokens',
    remove: 'tokens',
  },
  users: {
    create: 'accounts',
    byId: 'accounts',
    byEmail: 'accounts',
    list: 'accounts',
    change: 'accounts',
    changeEmail: 'accounts',
    memberships: 'accounts',
  },
  signInTokens: {
    add: 'tokens',
    find: 'tokens',
    change: 'tokens',
    take: 'tokens',
    tokensOf: 'tokens',
    end: 'tokens',
    sweep: 'tokens',
  },
  auditTrail: { add: 'audit_trail', page: 'audit_trail', find: 'audit_trail' },
  throttle: { take: 'throttle', forget: 'throttle', sweep: 'throttle' },
  fleet: { publish: 'probe', leave: 'probe' },
}

/** The members of a part that are no methods. */
type ValuesOf<Part> = Omit<Part, keyof LabelsOf<Part>>

/** The same store, observed by `sluice_store_duration_seconds{op}` and `sluice_store_errors_total{op}`. */
export function observeStore(store: Store, metrics: Metrics, onFailure: OnFailure): Store {
  const timed = (op: string, call: () => unknown): unknown => {
    const beganMs = performance.now()
    const succeeded = (): void => {
      metrics.storeOperation(op, (performance.now() - beganMs) / 1000, false)
    }
    const failed = (error: unknown): void => {
      metrics.storeOperation(op, (performance.now() - beganMs) / 1000, true)
      onFailure(op, error)
    }
    let answer: unknown
    try {
      answer = call()
    } catch (error) {
      failed(error)
      throw error
    }
    // Attached beside the caller's chain, so that the caller waits for no additional promise.
    if (answer instanceof Promise) answer.then(succeeded, failed)
    else succeeded()
    return answer
  }
  const observed = <Part extends object>(
    part: Part,
    labels: LabelsOf<Part>,
    values: ValuesOf<Part>,
  ): Part => {
    const methods: Record<string, unknown> = {}
    for (const [name, op] of Object.entries<string | null>(labels)) {
      // A part may lack a method that is optional.
      if (typeof Reflect.get(part, name) !== 'function') continue
      const call = (given: readonly unknown[]): unknown => {
        const method: unknown = Reflect.get(part, name)
        return typeof method === 'function' ? Reflect.apply(method, part, given) : undefined
      }
      methods[name] =
        op === null
          ? (...given: readonly unknown[]) => call(given)
          : (...given: readonly unknown[]) => timed(op, () => call(given))
    }
    // These are all members: `LabelsOf` and `ValuesOf` divide them.
    return { ...values, ...methods } as Part
  }
  const { id, isNew, ledger, fleet } = store
  return observed(store, LABELS.store, {
    ...{ id, isNew },
    cache: observed(store.cache, LABELS.cache, {}),
    ledger: observed(ledger, LABELS.ledger, { archive: ledger.archive }),
    signInTokens: observed(store.signInTokens, LABELS.signInTokens, {}),
    adminTokens: observed(store.adminTokens, LABELS.adminTokens, {}),
    auditTrail: observed(store.auditTrail, LABELS.auditTrail, {}),
    throttle: observed(store.throttle, LABELS.throttle, {}),
    dimensionValues: observed(store.dimensionValues, LABELS.dimensionValues, {}),
    providerObjects: observed(store.providerObjects, LABELS.providerObjects, {}),
    denials: observed(store.denials, LABELS.denials, {}),
    sealedRecords: observed(store.sealedRecords, LABELS.sealedRecords, {}),
    fleet: fleet === null ? null : observed(fleet, LABELS.fleet, {}),
    users: observed(store.users, LABELS.users, {}),
    directory: observed(store.directory, LABELS.directory, {}),
  })
}
