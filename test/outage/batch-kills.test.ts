/**
 * Goal: a batch survives SIGKILL of the gateway at twenty points of its life: each line has one result, the
 * vendor gets the batch once, and it is charged once and exactly. A line of a queue that was running is sent
 * again; what it may have cost before has an entry of its own.
 * Method: the whole program with a batch at each point, held by the provider, and one kill of all processes.
 */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import t, { type Test } from 'tap'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { openStore } from '../../src/store/open-store.js'
import { batchOf, ended, resultsIn, textOf } from '../gateway/batches/batch-stage.js'
import { anotherDay } from '../helpers/long-suite.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { makeKey, until, killAll } from '../process/program.js'
import { gatewayFile, started } from './batch-gateway.js'
import { BatchVendors, LINE_NANO_USD, type Point } from './batch-vendors.js'

t.setTimeout(240_000)

const LINES = 6
const LATER_MS = 600_000

/** A batch and the point of its life at which the gateway is killed. */
interface Life {
  readonly model: 'gpt-m' | 'claude-m' | 'queue-m'
  readonly point: Point
}

const AT_OPENAI = ['upload', 'uploaded', 'create', 'created', 'answered', 'poll', 'results', 'half'] as const
const AT_ANTHROPIC = ['upload', 'create', 'created', 'answered', 'poll', 'results', 'half'] as const
const LIVES: readonly Life[] = [
  ...[...AT_OPENAI, 'last' as const, 'ended' as const, 'cancel' as const].map((point): Life => {
    return { model: 'gpt-m', point }
  }),
  ...[...AT_ANTHROPIC, 'ended' as const].map((point): Life => ({ model: 'claude-m', point })),
  { model: 'queue-m', point: 'line' },
]

async function allEntries(url: string): Promise<LedgerEntry[]> {
  const store = await openStore(url, { nowMs: () => Date.now() + LATER_MS, minTimeoutMs: 5_000 })
  try {
    await store.ledger.expire()
    const rows: LedgerEntry[] = []
    for await (const batch of store.ledger.export(0)) rows.push(...batch)
    return rows
  } finally {
    await store.close()
  }
}

async function survives(t: Test, redis: string | null): Promise<void> {
  const vendors = await new BatchVendors().start(t)
  const folder = t.testdir()
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'gateway.yaml')
  copyFileSync('config/models.yaml', join(folder, 'models.yaml'))
  const to = redis === null ? './files' : 'store'
  writeFileSync(file, gatewayFile(vendors.origin, redis ?? 'sqlite:./data/sluice.db', to))
  const store = redis ?? `sqlite:${join(folder, 'data', 'sluice.db')}`
  const apiKey = await makeKey(store, { nanoUsdPerDay: 10_000_000_000 })
  const first = await started(t, file)
  const before = new OpenAI({ apiKey, baseURL: first.baseURL, maxRetries: 0 })
  const made = new Map<string, string>()
  for (const { model, point } of LIVES) {
    const tag = `${point} of ${model}`
    const lines = Array.from({ length: LINES }, (_, at) => ({
      ...{ model, max_completion_tokens: 50 },
      messages: [{ role: 'user', content: `«${tag}» line ${at}` }],
    }))
    made.set(tag, (await batchOf(before, textOf(lines))).id)
  }
  const cancelled = made.get('cancel of gpt-m') ?? ''
  await until(async () => (await before.batches.retrieve(cancelled)).status === 'in_progress')
  await before.batches.cancel(cancelled)
  await until(() => vendors.reached.size === LIVES.length, 60_000).catch(() => undefined)
  t.same(
    [...made.keys()].filter((tag) => !vendors.reached.has(tag)),
    [],
    'all points are reached',
  )
  killAll(first.program)
  await first.program.ended
  vendors.release()

  const second = await started(t, file)
  const client = new OpenAI({ apiKey, baseURL: second.baseURL, maxRetries: 0 })
  for (const [tag, id] of made) {
    const batch = await ended(client, id)
    t.equal(batch.status, tag.startsWith('cancel') ? 'cancelled' : 'completed', tag)
    const results = [
      ...(await resultsIn(client, batch.output_file_id)),
      ...(await resultsIn(client, batch.error_file_id)),
    ]
    t.same(
      results.map(({ custom_id }) => custom_id),
      Array.from({ length: LINES }, (_, at) => `c${at}`),
      `${tag}: each line has one result, in order`,
    )
    t.same(
      results.filter(({ response }) => response?.status_code !== 200),
      [],
      `${tag}: no line failed`,
    )
    if (!tag.endsWith('queue-m')) t.equal(vendors.made(tag), 1, `${tag}: sent once`)
  }
  const outputs = (await client.files.list()).data.filter(({ purpose }) => purpose === 'batch_output')
  t.equal(outputs.length, made.size, 'no file of results is left over')
  killAll(second.program)
  await second.program.ended

  const rows = await allEntries(store)
  for (const [tag, id] of made) {
    const own = rows.filter(({ requestId }) => requestId === id)
    const isQueue = tag.endsWith('queue-m')
    const outcome = tag.startsWith('cancel') ? 'cancelled' : 'ok'
    const costNanoUsd = isQueue ? 0 : LINES * LINE_NANO_USD
    t.match(own, [{ outcome, costNanoUsd, batch: id, units: `line=${LINES}` }], `${tag}: charged once`)
    t.equal(own.length, 1)
    if (!isQueue) continue
    const lines = rows.filter(({ batch, requestId }) => batch === id && requestId !== id)
    // One that was killed before it was sent may have run, as the ledger sees it.
    t.ok(lines.length >= (vendors.ran.get(tag) ?? 0), 'an entry each time that a line ran')
    const lost = lines.filter(({ outcome: end }) => end === 'lost')
    t.equal(lost.length, lines.length - LINES)
    t.ok(lost.length > 0 && lost.every(({ source }) => source === 'assumed'))
    const full = lines.filter(({ costNanoUsd: cost }) => cost === 2 * LINE_NANO_USD)
    t.equal(full.length, LINES, 'at the usual price')
  }
}

void t.test(
  'over Redis, with files in the store',
  { skip: anotherDay(0, 2) || redisMissing() },
  async (t) => {
    const redis = await startRedis(t)
    await survives(t, `${redis.url()}?timeout_ms=5000`)
  },
)

void t.test('embedded, with files in a folder', { skip: anotherDay(1, 2) }, (t) => survives(t, null))
