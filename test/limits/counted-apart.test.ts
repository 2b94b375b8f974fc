/**
 * Goal: tokens that a provider counts apart from the reply are charged: those of an advisor at the price of
 * its model, and those of several choices, each counted in its own chunk.
 * Method: a gateway over an upstream that replies so, whole and streamed, unchanged and translated, with both
 * stores; the cost in the ledger is compared with the sum by the shipped prices.
 */
import t, { type Test } from 'tap'
import { rowsOf } from '../helpers/ledger.js'
import type { Canned } from '../helpers/raw-upstream.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { chat, JSON_TYPE, messages, setUp, type Asked } from './hosted-upstream.js'
import { anotherDay } from '../helpers/long-suite.js'

const MODEL = 'claude-sonnet-4-6'
const TEXT = { type: 'text', text: 'Four.' }
const DOLLARS = { sonnet: [3, 15], opus: [5, 25] } as const

function cost([input, output]: readonly [number, number], prompt: number, reply: number): number {
  return (prompt * input + reply * output) * 1_000
}

/** Counts of a message that asked advisors of these models. */
function counted(...models: readonly (string | undefined)[]): object {
  const message = { type: 'message', input_tokens: 100, output_tokens: 10 }
  const advised = models.map((model) => ({
    type: 'advisor_message',
    ...(model === undefined ? {} : { model }),
    ...{ input_tokens: 2_000, output_tokens: 300, cache_read_input_tokens: 0 },
  }))
  return { input_tokens: 100, output_tokens: 10, iterations: [message, ...advised] }
}

function whole(usage: object): Canned {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: MODEL, content: [TEXT] }
  return { type: JSON_TYPE, chunks: [JSON.stringify({ ...message, stop_reason: 'end_turn', usage })] }
}

function streamed(usage: object): Canned {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: MODEL, content: [] }
  const events = [
    { type: 'message_start', message: { ...message, usage: { input_tokens: 100, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Four.' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
    { type: 'message_stop' },
  ]
  const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  return { type: 'text/event-stream', chunks: [text] }
}

const OWN = cost(DOLLARS.sonnet, 100, 10)
const ADVISED = cost(DOLLARS.opus, 2_000, 300)

/** The models of advisors, and the cost of the reply; null: unknown. */
const REPLIES: readonly (readonly [models: readonly (string | undefined)[], nanoUsd: number | null])[] = [
  [[], OWN],
  [['claude-opus-4-8'], OWN + ADVISED],
  [['claude-opus-4-8', 'claude-opus-4-7'], OWN + 2 * ADVISED],
  [['claude-unheard-of-9'], null],
  [['claude-opus-4-8', undefined], null],
]

async function advisors(t: Test, store?: string): Promise<void> {
  const { key, ask, upstream, gateway } = await setUp(t, store === undefined ? {} : { store })
  const secret = await key()
  const expected: (number | null)[] = []
  for (const [models, nanoUsd] of REPLIES) {
    for (const stream of [false, true]) {
      upstream.answer = () => (stream ? streamed : whole)(counted(...models))
      for (const body of [messages({ model: MODEL, stream }), chat({ model: MODEL, stream })]) {
        t.equal((await ask(secret, body)).status, 200)
        expected.push(nanoUsd)
      }
    }
  }
  const rows = await rowsOf(gateway)
  t.same(
    rows.map(({ costNanoUsd }) => costNanoUsd),
    expected,
  )
  t.ok(rows.every(({ usage: { input, output } }) => input === 100 && output === 10))
}

void t.test('tokens of advisors: SQLite', { skip: anotherDay(0, 2) }, (t) => advisors(t))
void t.test('tokens of advisors: Redis', { skip: anotherDay(1, 2) || redisMissing() }, async (t) => {
  const redis = await startRedis(t)
  await advisors(t, redis.url())
})

void t.test('a budget reserves the tokens of an advisor at the price of its model', async (t) => {
  const { key, ask, upstream, gateway } = await setUp(t, { more: 'limiting: { unknown_price: refuse }' })
  const tool = { type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-4-8', max_uses: 3 }
  const advised = (more: object): Asked =>
    messages({ model: MODEL, max_tokens: 100, tools: [{ ...tool, ...more }] })
  const budget = async (dollars: number): Promise<string> =>
    await key({ limits: { nanoUsdPerDay: dollars * 1e9 }, allowTools: ['advisor'] })

  // 3 replies of 2,000 tokens at $25 a million are $0.15, and the prompts less than $0.15: the advice is a
  // part of the prompts of both models.
  const bounded = { max_tokens: 2_000 }
  t.match(await ask(await budget(0.15), advised(bounded)), {
    status: 402,
    text: /for the model that a tool calls/,
  })
  t.equal((await ask(await budget(0.3), advised(bounded))).status, 200)
  t.equal((await ask(await budget(0.1), advised({ ...bounded, max_uses: 1 }))).status, 200)
  t.equal((await ask(await budget(0.3), advised({ ...bounded, caching: { type: 'ephemeral' } }))).status, 402)
  t.equal((await ask(await budget(1), advised({}))).status, 402, 'the longest output of the model')
  const unknown = advised({ model: 'claude-unheard-of-9', max_tokens: 2_000 })
  t.match(await ask(await budget(1), unknown), { status: 403, text: /'advisor'/ })

  // A reply that is cut off is charged with what it may have cost.
  const whole = JSON.stringify({ id: 'msg_1', type: 'message', role: 'assistant' })
  upstream.answer = () => ({ type: JSON_TYPE, chunks: [whole.slice(0, -1)], cut: true })
  t.equal((await ask(await budget(5), advised({ max_tokens: 2_000 }))).status, 502)
  const row = (await rowsOf(gateway)).at(-1)
  t.equal(row?.source, 'assumed')
  t.ok((row?.costNanoUsd ?? 0) >= 0.15e9, String(row?.costNanoUsd))
  t.ok((row?.costNanoUsd ?? 0) < 0.3e9, String(row?.costNanoUsd))
})

void t.test('choices that are counted apart add their completions', async (t) => {
  const { key, ask, upstream, gateway } = await setUp(t)
  const secret = await key()
  const chunks = [0, 1, 2].flatMap((index) => {
    const base = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-4o' }
    const usage = { prompt_tokens: 40, completion_tokens: 100 * (index + 1), total_tokens: 0 }
    const end = { index, delta: {}, finish_reason: 'stop', usage }
    return [
      { ...base, choices: [{ index, delta: { role: 'assistant', content: 'Hi' }, finish_reason: null }] },
      { ...base, choices: [end] },
    ]
  })
  const text = [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]']
  upstream.answer = () => ({
    type: 'text/event-stream',
    chunks: [text.map((data) => `data: ${data}\n\n`).join('')],
  })
  t.equal((await ask(secret, chat({ model: 'gpt-4o', n: 3, stream: true }))).status, 200)
  const [row] = await rowsOf(gateway)
  t.match(row, { source: 'reported', usage: { input: 40, output: 600 } })
  t.equal(row?.costNanoUsd, cost([2.5, 10], 40, 600))
})
