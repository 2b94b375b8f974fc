/**
 * Goal: no key is charged less than a provider bills for its requests, and no budget is exceeded, for replies
 * that are aborted, cut, timed out, hedged, retried or drained.
 * Method: a mix of requests with keys of several budgets against a provider that bills what its model
 * generated, hidden reasoning included, until it notices a closed connection; on both stores.
 * `SLUICE_BILLED=10000` sets the number of requests; the default is small.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { createKey } from '../../helpers/keys.js'
import { loadConfig } from '../../../src/config/load-config.js'
import { openStore } from '../../../src/store/open-store.js'
import { promptOf, startBillingProvider, type Act, type Plan } from '../../helpers/billing-provider.js'
import type { TestGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'
import { freshDatabases, redisMissing, startRedis } from '../../helpers/redis.js'
import { dice } from '../../helpers/seeded-random.js'
import { startWith } from '../attempts/fixtures.js'
import { anotherDay } from '../../helpers/long-suite.js'

const REQUESTS = Number(process.env['SLUICE_BILLED'] ?? 300)
const CLIENTS = 48
const KEYS = 12
/** Charges of a budget in dollars for each request of its key; null: no budget. */
const BUDGETS = [null, 0.02, 0.005, 0.001] as const
const ACTS: readonly (readonly Act[])[] = [
  ['answer'],
  ['answer'],
  ['answer'],
  ['slow', 'answer'],
  ['slow', 'slow'],
  ['status', 'answer'],
  ['error', 'answer'],
  ['drop', 'answer'],
  ['drop', 'drop'],
  ['cut', 'answer'],
  ['cut'],
  ['stall', 'answer'],
]
const MODELS = ['gpt-4o', 'claude-sonnet-4-5', 'gemini-2.5-flash', 'hedged', 'chain'] as const

interface Key {
  readonly id: string
  readonly secret: string
  readonly limitNanoUsd: number | null
}

const RETRY = 'retry: { attempts: 2, non_idempotent: true, max_wait_ms: 20 }'
const GPT = 'targets: [ { upstream: openai, model: gpt-4o } ]'
const ROUTES = [
  `model: hedged, ${GPT}, hedge: { after_ms: 60, extra_spend: 1 }, ${RETRY}`,
  `model: chain, ${GPT}, fallback: [ { upstream: anthropic, model: claude-sonnet-4-5 } ], ${RETRY}`,
]

async function gatewayOver(t: Test, url: string, store: string | undefined): Promise<TestGateway> {
  const gateway = await startWith(t, ROUTES, {
    upstreams: { openai: url, anthropic: url, gemini: url },
    upstreamOptions: 'timeouts: { first_byte_ms: 400, idle_ms: 400 }',
    more: 'after_disconnect: { max_streams: 30, max_streams_per_key: 4, max_ms: 200 }',
    ...(store === undefined ? {} : { store }),
  })
  const text = readFileSync(gateway.configFile, 'utf8')
  writeFileSync(
    gateway.configFile,
    text
      .replace('dialect: anthropic,', 'dialect: anthropic, on_disconnect: cancel,')
      .replace('dialect: gemini,', 'dialect: gemini, on_disconnect: drain_until_usage,'),
  )
  gateway.reload()
  return gateway
}

async function makeKeys({ configFile }: TestGateway): Promise<Key[]> {
  const loaded = loadConfig(configFile, process.env)
  if (!loaded.ok) throw new Error('the configuration does not load')
  const { plans, store: url } = loaded.config
  const store = await openStore(url)
  try {
    const account = await store.accountByEmail('test@example.com')
    if (account === null) throw new Error('no account')
    const keys: Key[] = []
    for (let index = 0; index < KEYS; index += 1) {
      const usd = BUDGETS[index % BUDGETS.length] ?? null
      const limitNanoUsd = usd === null ? null : Math.round((usd * 1e9 * REQUESTS) / KEYS)
      const limits = limitNanoUsd === null ? {} : { limits: { nanoUsdPerDay: limitNanoUsd } }
      const made = await createKey(store, { plans, account, name: `key ${index}`, ...limits })
      keys.push({ id: made.key.id, secret: made.secret, limitNanoUsd })
    }
    return keys
  } finally {
    await store.close()
  }
}

