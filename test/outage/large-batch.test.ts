/**
 * Goal: a batch of 50,000 lines takes at most 48 MiB (64 on Redis) more than one of 1,000, and is charged
 * exactly, at each kind of upstream.
 * Method: the whole program, whose memory is read while it checks, sends, reads and settles the batch.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import t from 'tap'
import { batchOf, ended, resultsIn, textOf } from '../gateway/batches/batch-stage.js'
import { startEmulator, type Emulator } from '../../src/emulator/server.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { IS_LONG } from '../helpers/long-suite.js'
import { rowsOf } from '../helpers/ledger.js'
import { makeKey } from '../process/program.js'
import { gatewayFile, started } from './batch-gateway.js'
import { BatchVendors, LINE_NANO_USD } from './batch-vendors.js'

/** A batch: the upstream that runs it, its store, and how many lines it has. */
interface Large {
  readonly at: string
  readonly model: string
  readonly store: 'sqlite' | 'redis'
  readonly lines: number
}

const BATCHES: readonly Large[] = [
  { at: 'OpenAI', model: 'gpt-m', store: 'sqlite', lines: 50_000 },
  { at: 'OpenAI', model: 'gpt-m', store: 'redis', lines: 50_000 },
  { at: 'Anthropic', model: 'claude-m', store: 'sqlite', lines: 50_000 },
  { at: 'Google', model: 'gemini-m', store: 'sqlite', lines: 20_000 },
  { at: 'Mistral', model: 'mistral-m', store: 'sqlite', lines: 20_000 },
  { at: 'a queue', model: 'queue-m', store: 'sqlite', lines: 10_000 },
]
/**
 * Beside what a small batch takes: ids, and places of results. Redis has the files too: their chunks of 1 MiB
 * arrive in buffers of its client: 25,000 lines take as much.
 */
const MOST_MORE_BYTES = { sqlite: 48 * 1024 * 1024, redis: 64 * 1024 * 1024 }
t.setTimeout(590_000)

function residentBytes(pid: number): number {
  const [, kb = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kb) * 1024
}

/** Upstreams with Google's and Mistral's APIs. */
function emulatedUpstreams({ baseUrls }: Emulator): string {
  return `  google: { dialect: gemini, base_url: ${baseUrls.gemini}, api_key: emulated, prices: { gemini-m: { input: 5, output: 30 } } }
  mistral: { dialect: openai-chat, base_url: ${baseUrls.openai}, api_key: emulated, operations: { batch: mistral }, prices: { mistral-m: { input: 5, output: 30 } } }
routes:
  - { model: gemini-m, upstream: google }
  - { model: mistral-m, upstream: mistral }
`
}

for (const { at, model, store, lines } of BATCHES) {
  const skip = IS_LONG ? (store === 'redis' ? redisMissing() : false) : 'long suite'
  void t.test(`${lines} lines at ${at}, ${store}`, { skip }, async (t) => {
    const vendors = await new BatchVendors().start(t)
    vendors.release()
    const emulator = await startEmulator({ models: 'any' })
    t.teardown(() => emulator.close())
    const folder = t.testdir()
    mkdirSync(folder, { recursive: true })
    const configFile = join(folder, 'gateway.yaml')
    copyFileSync('config/models.yaml', join(folder, 'models.yaml'))
    const redis = store === 'redis' ? (await startRedis(t)).url() : null
    const file = gatewayFile(
      vendors.origin,
      redis ?? 'sqlite:./data/sluice.db',
      redis === null ? './files' : 'store',
    )
    writeFileSync(
      configFile,
      file
        .replace('workers: 2', 'workers: 1')
        .replace('concurrency: 2', 'concurrency: 16')
        .replace('routes:\n', emulatedUpstreams(emulator)),
    )
    const apiKey = await makeKey(redis ?? `sqlite:${join(folder, 'data', 'sluice.db')}`, {
      nanoUsdPerDay: 100_000_000_000_000,
    })
    const { program, baseURL } = await started(t, configFile)
    const client = new OpenAI({ apiKey, baseURL, maxRetries: 0, timeout: 500_000 })
    const [worker = program.pid] = program.workers()
    const text = (count: number): string => {
      const line = { model, max_completion_tokens: 50 }
      return textOf(
        Array.from({ length: count }, (_, each) => ({
          ...line,
          messages: [{ role: 'user', content: `line ${each}` }],
        })),
      )
    }
    const most = async (count: number) => {
      let bytes = 0
      const watching = setInterval(() => (bytes = Math.max(bytes, residentBytes(worker))), 20)
      const beganMs = performance.now()
      const { id } = await batchOf(client, text(count))
      const batch = await ended(client, id)
      clearInterval(watching)
      return { batch, bytes, ms: performance.now() - beganMs }
    }
    const small = await most(1_000)
    const large = await most(lines)
    const mib = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`
    t.comment(`${mib(small.bytes)} with 1,000 lines; ${mib(large.bytes)} with ${lines} in ${large.ms} ms`)
    t.ok(large.bytes - small.bytes < MOST_MORE_BYTES[store], `${mib(large.bytes - small.bytes)} more`)
    t.match(large.batch, { status: 'completed', request_counts: { completed: lines, failed: 0 } })
    const results = await resultsIn(client, large.batch.output_file_id)
    t.equal(results.length, lines)
    t.ok(results.every(({ custom_id }, each) => custom_id === `c${each}`))
    const own = (await rowsOf({ configFile })).filter(({ batch }) => batch === large.batch.id)
    const charged = own.filter(({ costNanoUsd }) => (costNanoUsd ?? 0) > 0)
    const cost = charged.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
    t.ok(charged.every(({ outcome, source }) => outcome === 'ok' && source === 'reported'))
    // Each line of a queue has an entry of its own, at the usual price.
    t.equal(charged.length, model === 'queue-m' ? lines : 1)
    if (model === 'queue-m') t.equal(cost, 2 * lines * LINE_NANO_USD)
    else if (!/gemini|mistral/.test(model)) t.equal(cost, lines * LINE_NANO_USD)
  })
}
