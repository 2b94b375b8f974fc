/**
 * A whole gateway in this process for tests: real listener, real store, any upstream.
 * Port 0, a temporary folder, closed when the test ends.
 */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from './keys.js'
import { knownHash, PASSWORD } from './password.js'
import type { PlanName } from '../../src/accounts/account.js'
import type { Snapshot } from '../../src/config/config.js'
import { openConfig } from '../../src/config/generations/config-at-start.js'
import { loadConfig } from '../../src/config/load-config.js'
import { formatProblem } from '../../src/config/config-problem.js'
import { createSnapshot } from '../../src/config/create-snapshot.js'
import type { ConfigControl } from '../../src/control/config-control.js'
import { localConfigControl } from '../../src/process/ops/answer-control-requests.js'
import { openDataPlane, type DataPlane } from '../../src/process/data-plane.js'
import { startEmulator, type Emulator } from '../../src/emulator/server.js'
import { createLogger, type Logger } from '../../src/observe/log.js'
import { Metrics } from '../../src/observe/metrics/metrics.js'
import { openStore } from '../../src/store/open-store.js'

/** Options of a test's gateway; the rest is as in the demo. */
export interface GatewaySettings {
  /** Base URLs of the three upstreams; an emulator is started for those that are missing. */
  readonly upstreams?: { openai?: string; anthropic?: string; gemini?: string }
  /** Added to each upstream's YAML flow map, `timeouts: { idle_ms: 200 }` for instance. */
  readonly upstreamOptions?: string
  /** More top-level YAML. */
  readonly more?: string
  /** YAML of more routes, `  - { model: fast, upstream: openai }` for instance. */
  readonly routes?: string
  /** Keys of `server:` besides host and port, `max_body_bytes: 1000` for instance. */
  readonly server?: string
  readonly plan?: PlanName
  /** The settings of one more upstream `cloud`, in YAML's flow form. */
  readonly cloud?: string
  /** Instead of a SQLite store. */
  readonly store?: string
  /** Another gateway of the store has created the account; `secret` is then empty. */
  readonly hasAccount?: boolean
}

/** A running gateway. */
export interface TestGateway {
  readonly origin: string
  readonly port: number
  /** The API's base URL, for SDKs. */
  readonly baseUrl: string
  /** A valid key. */
  readonly secret: string
  readonly emulator: Emulator
  readonly plane: DataPlane
  readonly metrics: Metrics
  /** The log so far, one parsed object per line. */
  readonly lines: readonly Record<string, unknown>[]
  readonly configFile: string
  readonly folder: string
  /** The URL of the store, and the plans: for more accounts and keys. */
  readonly store: string
  readonly plans: Snapshot['config']['plans']
  /** Loads the current configuration file and applies it. */
  reload(): Snapshot
  /** Puts lines of upstreams behind, and lines of routes before, those of the file, and applies it. */
  add(upstreams: string, routes: string): Snapshot
  /** Loads the current configuration file. */
  load(): Snapshot
  /** `fetch` of an API path with the valid key and a JSON body. */
  chat(body: unknown, init?: RequestInit): Promise<Response>
}

