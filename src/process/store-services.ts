/**
 * The parts of a data-plane process that use the store: authentication, reasoning state, limits, the ledger.
 */
import { hash } from 'node:crypto'
import { accountPart } from '../accounts/authentication/authentication-result.js'
import { Authenticator } from '../accounts/authentication/authenticator.js'
import { labelsText, NO_LABELS } from '../accounts/labels.js'
import type { Config, LimitingConfig, Snapshot } from '../config/config.js'
import { RequestValues } from '../gateway/dimensions/request-values.js'
import { OwnedObjects } from '../gateway/objects/owned-objects.js'
import type { Services } from '../gateway/pipeline.js'
import { Escrow } from '../gateway/reasoning/escrow.js'
import { StoredResponses } from '../gateway/stored-responses/stored-responses.js'
import { LedgerWriter } from '../ledger/ledger-writer.js'
import { Spool } from '../ledger/spool.js'
import { Limiter } from '../limits/limiter.js'
import { keptTimes } from '../usage/kept-times.js'
import { BudgetSeeds } from '../usage/seed-budgets.js'
import { modelRulesWithoutRoute, unmatchedRules, selectsSubjects } from '../limits/unmatched-rules.js'
import type { Logger } from '../observe/log.js'
import type { Metrics } from '../observe/metrics/metrics.js'
import { observeStore } from '../observe/metrics/observe-store.js'
import { reasonOf } from '../store/store-errors.js'
import { KnownKeys } from '../store/known-keys.js'
import type { Ledger } from '../store/ledger.js'
import { removeEndedKeysInTurn } from '../store/remove-ended-keys.js'
import { newSealSecret } from '../store/seal.js'
import { openExpectedStore } from '../store/store-identity.js'
import type { Store } from '../store/store.js'

/** Time between two probes of the store. */
const PROBE_MS = 2000
/** Time between two removals of keys that expired long ago. */
const REMOVAL_MS = 600_000
/** A reading for a budget that begins is done once by all processes. */
const SEEDED_ONCE_MS = 5_000

/** Releases the parts of the gateway after it has ended. */
export async function release(
  {
    authenticator,
    escrow,
    limiter,
    ledgerWriter,
    tracing,
    values,
    seeds,
  }: Pick<Services, 'authenticator' | 'escrow' | 'limiter' | 'ledgerWriter' | 'tracing' | 'values'> & {
    readonly seeds: BudgetSeeds
  },
  store: Store,
): Promise<void> {
  await Promise.all([ledgerWriter.close(), tracing?.close(), values.close()])
  authenticator.close()
  escrow.close()
  limiter.close()
  seeds.close()
  await store.close()
}

/** The store, whose failures are counted and logged. */
export async function openObservedStore({ config }: Snapshot, log: Logger, metrics: Metrics): Promise<Store> {
  const failures = new StoreErrorLog(log)
  const warn = (reason: string): void => log.warn('store', { reason })
  const store = await openExpectedStore({ url: config.store, folder: config.ledger.spool, warn })
  return observeStore(store, metrics, (op, error) => failures.report(op, error))
}

/** The log and the metrics of a process. */
export interface Observers {
  readonly log: Logger
  readonly metrics: Metrics
}

/**
 * The parts of the gateway that use the store, with their caches. `gatewayId` is the same for all processes
 * of this run of the gateway.
 */
export async function partsOf(
  store: Store,
  current: () => Snapshot,
  observers: Observers & {
    readonly gatewayId: string
    /** The ledger with the archive, which requests never read. */
    readonly ledger: Ledger
  },
): Promise<
  Pick<
    Services,
    | 'authenticator'
    | 'escrow'
    | 'responses'
    | 'objects'
    | 'limiter'
    | 'ledgerWriter'
    | 'cacheStore'
    | 'values'
  > & { readonly seeds: BudgetSeeds }
