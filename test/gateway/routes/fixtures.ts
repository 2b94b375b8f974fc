/** A gateway with the upstreams and routes of a test, and an emulator behind each upstream. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Test } from 'tap'
import { createKey } from '../../helpers/keys.js'
import type { Labels } from '../../../src/accounts/labels.js'
import { loadConfig } from '../../../src/config/load-config.js'
import { startEmulator, type Emulator } from '../../../src/emulator/server.js'
import { openStore } from '../../../src/store/open-store.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'

/** The dialect of an upstream, and more of its keys as a YAML flow map. */
export interface UpstreamSettings {
  readonly dialect?: 'openai-chat' | 'anthropic' | 'gemini'
  /** `api_key: emulated` if there is no key here. */
  readonly options?: string
}

/** The parts of a reply that these tests check. */
export interface Reply {
  readonly status: number
  readonly upstream: string | null
  readonly attempts: string | null
  readonly text: string
}

/** The running parts. */
export interface Stage {
  readonly gateway: TestGateway
  /** By the name of the upstream. */
  readonly emulators: Readonly<Record<string, Emulator>>
  /** Sends a request with the good key, or with `secret`. */
  readonly ask: (body?: object, secret?: string) => Promise<Reply>
  /** Reloads the configuration with other settings. */
  readonly reload: (upstreams: Readonly<Record<string, UpstreamSettings>>, routes: string) => void
  /** Creates another key of the account, with these labels. */
  readonly keyWith: (labels: Labels) => Promise<string>
  /** The value of the metric series whose line starts with this text. */
  readonly metric: (start: string) => Promise<number>
  /** Number of requests that each upstream has received. */
  readonly received: () => Record<string, number>
}

/** One emulator and one upstream for each name. `routes` is YAML below `routes:`. */
export async function startStage(
  t: Test,
  upstreams: Readonly<Record<string, UpstreamSettings>>,
  routes: string,
): Promise<Stage> {
  const emulators: Record<string, Emulator> = {}
  for (const name of Object.keys(upstreams)) {
    const emulator = await startEmulator({ models: 'any' })
    t.teardown(() => emulator.close())
    emulators[name] = emulator
  }
  const gateway = await startGateway(t)
  const file = readFileSync(gateway.configFile, 'utf8')
  const reload = (changed: typeof upstreams, changedRoutes: string): void => {
    const entries = Object.entries(changed).map(([name, settings]) => entryOf(name, settings))
    const parts = `upstreams:\n${entries.join('\n')}\nroutes:\n${changedRoutes}\nmodels:`
    writeFileSync(
      gateway.configFile,
      file.replace(/upstreams:[^]*?models:/, () => parts),
    )
    gateway.reload()
  }
  const entryOf = (name: string, { dialect = 'openai-chat', options = '' }: UpstreamSettings) => {
    const key = options.includes('api_key') ? '' : ', api_key: emulated'
    const { openai, anthropic, gemini } = emulators[name]?.baseUrls ?? {
      openai: '',
      anthropic: '',
      gemini: '',
    }
    const url = { 'openai-chat': openai, anthropic, gemini }[dialect]
    const more = options === '' ? '' : `, ${options}`
    return `  ${name}: { dialect: ${dialect}, base_url: ${url}, proxy: none${key}${more} }`
  }
  reload(upstreams, routes)
  return {
    gateway,
    emulators,
    reload,
    ask: (body = {}, secret = gateway.secret) => ask(gateway, body, secret),
    keyWith: (labels) => keyWith(gateway, labels),
    metric: async (start) => {
      const line = (await gateway.metrics.text()).split('\n').find((each) => each.startsWith(start))
      return Number(line?.slice(line.lastIndexOf(' ') + 1) ?? NaN)
    },
    received: () =>
      Object.fromEntries(
        Object.entries(emulators).map(([name, { ledger }]) => [
          name,
          ledger.filter(({ method }) => method === 'POST').length,
        ]),
      ),
  }
}

async function ask(gateway: TestGateway, body: object, secret: string): Promise<Reply> {
  const plain = { model: 'm-1', messages: [{ role: 'user', content: 'Hello' }] }
  const reply = await gateway.chat({ ...plain, ...body }, { headers: { authorization: `Bearer ${secret}` } })
  return {
    status: reply.status,
    upstream: reply.headers.get('x-sluice-upstream'),
    attempts: reply.headers.get('x-sluice-attempts'),
    text: await reply.text(),
  }
}

async function keyWith({ configFile }: TestGateway, labels: Labels): Promise<string> {
  const loaded = loadConfig(configFile, process.env)
  if (!loaded.ok) throw new Error('the configuration is not good')
  const store = await openStore(loaded.config.store)
  const account = await store.accountByEmail('test@example.com')
  if (account === null) throw new Error('no account')
  const { secret } = await createKey(store, {
    plans: loaded.config.plans,
    account,
    name: 'labelled',
    labels,
  })
  await store.close()
  return secret
}

/** Resolves when the condition holds. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 10))
}
