/**
 * Goal: a batch that does not end by itself ends, and is charged, without any request of its client: after 31
 * days at its maximum, after its window for the lines that ran.
 * Method: a gateway whose vendor never reports the end, or reports the window's; and a queue whose upstream
 * refuses every line. Time passes in the record of the batch, in both stores.
 */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { isObject } from '../../../src/base/json.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { openStore } from '../../../src/store/open-store.js'
import type { TestGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'
import { BatchProvider } from './batch-provider.js'
import { batchOf, openBatchStage, resultsIn, textOf } from './batch-stage.js'
import { PLACES_OF_DAY } from './places-of-day.js'

t.setTimeout(120_000)

const DAY_MS = 86_400_000
const MODEL = 'gpt-batch-5'
const PRICES = `prices: { ${MODEL}: { input: 5, output: 30, service_tiers: { batch: 0.5 } } }`
const BUDGET = 'limits: [{ scope: account, usd_per_day: 1 }]\n'
const LINE = { model: MODEL, messages: [{ role: 'user', content: 'hi' }], max_completion_tokens: 50 }

/** Lets time pass for the batch: it was made this long before, and its window with it. */
async function age(gateway: TestGateway, id: string, ms: number): Promise<void> {
  const store = await openStore(gateway.store)
  try {
    for (;;) {
      const record = await store.sealedRecords.find('batch', id, Date.now())
      const info: unknown = JSON.parse(record?.info ?? 'null')
      if (record === null || !isObject(info)) throw new Error('the batch has no record')
      const aged = { ...info, dueAtMs: Number(info['dueAtMs']) - ms }
      const earlier = { ...record, atMs: record.atMs - ms, info: JSON.stringify(aged) }
      if (await store.sealedRecords.replace(earlier, record.info)) return
    }
  } finally {
    await store.close()
  }
}

/** The entry of the batch's end; no client sends a request meanwhile. */
async function settled(gateway: TestGateway, id: string): Promise<LedgerEntry> {
  for (;;) {
    const found = (await rowsOf(gateway)).find(({ requestId }) => requestId === id)
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

for (const place of PLACES_OF_DAY) {
  void t.test(`${place.store}: a batch without an end for 31 days is charged its maximum`, async (t) => {
    const provider = await new BatchProvider().start(t)
    provider.looks = -1_000_000
    const { client, gateway } = await openBatchStage(t, place, {
      upstreams: { openai: `${provider.origin}/v1` },
      upstreamOptions: PRICES,
      more: BUDGET,
    })
    const made = await batchOf(client, textOf([LINE, LINE]))
    while (provider.created === 0) await new Promise((resolve) => setTimeout(resolve, 50))
    await age(gateway, made.id, 30.9 * DAY_MS)
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    t.equal((await client.batches.retrieve(made.id)).status, 'in_progress', 'not before')
    await age(gateway, made.id, 0.2 * DAY_MS)
    const entry = await settled(gateway, made.id)
    t.match(entry, { outcome: 'expired', source: 'assumed', usage: { output: 100 } })
    // Half of 100 tokens at $30 a million, and the input.
    t.ok((entry.costNanoUsd ?? 0) > 1_500_000, String(entry.costNanoUsd))
    t.match(await client.batches.retrieve(made.id), { status: 'expired' })
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    const own = (await rowsOf(gateway)).filter(({ costNanoUsd }) => (costNanoUsd ?? 0) > 0)
    t.equal(own.length, 1, 'once')
  })

  void t.test(`${place.store}: what ran is charged if a later configuration refuses its lines`, async (t) => {
    const provider = await new BatchProvider().start(t)
    provider.looks = -1_000_000
    const { client, gateway } = await openBatchStage(t, place, {
      upstreams: { openai: `${provider.origin}/v1` },
      upstreamOptions: PRICES,
      more: BUDGET,
    })
    const made = await batchOf(client, textOf([LINE, LINE]))
    while (provider.created === 0) await new Promise((resolve) => setTimeout(resolve, 50))
    const text = readFileSync(gateway.configFile, 'utf8')
    const moved = text.replace('{ prefix: gpt-, upstream: openai }', '{ prefix: gpt-, upstream: responses }')
    writeFileSync(gateway.configFile, moved)
    gateway.reload()
    provider.looks = 2
    const entry = await settled(gateway, made.id)
    // The vendor answers the first line with success and the second one with an error.
    t.match(entry, { source: 'assumed', usage: { output: 50 } })
    t.ok((entry.costNanoUsd ?? 0) > 750_000, String(entry.costNanoUsd))
    const batch = await client.batches.retrieve(made.id)
    t.match(batch, { request_counts: { total: 2, completed: 0, failed: 2 } })
  })

  void t.test(`${place.store}: what ran before the vendor's window ended is charged`, async (t) => {
    const provider = await new BatchProvider().start(t)
    provider.end = 'expired'
    provider.unrun = ['c1', 'c2']
    const { client, gateway } = await openBatchStage(t, place, {
      upstreams: { openai: `${provider.origin}/v1` },
      upstreamOptions: PRICES,
      more: BUDGET,
    })
    const made = await batchOf(client, textOf([LINE, LINE, LINE, LINE]))
    const entry = await settled(gateway, made.id)
    t.match(entry, { outcome: 'expired', source: 'reported', costNanoUsd: 800_000, units: 'line=4' })
    const batch = await client.batches.retrieve(made.id)
    t.match(batch, { status: 'expired', request_counts: { total: 4, completed: 2, failed: 2 } })
    const errors = await resultsIn(client, batch.error_file_id)
    t.match(errors, [
      { custom_id: 'c1', response: null, error: { code: 'batch_expired' } },
      { custom_id: 'c2', response: null, error: { code: 'batch_expired' } },
    ])
    t.ok(batch.expired_at)
  })

  for (const end of ['expired', 'cancelled'] as const) {
    void t.test(
      `${place.store}: lines of a queue that is ${end} while they are refused cost nothing`,
      async (t) => {
        let asked = 0
        const server = createServer((req, res) => {
          req.resume().once('end', () => {
            asked += 1
            res
              .writeHead(429, { 'content-type': 'application/json' })
              .end('{"error":{"message":"slow down"}}')
          })
        }).listen(0, '127.0.0.1')
        t.teardown(() => server.close())
        await once(server, 'listening')
        const { client, gateway } = await openBatchStage(t, place, {
          upstreams: { openai: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` },
          upstreamOptions: `operations: { batch: queue }, ${PRICES}`,
          more: BUDGET,
        })
        const made = await batchOf(client, textOf([LINE, LINE]))
        while (asked === 0) await new Promise((resolve) => setTimeout(resolve, 50))
        await (end === 'expired' ? age(gateway, made.id, DAY_MS) : client.batches.cancel(made.id))
        t.match(await settled(gateway, made.id), { outcome: end, costNanoUsd: 0 })
        const batch = await client.batches.retrieve(made.id)
        t.match(batch, { status: end, output_file_id: null, request_counts: { total: 2, failed: 2 } })
        const errors = await resultsIn(client, batch.error_file_id)
        t.ok(errors.every(({ response, error }) => response === null && error?.code === `batch_${end}`))
        t.ok((await rowsOf(gateway)).every(({ costNanoUsd }) => costNanoUsd === 0))
      },
    )
  }
}
