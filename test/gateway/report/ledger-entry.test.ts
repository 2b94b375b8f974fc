/**
 * Goal: each authenticated chat request has one ledger entry by the rules of docs/reference/ledger.md for
 * every end of the exchange; received tokens are always charged, and only once.
 * Method: a whole gateway over the emulator, one fault at a time; the entries are read from the store.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { ask, eventually, openClient, question, UPSTREAMS, watchProcess } from '../../faults/scene.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'
import { startRawUpstream } from '../../helpers/raw-upstream.js'

const WORDS = 'Say it. [[words:200]]'

/** The ledger entry of a request; fails if there is not exactly one. */
async function rowAfter(t: Test, gateway: TestGateway, act: () => Promise<unknown>): Promise<LedgerEntry> {
  const before = (await rowsOf(gateway)).length
  const lines = gateway.lines.length
  await act()
  await eventually(() => gateway.lines.length > lines, 'the line of the exchange')
  const rows = await rowsOf(gateway)
  t.equal(rows.length, before + 1, 'one row')
  const row = rows.at(-1)
  if (row === undefined) throw new Error('no row')
  t.equal(row.requestId, gateway.lines.at(-1)?.['request_id'], 'the id of the response header')
  return row
}

void t.test('a complete reply: the counts of the upstream', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  for (const { name, model } of UPSTREAMS) {
    for (const stream of [true, false]) {
      const row = await rowAfter(t, gateway, () => ask(gateway, question(model, stream, { text: WORDS })))
      const counted = gateway.emulator.ledger.at(-1)?.counted
      t.match(row, { source: 'reported', outcome: 'ok', status: 200, attempts: 1, finish: 'stop' })
      t.match(row, { stream, upstream: name, model, modelAsked: model })
      t.match(row, { ingress: 'chat', errorMessage: null, limit: null, upstreamStatus: 200 })
      t.equal(row.attempted, `${name}:ok`)
      t.match(row.modelAnswered, new RegExp(`^${model}`))
      t.match(row.usage, { input: counted?.input, output: counted?.output }, `${name} tokens`)
      t.ok((row.costNanoUsd ?? 0) > 0, `${name} cost`)
      t.equal(row.tokensAfterDisconnect, 0)
      t.ok((row.hops.firstContent ?? 0) > 0 && row.durationMs > 0)
    }
  }
  const price = (await rowsOf(gateway)).find(({ upstream }) => upstream === 'openai')
  const { input = 0, output = 0 } = price?.usage ?? {}
  t.equal(price?.costNanoUsd, input * 2500 + output * 10_000, 'gpt-4o: 2.5 and 10 dollars')
})

void t.test('the tier that served the request has its own price, or none', async (t) => {
  const gateway = await startGateway(t)
  const cost = async (model: string, stream: boolean, tier: string) => {
    const body = question(model, stream, { text: WORDS, service_tier: tier })
    const { costNanoUsd, usage } = await rowAfter(t, gateway, () => ask(gateway, body))
    return { cost: costNanoUsd, full: (usage.input ?? 0) * 2500 + (usage.output ?? 0) * 10_000 }
  }
  for (const stream of [true, false]) {
    const usual = await cost('gpt-4o', stream, 'default')
    t.equal(usual.cost, usual.full)
    const catalogued = await cost('gpt-4o', stream, 'priority')
    t.equal(catalogued.cost, catalogued.full * 1.7)
    t.equal((await cost('gpt-4o', stream, 'flex')).cost, null, 'the catalogue has no price')
  }
  const text = readFileSync(gateway.configFile, 'utf8')
  const tiers = 'service_tiers: { flex: 0.5, priority: { input: 5, output: 20 } }'
  const current = `from: 2026-01-01, input: 2.5, output: 10, ${tiers}`
  const price = `[{ input: 99, output: 99 }, { ${current} }, { from: 2999-01-01, input: 99 }]`
  const prices = `prices: { gpt-4o-2024-08-06: ${price} }`
  writeFileSync(gateway.configFile, text.replace('dialect: openai,', `dialect: openai, ${prices},`))
  gateway.reload()
  for (const stream of [true, false]) {
    const flex = await cost('gpt-4o', stream, 'flex')
    t.equal(flex.cost, flex.full / 2)
    const priority = await cost('gpt-4o', stream, 'priority')
    t.equal(priority.cost, priority.full * 2)
    t.equal((await cost('gpt-4.1', stream, 'default')).cost === null, false)
  }
})