> {
  const { gatewayId, log } = observers
  const { auth, ledger } = current().config
  const warn = (reason: string): void => log.warn('store', { reason })
  const known =
    auth.staleSeconds === 0 ? null : await KnownKeys.open({ folder: ledger.spool, gatewayId, store, warn })
  const authenticator = new Authenticator({
    store,
    settings: () => current().config.auth,
    now: () => performance.now(),
    onResult: (result) => observers.metrics.auth(result),
    known,
  })
  await authenticator.verifyKnown()
  const cacheOptions = {
    cache: store.cache,
    secret: current().config.escrow.key ?? newSealSecret(),
    now: () => Date.now(),
  }
  const escrow = new Escrow({
    ...cacheOptions,
    settings: () => current().config.escrow,
    onResult: (result) => observers.metrics.escrow(result),
  })
  const responses = new StoredResponses({
    ...cacheOptions,
    settings: () => {
      const { escrow: limits, responses } = current().config
      return {
        storeSeconds: responses.storeSeconds,
        maxEntries: limits.maxEntries,
        maxBytes: limits.maxBytes,
      }
    },
  })
  const seeds = new BudgetSeeds({
    ledger: observers.ledger,
    own: store.ledger,
    kept: (ofStore) => keptTimes(store.ledger, current().config, { nowMs: Date.now(), ofStore }),
    ownerOf: (of, id, accountId) => {
      return of === 'key' ? store.keyById(accountId, id) : store.accountById(id)
    },
    async isTurn(name) {
      const turn = { name: `seed:${hash('sha256', name, 'hex')}`, burst: 1, everyMs: SEEDED_ONCE_MS }
      const [waitMs = 0] = await store.throttle.take([turn], Date.now())
      return waitMs === 0
    },
    warn: ({ accountId }, cause) => {
      const reason = reasonOf(cause)
      log.warn('a budget does not count earlier use yet', { account_id: accountId, reason })
    },
  })
  const limiter = newLimiter(store.ledger, () => current().config.limiting, observers, seeds)
  const ledgerWriter = openLedgerWriter(store, () => current().config, observers)
  const objects = new OwnedObjects({ store: store.providerObjects, now: () => Date.now() })
  const cacheStore = { store, secret: cacheOptions.secret }
  const values = new RequestValues(store, () => current().config.dimensions)
  return { authenticator, escrow, responses, objects, limiter, ledgerWriter, cacheStore, values, seeds }
}

function newLimiter(
  ledger: Ledger,
  settings: () => LimitingConfig,
  { log, metrics }: Observers,
  seeds: BudgetSeeds,
): Limiter {
  return new Limiter({
    ledger,
    settings,
    onAdmitted: (admissionRequest) => seeds.admitted(admissionRequest),
    now: () => performance.now(),
    onAway: (why) => {
      metrics.limitsLocal(true)
      log.error('limits are enforced by this process alone: the store is unavailable', why)
    },
    onBack: (elapsedMs) => {
      metrics.limitsLocal(false)
      log.info('limits are enforced by the store again', { elapsed_ms: elapsedMs })
    },
  })
}

/** The periodic probe of the store. */
export interface StoreProbe {
  /** `ok`, or the problem. */
  state: string
  /** When the first probe of the outage failed (monotonic); null: the store answers. */
  failingSinceMs: number | null
  readonly timer: NodeJS.Timeout
}

/** Probes the store periodically. */
export function probing(store: Store, limiter: Limiter): StoreProbe {
  const timer = setInterval(() => {
    store.probe().then(
      () => {
        probe.state = 'ok'
        probe.failingSinceMs = null
        limiter.storeReplied()
      },
      (error: unknown) => {
        probe.state = `unavailable: ${reasonOf(error)}`
        probe.failingSinceMs ??= performance.now()
      },
    )
  }, PROBE_MS).unref()
  const probe: StoreProbe = { state: 'ok', failingSinceMs: null, timer }
  return probe
}