/** A request, and when its client leaves; null: never. */
interface Asked {
  readonly body: string
  readonly secret: string
  readonly leavesAfterMs: number | null
}

/** Resolves when the client has the reply or has left. Never rejects. */
function ask({ port }: TestGateway, { body, secret, leavesAfterMs }: Asked): Promise<void> {
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      connection: 'close',
    }
    const options = { port, path: '/v1/chat/completions', method: 'POST', headers }
    const req = request(options, (res) => {
      res.resume()
      res.on('error', () => undefined)
    })
    req.on('error', () => undefined)
    req.once('close', () => resolve())
    if (leavesAfterMs !== null) setTimeout(() => req.destroy(), leavesAfterMs)
    req.end(body)
  })
}

function askedAt(index: number, keys: readonly Key[], random: () => number): Asked {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const key = Math.floor(random() * keys.length)
  const think = random() < 0.6 ? Math.floor(random() * 1_200) : 0
  const plan: Plan = {
    id: index,
    key,
    think,
    words: 1 + Math.floor(random() * 400),
    acts: pick(ACTS),
  }
  const content = promptOf(plan, 'word '.repeat(Math.floor(random() * 60)))
  const limit = random() < 0.8 ? { max_tokens: 200 + Math.floor(random() * 1_500) } : {}
  const model = pick(MODELS)
  const stream = random() < 0.7
  const body = { model, stream, messages: [{ role: 'user', content }], ...limit }
  const leavesAfterMs = random() < 0.5 ? random() * 90 : null
  return { body: JSON.stringify(body), secret: keys[key]?.secret ?? '', leavesAfterMs }
}

async function mix(t: Test, store: string | undefined): Promise<void> {
  const random = dice(20_261)
  const provider = await startBillingProvider(t, 4)
  const gateway = await gatewayOver(t, provider.url, store)
  const keys = await makeKeys(gateway)
  let next = 0
  const client = async (): Promise<void> => {
    while (next < REQUESTS) {
      const asked = askedAt(next, keys, random)
      next += 1
      await ask(gateway, asked)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  await provider.idle()
  await gateway.plane.drain()
  const rows = await rowsOf(gateway)
  const sources = new Map<string, number>()
  let charged = 0
  let billed = 0
  let overshoot = 0
  for (const [index, key] of keys.entries()) {
    const own = rows.filter(({ keyId }) => keyId === key.id)
    const sum = own.reduce((total, { costNanoUsd }) => total + (costNanoUsd ?? 0), 0)
    const bill = provider.billed.get(index) ?? 0
    t.ok(sum >= bill, `key ${index}: charged ${usd(sum)}, billed ${usd(bill)}`)
    if (key.limitNanoUsd !== null) {
      const dearest = Math.max(0, ...own.map(({ costNanoUsd }) => costNanoUsd ?? 0))
      const over = Math.max(0, sum - key.limitNanoUsd)
      overshoot = Math.max(overshoot, over)
      t.ok(over <= dearest, `key ${index}: ${usd(over)} above its budget`)
    }
    charged += sum
    billed += bill
    for (const { source } of own) sources.set(source, (sources.get(source) ?? 0) + 1)
  }
  t.ok((sources.get('assumed') ?? 0) > 0 && (sources.get('reported') ?? 0) > 0)
  const counts = [...sources].map(([source, count]) => `${count} ${source}`).join(', ')
  t.comment(
    `${rows.length} entries (${counts}), ${provider.requests} attempts: charged ${usd(charged)}, billed ` +
      `${usd(billed)}, over-charge ${((charged / billed - 1) * 100).toFixed(0)} %, overshoot ${usd(overshoot)}`,
  )
}

function usd(nanoUsd: number): string {
  return `$${(nanoUsd / 1e9).toFixed(6)}`
}

t.setTimeout(120_000 + REQUESTS * 60)
const options = { timeout: 60_000 + REQUESTS * 30 }

void t.test(`sqlite: ${REQUESTS} requests`, { ...options, skip: anotherDay(0, 2) }, (t) => mix(t, undefined))

void t.test(
  `redis: ${REQUESTS} requests`,
  { ...options, skip: anotherDay(1, 2) || redisMissing() },
  async (t) => {
    await mix(t, freshDatabases(await startRedis(t))())
  },
)