void t.test('a model outside the catalogue counts under its own name once it was served', async (t) => {
  const gateway = await startGateway(t)
  const asked = async (model: string) => rowAfter(t, gateway, () => ask(gateway, question(model, false)))
  t.match(await asked('gpt-house-1'), { outcome: 'ok', model: 'gpt-house-1' })
  gateway.emulator.script({ times: 1, fault: { kind: 'status', code: 500 } })
  t.match(await asked('gpt-house-2'), { model: 'gpt-' }, 'a failed request counts under its route')
  t.match(await asked('gpt-"; drop table'), { model: 'gpt-' }, 'and a text that is no name')
})

void t.test('counts that are missing or impossible are estimated and never zero', async (t) => {
  const gateway = await startGateway(t)
  for (const { name, model } of UPSTREAMS) {
    for (const stream of [true, false]) {
      for (const mode of ['missing', 'null', 'negative', 'huge'] as const) {
        gateway.emulator.script({ times: 1, fault: { kind: 'usage', mode } })
        const row = await rowAfter(t, gateway, () => ask(gateway, question(model, stream, { text: WORDS })))
        const what = `${name} ${mode} ${stream ? 'streamed' : 'whole'}`
        const real = gateway.emulator.ledger.at(-1)?.counted?.output ?? 0
        t.match(row, { source: 'estimated', outcome: 'ok' }, what)
        t.ok(Math.abs((row.usage.output ?? 0) / real - 1) <= 0.05, `${what}: ${row.usage.output}`)
        t.ok((row.usage.input ?? 0) > 0 && (row.usage.input ?? 0) < 100, `${what}: a prompt`)
        t.ok((row.costNanoUsd ?? 0) > 0, `${what}: a cost`)
      }
      gateway.emulator.script({ times: 1, fault: { kind: 'usage', mode: 'twice' } })
      const row = await rowAfter(t, gateway, () => ask(gateway, question(model, stream, { text: WORDS })))
      // The second report is one higher, and the last one is used.
      const output = (gateway.emulator.ledger.at(-1)?.counted?.output ?? 0) + 1
      t.match(row, { source: 'reported', usage: { output } }, `${name} twice`)
    }
  }
  const warned = gateway.lines.filter(({ msg }) => String(msg).includes('impossible token counts'))
  t.equal(warned.length, 6, 'the absurd ones are logged')
})

