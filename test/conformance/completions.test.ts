/**
 * Goal: legacy completions work for every model, whole and streamed: unchanged on upstreams that have the
 * endpoint, and as a chat on all others, which refuse by name what a chat lacks.
 * Method: the official SDK on a running gateway with upstreams of either kind.
 */
import OpenAI from 'openai'
import t from 'tap'
import type { LedgerEntry } from '../../src/emulator/received-requests.js'
import { startGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'

const OVER_CHAT = ['gpt-4o', 'gpt-4.1', 'claude-sonnet-4-5', 'gemini-2.5-flash']
const gateway = await startGateway(t, {
  upstreamOptions: 'completions: false',
  routes: '  - { model: davinci-002, upstream: openai }',
})
const client = new OpenAI({ apiKey: gateway.secret, baseURL: gateway.baseUrl, maxRetries: 0 })

function last(): LedgerEntry | undefined {
  return gateway.emulator.ledger.at(-1)
}

async function post(body: object): Promise<{ status: number; text: string }> {
  const res = await fetch(`${gateway.baseUrl}/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  let text = ''
  try {
    // An await for each chunk, so that the text before a failure is kept.
    const body: ReadableStream<Uint8Array> | null = res.body
    const reader = body?.getReader()
    for (;;) {
      const read = await reader?.read()
      if (read?.value === undefined) break
      text += Buffer.from(read.value).toString()
    }
  } catch {
    // The connection of a failed stream closes after its error.
  }
  return { status: res.status, text }
}

for (const model of [...OVER_CHAT, 'davinci-002']) {
  void t.test(`${model}: whole and streamed`, async (t) => {
    const ask = { model, prompt: 'Say [[words: 30]]', max_tokens: 400 }
    const whole = await client.completions.create(ask)
    const [choice] = whole.choices
    t.equal(whole.object, 'text_completion')
    t.match(whole.id, /^cmpl-/)
    t.equal(whole.model, model)
    t.equal(choice?.finish_reason, 'stop')
    t.ok((choice?.text.length ?? 0) > 20)
    t.ok((whole.usage?.completion_tokens ?? 0) > 0)
    let text = ''
    let reason: string | undefined
    let usage: number | undefined
    const stream = await client.completions.create({
      ...ask,
      stream: true,
      stream_options: { include_usage: true },
    })
    for await (const chunk of stream) {
      t.equal(chunk.object, 'text_completion')
      usage = chunk.usage?.completion_tokens ?? usage
      const [choice] = chunk.choices
      if (choice === undefined) continue
      text += choice.text
      const ended: unknown = choice.finish_reason
      if (typeof ended === 'string') reason = ended
    }
    t.ok(text.length > 20)
    t.equal(reason, 'stop')
    t.ok((usage ?? 0) > 0)
    const short = await client.completions.create({
      ...ask,
      prompt: 'A long tale, please',
      max_tokens: 3,
    })
    t.equal(short.choices[0]?.finish_reason, 'length')
  })
}

void t.test("an upstream with the endpoint gets the client's bytes, and only what changes", async (t) => {
  const body = { model: 'davinci-002', prompt: ['a', 'b'], echo: true, suffix: 's', new_field: 1 }
  t.equal((await post(body)).status, 200)
  t.same(last()?.body, body)
  t.equal(last()?.path, '/completions')
  t.equal((await post({ model: 'davinci-002', prompt: [1, 2, 3] })).status, 200)
  const streamed = await post({ model: 'davinci-002', prompt: 'hi', stream: true })
  t.equal(streamed.status, 200)
  t.same(last()?.body?.['stream_options'], { include_usage: true })
  t.notOk(streamed.text.includes('prompt_tokens'), 'usage that the client did not ask for')
  t.ok(streamed.text.endsWith('data: [DONE]\n\n'))
})

void t.test('a feature that a chat lacks is refused by name', async (t) => {
  const before = gateway.emulator.ledger.length
  const cases: [object, string][] = [
    [{ prompt: ['a', 'b'] }, 'prompt'],
    [{ prompt: [1, 2] }, 'prompt'],
    [{ prompt: 'a', echo: true }, 'echo'],
    [{ prompt: 'a', suffix: 'b' }, 'suffix'],
    [{ prompt: 5 }, 'prompt'],
    [{ prompt: [] }, 'prompt'],
    [{ prompt: 'a', messages: [] }, 'messages'],
    [{ prompt: 'a', temperature: 9 }, 'temperature'],
    [{ prompt: 'a', echo: 'yes' }, 'echo'],
  ]
  for (const model of OVER_CHAT) {
    for (const [fields, param] of cases) {
      const { status, text } = await post({ model, ...fields })
      t.equal(status, 400, `${model} ${param}`)
      t.match(text, `"param":"${param}`)
    }
  }
  t.equal(gateway.emulator.ledger.length, before)
  t.equal((await post({ model: 'gpt-4o', prompt: ['only one'] })).status, 200)
  t.equal(last()?.path, '/chat/completions')
})

void t.test('an option and presets forward every model', async (t) => {
  const forwarding = await startGateway(t, { upstreamOptions: 'completions: true' })
  const headers = { 'content-type': 'application/json' }
  const res = await fetch(`${forwarding.baseUrl}/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${forwarding.secret}`, ...headers },
    body: JSON.stringify({ model: 'gpt-4o', prompt: 'hi' }),
  })
  await res.arrayBuffer()
  t.equal(res.status, 200)
  t.equal(forwarding.emulator.ledger.at(-1)?.path, '/completions')
})

void t.test('errors before and inside a stream, and entries in the ledger', async (t) => {
  for (const model of ['davinci-002', 'claude-sonnet-4-5']) {
    const busy = await post({ model, prompt: 'hi [[fault: status code=500]]', stream: true })
    t.ok(busy.status >= 500, busy.text)
    const cut = await post({
      model,
      prompt: 'hi [[words: 50]] [[fault: cut event=5]]',
      stream: true,
    })
    t.notOk(cut.text.includes('[DONE]'))
    t.match(cut.text, '"error"')
  }
  const rows = await rowsOf(gateway)
  const served = rows.filter(({ outcome }) => outcome === 'ok')
  t.ok(served.length > 10)
  t.ok(served.every(({ ingress, source }) => ingress === 'completions' && source === 'reported'))
})