/** Scans of a running gateway wait this long after each account. */
const SCAN_PAUSE_MS = 5
/** A generation of a gateway is checked once by all its processes. */
const CHECKED_ONCE_MS = 600_000

/** Logs the rules for accounts, keys, labels and models that do not exist. Never rejects. */
export async function logUnmatchedRules(
  store: Store,
  { config, catalogue, generation }: Snapshot,
  { log, gatewayId }: { readonly log: Logger; readonly gatewayId: string },
): Promise<void> {
  const ofModels = modelRulesWithoutRoute(config, catalogue)
  if (ofModels.length === 0 && !selectsSubjects(config)) return
  try {
    const turn = { name: `unmatched-limits:${gatewayId}:${generation}`, burst: 1, everyMs: CHECKED_ONCE_MS }
    const [waitMs = 0] = await store.throttle.take([turn], Date.now())
    if (waitMs > 0) return
    for (const reason of [...ofModels, ...(await unmatchedRules(config, store, SCAN_PAUSE_MS))]) {
      log.warn('a limit applies to no one', { generation, reason })
    }
  } catch {
    // The probe reports a failing store.
  }
}

/** Removes keys that expired long ago, and expired objects and denials. The probe reports a failing store. */
export function removingEndedKeys(store: Store): NodeJS.Timeout {
  return setInterval(() => {
    removeEndedKeysInTurn(store, Date.now()).catch(() => undefined)
    store.providerObjects.sweep(Date.now()).catch(() => undefined)
    store.denials.sweep(Date.now()).catch(() => undefined)
    store.dimensionValues.sweep(Date.now()).catch(() => undefined)
    store.sealedRecords.sweep(Date.now()).catch(() => undefined)
  }, REMOVAL_MS).unref()
}

function openLedgerWriter(
  store: Pick<Store, 'ledger' | 'findKey'>,
  config: () => Pick<Config, 'ledger' | 'archive'>,
  { log, metrics }: Observers,
): LedgerWriter {
  const { spool, spoolMaxBytes } = config().ledger
  return new LedgerWriter({
    ledger: store.ledger,
    spool: new Spool(spool, spoolMaxBytes),
    ownerOf: async (digest) => {
      const found = await store.findKey(digest)
      if (found === null) return null
      const { id: keyId, accountId, labels = NO_LABELS } = found.key
      const { accountPath = null } = accountPart(found.account, found.ancestors ?? [])
      return { keyId, accountId, labels: labelsText(labels), accountPath }
    },
    settings: () => config().ledger,
    isArchived: () => config().archive !== null,
    log,
    onRow: (kind, rows) => metrics.usageRow(kind, rows),
    onMemory: (memory) => metrics.gauges.ledgerMemory(memory),
  })
}

const AGAIN_MS = 10_000
/** Maximum number of reasons in ten seconds; each damaged record is a reason of its own. */
const MOST_REASONS = 32

/**
 * Logs why the store failed; the reply to a client does not contain the reason. An unavailable store fails
 * every request, so each reason is logged once in ten seconds.
 */
class StoreErrorLog {
  private readonly log: Pick<Logger, 'warn'>
  private readonly now: () => number
  private readonly reported = new Map<string, number>()

  /** `now` is a monotonic clock in ms. */
  constructor(log: Pick<Logger, 'warn'>, now: () => number = () => performance.now()) {
    this.log = log
    this.now = now
  }

  /** `op` is the operation's name in `sluice_store_errors_total`. */
  report(op: string, error: unknown): void {
    const nowMs = this.now()
    for (const [reason, atMs] of this.reported) {
      if (nowMs - atMs >= AGAIN_MS) this.reported.delete(reason)
    }
    const reason = reasonOf(error)
    if (this.reported.has(reason) || this.reported.size >= MOST_REASONS) return
    this.reported.set(reason, nowMs)
    this.log.warn('store failed', { op, reason })
  }
}