void t.test('a total alone: what it has beside the prompt is output', async (t) => {
  const usage = { total_tokens: 5_000 }
  const reply = { id: 'x', object: 'chat.completion', created: 1, model: 'gpt-4o' }
  const { origin } = await startRawUpstream(t, ({ url }) => {
    const message = { role: 'assistant', content: 'Four.' }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    const embedding = { object: 'list', data: [{ object: 'embedding', index: 0, embedding: [0.5] }] }
    const body = url.endsWith('embeddings') ? embedding : { ...reply, choices }
    return { type: 'application/json', chunks: [JSON.stringify({ ...body, usage })] }
  })
  const gateway = await startGateway(t, { upstreams: { openai: `${origin}/v1` } })
  const row = await rowAfter(t, gateway, () => ask(gateway, question('gpt-4o', false, { text: WORDS })))
  const { input = 0, output = 0 } = row.usage
  t.ok(input > 0 && input < 100, 'the prompt is estimated')
  t.equal(input + output, usage.total_tokens)
  t.equal(row.source, 'estimated')
  const embed = await rowAfter(t, gateway, async () => {
    const response = await fetch(`${gateway.origin}/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'text-embedding-3-small', input: 'x' }),
    })
    await response.text()
    t.equal(response.status, 200)
  })
  t.match(embed, { usage: { input: 5_000 }, source: 'reported' })
})

void t.test('an upstream that answers an error before its first content: nothing is charged', async (t) => {
  const gateway = await startGateway(t)
  const faults = [
    { kind: 'status', code: 500 },
    { kind: 'status', code: 429 },
    { kind: 'error', event: 0 },
  ] as const
  for (const { name, model } of UPSTREAMS) {
    for (const fault of faults) {
      gateway.emulator.script({ times: 1, fault })
      const row = await rowAfter(t, gateway, () => ask(gateway, question(model, true, { text: WORDS })))
      const nothing = { source: 'none', usage: {}, costNanoUsd: 0 }
      t.match(row, { ...nothing, attempts: 1 }, name)
      t.match(row.outcome, /^upstream_/, `${name} ${fault.kind}`)
      t.ok(row.status >= 400, String(row.status))
    }
  }
})

/** The longest reply of a request in these tests. */
const MOST = 700

/** Checks an entry whose tokens are the maximum that each of `attempts` may have used. */
function checkAssumed(t: Test, row: LedgerEntry, name: string): void {
  const { usage, attempts } = row
  t.match(row, { source: 'assumed' }, name)
  t.ok((usage.input ?? 0) > 0, `${name}: the prompt`)
  t.equal(usage.output, MOST * attempts, `${name}: the longest reply`)
  const price = {
    openai: [2_500, 10_000],
    anthropic: [3_000, 15_000],
    google: [300, 2_500],
  } as const
  const [input, output] = price[name as keyof typeof price]
  // A prompt whose length Claude has not reported may have been written to a cache for an hour.
  const rate = usage.cacheWrite1h === undefined ? input : input * 2
  t.equal(usage.cacheWrite1h ?? usage.input, usage.input)
  t.equal(row.costNanoUsd, (usage.input ?? 0) * rate + (usage.output ?? 0) * output, `${name}: cost`)
}

void t.test('a connection that is lost before the reply: each attempt is charged', async (t) => {
  const gateway = await startGateway(t)
  for (const { name, model } of UPSTREAMS) {
    for (const attempts of [1, 2]) {
      // A reused connection that is lost at once causes an attempt on a new connection.
      gateway.emulator.script({ times: 2, fault: { kind: 'drop' } })
      const row = await rowAfter(t, gateway, () =>
        ask(gateway, question(model, true, { text: WORDS, max_tokens: MOST })),
      )
      t.match(row, { attempts, outcome: 'upstream_failed', status: 502 })
      checkAssumed(t, row, name)
      gateway.emulator.reset()
      t.equal((await ask(gateway, question(model, true))).status, 200)
    }
  }
})

void t.test('an upstream that fails in the middle: the longest reply is charged', async (t) => {
  const gateway = await startGateway(t)
  for (const { name, model } of UPSTREAMS) {
    for (const fault of [{ kind: 'cut', mode: 'eof' }, { kind: 'error' }] as const) {
      // Gemini's events are larger.
      gateway.emulator.script({ times: 1, fault: { ...fault, event: name === 'google' ? 9 : 90 } })
      let output = ''
      const row = await rowAfter(t, gateway, async () => {
        const body = question(model, true, { text: WORDS, max_tokens: MOST })
        output = (await ask(gateway, body)).text
      })
      t.ok(output.length > 100, `${name}: ${output.length} characters`)
      t.match(row, { status: 200, attempts: 1 }, name)
      t.match(row.outcome, /^upstream_/)
      checkAssumed(t, row, name)
    }
  }
})

void t.test('a client that leaves: the longest reply is charged', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  for (const { name, model } of UPSTREAMS) {
    for (const words of [0, 3, 60]) {
      const fault =
        words === 0
          ? ({ kind: 'hang' } as const)
          : ({ kind: 'stall', event: words + (name === 'anthropic' ? 3 : 1) } as const)
      gateway.emulator.script({ times: 1, fault })
      const body = question(model, true, { text: WORDS, max_tokens: MOST })
      const client = openClient(t, gateway, { body })
      const row = await rowAfter(t, gateway, async () => {
        await eventually(() => gateway.emulator.open() === 1, 'the upstream gets the request')
        if (words > 0) await eventually(() => client.text().includes('"content":"'), 'content')
        await new Promise((resolve) => setTimeout(resolve, 30))
        client.socket.destroy()
      })
      t.match(row, { outcome: 'client_gone', status: 499, tokensAfterDisconnect: 0 }, name)
      checkAssumed(t, row, name)
    }
  }
})

void t.test('a client that leaves while tools of the provider run: their use is charged', async (t) => {
  const gateway = await startGateway(t)
  gateway.emulator.script({ times: 1, fault: { kind: 'hang' } })
  const tools = [{ type: 'web_search_20250305', name: 'web_search', max_uses: 3 }]
  const messages = [{ role: 'user', content: 'Search.' }]
  const model = 'claude-sonnet-4-5'
  const body = JSON.stringify({ model, max_tokens: MOST, stream: true, messages, tools })
  const client = openClient(t, gateway, { body, path: '/v1/messages' })
  const row = await rowAfter(t, gateway, async () => {
    await eventually(() => gateway.emulator.open() === 1, 'the upstream gets the request')
    client.socket.destroy()
  })
  t.match(row, { source: 'assumed', outcome: 'client_gone', usage: { output: MOST } })
  t.equal(row.usage.input, 200_000, 'searches may fill the context window')
  const tokensNanoUsd = 200_000 * 2 * 3_000 + MOST * 15_000
  t.equal(row.costNanoUsd, tokensNanoUsd + 3 * 10_000_000, 'and each search costs a cent')
})

void t.test('a request that never reached an upstream has an entry without usage', async (t) => {
  const gateway = await startGateway(t)
  const cases: [string, string, string, number][] = [
    ['a broken body', '{', 'malformed_request', 400],
    ['an unknown model', question('no-such-1', false), 'unknown_model', 404],
    ['a field out of bounds', question('gpt-4o', true, { text: 'x', n: 0 }), 'malformed_request', 400],
  ]
  for (const [name, body, outcome, status] of cases) {
    let reply = ''
    const row = await rowAfter(t, gateway, async () => (reply = (await ask(gateway, body)).body))
    t.match(row, { outcome, status, source: 'none', usage: {}, costNanoUsd: 0, attempts: 0 }, name)
    t.match(row, { upstreamStatus: null, attempted: null, limit: null })
    const message = row.errorMessage ?? ''
    t.match(JSON.parse(reply), { error: { message, kind: outcome } }, 'the message of the reply')
    t.equal(row.modelAnswered, null)
  }
  const before = (await rowsOf(gateway)).length
  await fetch(`${gateway.baseUrl}/models`, {
    headers: { authorization: `Bearer ${gateway.secret}` },
  })
  await gateway.chat('{}', { headers: { authorization: 'Bearer sk_unknown' } })
  t.equal((await rowsOf(gateway)).length, before, 'a model list and an unknown key have none')
})

void t.test('a reply in parts: one entry with the usage of all requests to the upstream', async (t) => {
  const gateway = await startGateway(t)
  for (const reason of ['CONTINUATION', 'CONTINUATION', 'STOP']) {
    const candidate = {
      content: { role: 'model', parts: [{ text: 'part' }] },
      index: 0,
      finishReason: reason,
      continuationToken: 'token',
    }
    const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 3, thoughtsTokenCount: 1 }
    gateway.emulator.replay({
      status: 200,
      response_headers: { 'content-type': 'application/json' },
      response_body: JSON.stringify({
        candidates: [candidate],
        usageMetadata,
        modelVersion: 'gemini-4-argon',
      }),
    })
  }
  const row = await rowAfter(t, gateway, () => ask(gateway, question('gemini-4-argon', false)))
  t.match(row, { attempts: 3, source: 'reported', outcome: 'ok' })
  t.match(row.usage, { input: 21, output: 12, reasoning: 3 })
})
