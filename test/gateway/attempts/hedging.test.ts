/**
 * Goal: a hedge takes over when the first content is late; the slower attempt is cancelled at once; both are
 * in the ledger entry; the hedge budget of the route limits them.
 * Method: an emulator that is slow for one request in 67; its ledger shows which requests arrived and which
 * were cancelled.
 */
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import t from 'tap'
import { ask, eventually, isComplete, question, series, watchProcess } from '../../faults/scene.js'
import { anotherDay } from '../../helpers/long-suite.js'
import { breakProvider, counts, entryOf, startWith } from './fixtures.js'

const TWO =
  'targets: [ { upstream: openai, model: gpt-4o }, { upstream: anthropic, model: claude-sonnet-4-5, weight: 0 } ]'

void t.test('the faster attempt is the reply, the other is cancelled', async (t) => {
  watchProcess(t)
  const gateway = await startWith(t, [
    'model: main, targets: [ { upstream: openai, model: gpt-4o } ], hedge: { after_ms: 100, extra_spend: 1 }',
  ])
  for (const isStream of [true, false]) {
    gateway.emulator.reset()
    breakProvider(gateway, 'openai', {
      fault: { kind: 'delay', ms: 3000, mode: 'headers' },
      times: 1,
    })
    const seen = await ask(gateway, question('main', isStream))
    t.ok(isComplete(seen))
    t.ok(seen.ownMs < 1500, `${seen.ownMs} ms`)
    t.equal(seen.headers['x-sluice-attempts'], 'openai:cancelled, openai:ok')
    await eventually(() => gateway.emulator.open() === 0, 'the slower attempt is cancelled')
    t.equal(gateway.emulator.ledger[0]?.outcome, 'client_closed')
    const entry = await entryOf(gateway, seen.headers['x-request-id'] ?? '')
    t.match(entry, { attempts: 2, attempted: 'openai:cancelled, openai:ok', source: 'assumed' })
    const counted = gateway.emulator.ledger[1]?.counted?.input ?? 0
    t.ok((entry.usage.input ?? 0) > counted, 'the prompt of the loser is counted')
  }
  t.equal(await series(gateway, 'sluice_hedges_total{upstream="openai",result="won"}'), 2)
  t.equal(await series(gateway, 'sluice_inflight{upstream="openai"}'), 0)
})

void t.test('the first attempt may win, and if one fails the other continues', async (t) => {
  const gateway = await startWith(t, [
    'model: main, targets: [ { upstream: openai, model: gpt-4o } ], hedge: { after_ms: 100, extra_spend: 1 }',
    `model: two, ${TWO}`,
  ])
  breakProvider(gateway, 'openai', {
    fault: { kind: 'delay', ms: 1500, mode: 'headers' },
    times: 1,
  })
  breakProvider(gateway, 'openai', { fault: { kind: 'hang' }, times: 1 })
  const first = await ask(gateway, question('main', true))
  t.equal(first.headers['x-sluice-attempts'], 'openai:ok, openai:cancelled')
  t.equal(await series(gateway, 'sluice_hedges_total{upstream="openai",result="lost"}'), 1)
  gateway.emulator.reset()
  breakProvider(gateway, 'openai', {
    fault: { kind: 'delay', ms: 1500, mode: 'headers' },
    times: 1,
  })
  breakProvider(gateway, 'openai', { fault: { kind: 'status', code: 500 }, times: 1 })
  const failed = await ask(gateway, question('main', true))
  t.ok(isComplete(failed))
  t.equal(failed.headers['x-sluice-attempts'], 'openai:ok, openai:upstream_failed')
  gateway.emulator.reset()
  breakProvider(gateway, 'openai', { fault: { kind: 'delay', ms: 300, mode: 'headers' }, times: 2 })
  t.ok(isComplete(await ask(gateway, question('two', true))), 'a route without hedge has none')
  t.equal(counts(gateway).openai, 1)
})

const isMeasured = { skip: anotherDay(2, 3) }
void t.test(
  'a bimodal upstream: hedging makes the slowest replies five times faster',
  isMeasured,
  async (t) => {
    watchProcess(t)
    const SLOW_MS = 6000
    const SLOW_EVERY = 67
    const REQUESTS = 700
    const p99: Record<string, number> = {}
    for (const [name, more] of [
      ['without', ''],
      ['with', ', hedge: { after_ms: 150, extra_spend: 0.02 }'],
    ] as const) {
      const gateway = await startWith(t, [
        `model: main, targets: [ { upstream: openai, model: gpt-4o } ]${more}`,
      ])
      let requests = 0
      const match = (): boolean => {
        requests += 1
        return requests % SLOW_EVERY === 0
      }
      gateway.emulator.script({ match, fault: { kind: 'delay', ms: SLOW_MS, mode: 'first' } })
      const firstMs: number[] = []
      let remaining = REQUESTS
      const client = async (): Promise<void> => {
        for (; remaining > 0;) {
          remaining -= 1
          const began = performance.now()
          const reply = await gateway.chat(question('main', true))
          let text = ''
          let isFirst = true
          for await (const chunk of Readable.fromWeb(reply.body as ReadableStream<Uint8Array>)) {
            text += String(chunk)
            if (!isFirst || !text.includes('"content":"')) continue
            isFirst = false
            firstMs.push(performance.now() - began)
          }
          if (!text.includes('[DONE]')) t.fail('an incomplete reply')
        }
      }
      await Promise.all(Array.from({ length: 6 }, client))
      firstMs.sort((a, b) => a - b)
      p99[name] = firstMs[Math.floor(firstMs.length * 0.99)] ?? 0
      if (name === 'with') {
        const extra = counts(gateway).openai - REQUESTS
        t.ok(extra <= REQUESTS * 0.02 + 2, `${extra} hedges: within the extra spending`)
      }
    }
    const { without = 0, with: hedged = 0 } = p99
    t.ok(without >= SLOW_MS, `${without} ms without`)
    t.ok(hedged <= without / 5, `${hedged} ms with hedges, ${without} ms without`)
  },
)

void t.test('hedges beyond the extra spending are not sent', async (t) => {
  const gateway = await startWith(t, [
    'model: main, targets: [ { upstream: openai, model: gpt-4o } ], hedge: { after_ms: 50, extra_spend: 0 }',
  ])
  breakProvider(gateway, 'openai', { fault: { kind: 'delay', ms: 1000, mode: 'headers' } })
  for (let request = 0; request < 4; request += 1) await ask(gateway, question('main', true))
  t.equal(counts(gateway).openai, 5, 'one hedge a minute')
  t.equal(await series(gateway, 'sluice_hedges_total{upstream="openai",result="denied"}'), 3)
})
