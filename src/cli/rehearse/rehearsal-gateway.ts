/**
 * A gateway in this process with one upstream, one model and a store in a temporary folder, for a rehearsal.
 */
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { DAY_MS } from '../../base/time-units.js'
import { createAccount } from '../../accounts/changes/change-accounts.js'
import { createKey } from '../../accounts/changes/change-keys.js'
import type { Catalogue, Config, UpstreamConfig, RouteConfig } from '../../config/config.js'
import { createSnapshot } from '../../config/create-snapshot.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import { createLogger } from '../../observe/log.js'
import { Metrics } from '../../observe/metrics/metrics.js'
import { openDataPlane } from '../../process/data-plane.js'
import { openStore } from '../../store/open-store.js'

/** The upstream and model of a rehearsal. */
export interface RehearsalOptions {
  readonly config: Config
  readonly catalogue: Catalogue
  readonly upstream: UpstreamConfig
  readonly model: string
  /** What the key may spend; absent: any amount. */
  readonly maxUsd?: number
}

/** A model id that no provider has, for the check of errors. */
export const NO_SUCH_MODEL = 'sluice-rehearsal-no-such-model'
/** The rehearsed model with an invalid key. */
export const WITH_WRONG_KEY = 'sluice-rehearsal-wrong-key'
const WRONG_KEY = 'sk-sluice-rehearsal-invalid'

export interface RehearsalGateway {
  readonly origin: string
  readonly secret: string
  /** Whether the upstream has a key. */
  readonly hasKey: boolean
  /** The ledger entry of a request; null without one within a few seconds. */
  entry(requestId: string): Promise<LedgerEntry | null>
  /** Ends the gateway and removes its files. */
  close(): Promise<void>
}

const ENTRY_WAIT_MS = 5_000
const ENTRY_POLL_MS = 20
const INTERRUPTED = 130
const BATCH_POLL_MS = 500
const MIB = 1_048_576
/** Room for the few lines of a rehearsal. */
const FILES = {
  ...{ maxBytes: MIB, maxBytesPerAccount: 64 * MIB, maxBytesTotal: 64 * MIB, maxLineBytes: MIB },
  ...{ keepMs: DAY_MS, upstreams: { openai: null, anthropic: null, gemini: null } },
}

/** Starts on a free loopback port. Rejects as `openDataPlane` does. */
export async function openRehearsalGateway(rehearsed: RehearsalOptions): Promise<RehearsalGateway> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-rehearsal-'))
  const interrupted = (): void => {
    rmSync(folder, { recursive: true, force: true })
    process.exit(INTERRUPTED)
  }
  process.once('SIGINT', interrupted)
  const config = configOf(rehearsed, folder)
  const store = await openStore(config.store)
  const options = { email: 'rehearsal@example.com', plan: 'max', password: null } as const
  const { account } = await createAccount(store, options)
  const actor = { actor: 'rehearsal', address: null }
  const changing = { store, plans: config.plans, nowMs: Date.now(), actor }
  const { maxUsd } = rehearsed
  const limits = maxUsd === undefined ? {} : { limits: { usd_per_day: maxUsd } }
  const { secret } = await createKey(changing, account, { name: 'rehearsal', ...limits })
  const { catalogue } = rehearsed
  const snapshot = createSnapshot(
    { config, catalogue, fileHash: '' },
    { generation: 1, loadedAtMs: Date.now() },
  )
  const log = createLogger({ level: 'silent' })
  const plane = await openDataPlane(snapshot, {
    log,
    metrics: new Metrics({ processMetrics: false }),
  })
  return {
    origin: `http://127.0.0.1:${plane.port}`,
    secret,
    hasKey: rehearsed.upstream.apiKeys.length > 0 || rehearsed.upstream.auth !== null,
    async entry(requestId) {
      const untilMs = performance.now() + ENTRY_WAIT_MS
      for (;;) {
        const row = await store.ledger.entry(null, requestId)
        if (row !== null && row.outcome !== 'lost') return row
        if (performance.now() > untilMs) return null
        await pause(ENTRY_POLL_MS)
      }
    },
    async close() {
      process.removeListener('SIGINT', interrupted)
      await plane.drain()
      await store.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The file's configuration with one upstream, without unrelated settings. */
function configOf({ config, upstream, model }: RehearsalOptions, folder: string): Config {
  const rehearsedUpstream = { ...upstream, probe: null, discover: false }
  const deniedUpstream = {
    ...rehearsedUpstream,
    name: `${upstream.name} with a wrong key`,
    apiKeys: [WRONG_KEY],
    auth: null,
  }
  const { server, ledger, dashboard, limiting, escrow, batches } = config
  return {
    ...config,
    server: {
      ...server,
      host: '127.0.0.1',
      port: 0,
      workers: 1,
      drainMs: 500,
      tls: null,
      overload: { ...server.overload, enabled: false },
    },
    store: `sqlite:${join(folder, 'rehearsal.db')}`,
    ledger: { ...ledger, spool: join(folder, 'spool') },
    dashboard: { ...dashboard, enabled: false },
    // Those of the running gateway have no records in this store: they would be swept away.
    files: { ...FILES, folder: join(folder, 'files') },
    escrow: { ...escrow, key: randomBytes(24).toString('hex') },
    batches: { ...batches, pollMs: BATCH_POLL_MS },
    upstreams: {
      [rehearsedUpstream.name]: rehearsedUpstream,
      [deniedUpstream.name]: deniedUpstream,
    },
    routes: [
      routeTo(rehearsedUpstream, model, null),
      routeTo(rehearsedUpstream, NO_SUCH_MODEL, null),
      routeTo(deniedUpstream, WITH_WRONG_KEY, model),
    ],
    limits: [],
    guardrails: [],
    plugins: [],
    limiting: { ...limiting, unknownPrice: 'allow' },
    plans: { ...config.plans, max: { priceUsd: 0, maxKeys: null, limits: {} } },
  }
}

function routeTo(upstream: UpstreamConfig, model: string, requested: string | null): RouteConfig {
  return {
    match: { model },
    strip: '',
    when: null,
    targets: [{ upstream: upstream.name, model: requested, weight: 1, abort: null }],
    sticky: 'none',
    balance: 'weighted',
    fallback: [],
    retry: { attempts: 1, budget: 0, maxWaitMs: 0, nonIdempotent: false },
    hedge: null,
    shadow: null,
    cache: null,
    cacheControl: null,
    guardrails: [],
  }
}