/** Starts a gateway and, if no upstream is given, an emulator behind it; both end with the test. */
export async function startGateway(t: Test, settings: GatewaySettings = {}): Promise<TestGateway> {
  // Not in `testdir`, which tap removes before the gateway has ended if a test calls that first.
  const folder = mkdtempSync(join(tmpdir(), 'sluice-gateway-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const emulator = await startEmulator({ models: 'any' })
  t.teardown(() => emulator.close())
  const configFile = join(folder, 'gateway.yaml')
  copyFileSync('config/models.yaml', join(folder, 'models.yaml'))
  writeFileSync(configFile, configText(emulator, settings))
  let generation = 1
  const load = (): Snapshot => snapshotOf(configFile, generation)
  const first = load()
  const secret = settings.hasAccount === true ? '' : await makeKey(first, settings.plan ?? 'max')
  const lines: Record<string, unknown>[] = []
  const destination = {
    write: (line: string) => {
      lines.push(JSON.parse(line) as Record<string, unknown>)
    },
  }
  const log = createLogger({ level: 'info', destination })
  const metrics = new Metrics({ processMetrics: false })
  const configControl = lazyDesk(t, configFile, log)
  const plane = await openDataPlane(first, { log, metrics, configControl })
  t.teardown(() => plane.drain())
  const origin = `http://127.0.0.1:${plane.port}`
  const reload = (): Snapshot => {
    generation += 1
    const next = load()
    plane.adopt(next)
    return next
  }
  return {
    origin,
    port: plane.port,
    baseUrl: `${origin}/v1`,
    secret,
    emulator,
    plane,
    metrics,
    lines,
    configFile,
    folder,
    store: first.config.store,
    plans: first.config.plans,
    load,
    add(upstreams, routes) {
      const text = readFileSync(configFile, 'utf8')
      writeFileSync(
        configFile,
        text.replace('routes:\n', () => `${upstreams}routes:\n${routes}`),
      )
      return reload()
    },
    reload,
    chat: (body, init = {}) =>
      fetch(`${origin}/v1/chat/completions`, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...init,
        headers: {
          authorization: `Bearer ${secret}`,
          'content-type': 'application/json',
          ...(init.headers as Record<string, string> | undefined),
        },
      }),
  }
}

/**
 * The test gateway's file: the upstreams and routes of the specification, and one model that always uses
 * OpenAI's Responses.
 */
export function configText(emulator: Emulator, settings: GatewaySettings): string {
  const { upstreams = {}, upstreamOptions, more = '', routes = '', server } = settings
  const options = upstreamOptions === undefined ? '' : `, ${upstreamOptions}`
  const { baseUrls } = emulator
  return `
server: { host: 127.0.0.1, port: 0, ops_port: 0, drain_ms: 500${server === undefined ? '' : `, ${server}`} }
store: ${settings.store ?? 'sqlite:./data/sluice.db'}
upstreams:
  openai: { dialect: openai, base_url: ${upstreams.openai ?? baseUrls.openai}, api_key: emulated${options} }
  anthropic: { dialect: anthropic, base_url: ${upstreams.anthropic ?? baseUrls.anthropic}, api_key: emulated${options} }
  responses: { dialect: openai-responses, base_url: ${upstreams.openai ?? baseUrls.openai}, api_key: emulated${options} }
  google: { dialect: gemini, base_url: ${upstreams.gemini ?? baseUrls.gemini}, api_key: emulated${options} }
${settings.cloud === undefined ? '' : `  cloud: { ${settings.cloud} }\n`}routes:
  - { prefix: gpt-, upstream: openai }
  - { prefix: o1-, upstream: openai }
  - { prefix: o3-, upstream: openai }
  - { prefix: o4-, upstream: openai }
  - { prefix: text-embedding-, upstream: openai }
  - { model: gpt-4.1, upstream: responses }
  - { model: o1, upstream: openai }
  - { model: o3, upstream: openai }
  - { prefix: claude-, upstream: anthropic }
  - { prefix: gemini-, upstream: google }
${routes}
models: models.yaml
plans:
  starter: { price_usd: 20, max_keys: 5 }
  pro: { price_usd: 50, max_keys: 20 }
  max: { price_usd: 100, max_keys: unlimited }
${more}
`
}

/** Opened at first use, because it watches files and few tests need it. */
function lazyDesk(t: Test, file: string, log: Logger): ConfigControl {
  let opening: Promise<ConfigControl> | null = null
  const control = (): Promise<ConfigControl> => {
    opening ??= openConfig(file, process.env).then((source) => {
      t.teardown(() => source.close())
      return localConfigControl(source, log)
    })
    return opening
  }
  return {
    list: async () => (await control()).list(),
    show: async (generation, from) => (await control()).show(generation, from),
    rollBack: async (wish) => (await control()).rollBack(wish),
    plan: async (text) => (await control()).plan(text),
  }
}

function snapshotOf(file: string, generation: number): Snapshot {
  const loaded = loadConfig(file, process.env)
  if (!loaded.ok) throw new Error(loaded.errors.map(formatProblem).join('\n'))
  return createSnapshot(loaded, { generation, loadedAtMs: Date.now() })
}

async function makeKey({ config }: Snapshot, plan: PlanName): Promise<string> {
  const store = await openStore(config.store)
  const email = 'test@example.com'
  const login = { email, plan, password: PASSWORD }
  // A second gateway of the store finds the account of the first.
  const account =
    (await store.accountByEmail(email)) ?? (await createAccount(store, login, { hash: knownHash })).account
  const { secret } = await createKey(store, { plans: config.plans, account, name: 'test' })
  await store.close()
  return secret
}
