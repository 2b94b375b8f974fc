/**
 * Goal: a script applies to the requests that it matches, and the ledger records what was sent.
 * Method: fetch and raw sockets against an emulator; recordings are replayed in chunks of many sizes.
 */
import t from 'tap'
import { arrayOf, objectOf } from '../../src/base/json.js'
import { chunksOf, rawPost } from '../helpers/collect.js'
import { fixtures, skipWithoutFixtures } from '../helpers/fixtures.js'
import { startUpstream, until } from '../helpers/upstream.js'
import type { Emulator } from '../../src/emulator/server.js'

const KEY = 'sk-secret-0123456789'

function ask(emulator: Emulator, model = 'gpt-4o', signal?: AbortSignal): Promise<Response> {
  return fetch(`${emulator.baseUrls.openai}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
    ...(signal !== undefined && { signal }),
  })
}

async function statusOf(reply: Promise<Response>): Promise<number> {
  const response = await reply
  await response.arrayBuffer()
  return response.status
}

void t.test('an entry applies to the requests that it matches, `times` times', async (t) => {
  const emulator = await startUpstream(t)
  const remove = emulator.script({
    match: ({ body }) => body?.model === 'gpt-5',
    fault: { kind: 'status', code: 503 },
  })
  emulator.script({ times: 2, fault: { kind: 'status', code: 429 } })
  t.equal(await statusOf(ask(emulator, 'gpt-5')), 503)
  t.equal(await statusOf(ask(emulator)), 429)
  t.equal(await statusOf(ask(emulator)), 429)
  t.equal(await statusOf(ask(emulator)), 200)
  t.equal(await statusOf(ask(emulator, 'gpt-5')), 503, 'without times it stays in force')
  remove()
  t.equal(await statusOf(ask(emulator, 'gpt-5')), 200)
})

void t.test('faults are scripted and the ledger read over HTTP', async (t) => {
  const emulator = await startUpstream(t)
  const control = (method: string, path: string, body?: object): Promise<Response> =>
    fetch(`${emulator.origin}/_emulator/${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const scripted = await control('POST', 'script', {
    match: { provider: 'openai', model: 'gpt-4o', stream: false, contains: 'hi' },
    fault: { kind: 'status', code: 500 },
  })
  t.equal(scripted.status, 200)
  t.equal(await statusOf(ask(emulator, 'gpt-5')), 200)
  t.equal(await statusOf(ask(emulator)), 500)
  await control('DELETE', 'script')
  t.equal(await statusOf(ask(emulator)), 200)
  const ledger = objectOf(await (await control('GET', 'ledger')).json())
  t.same(
    arrayOf(ledger.entries).map((entry) => [objectOf(entry).model, objectOf(entry).status]),
    [
      ['gpt-5', 200],
      ['gpt-4o', 500],
      ['gpt-4o', 200],
    ],
  )
  for (const wrong of [{ fault: { kind: 'x' } }, { fault: { kind: 'lump' }, match: { a: 1 } }]) {
    t.equal((await control('POST', 'script', wrong)).status, 400)
  }
  t.equal((await control('GET', 'nothing')).status, 404)
})

void t.test('the ledger has requests without credentials, and the time of their end', async (t) => {
  const emulator = await startUpstream(t)
  t.equal(await statusOf(ask(emulator)), 200)
  await until(() => emulator.open() === 0)
  const [entry] = emulator.ledger
  t.match(entry, {
    id: 1,
    provider: 'openai',
    model: 'gpt-4o',
    status: 200,
    outcome: 'done',
    body: { model: 'gpt-4o' },
    headers: { authorization: `masked:${'Bearer '.length + KEY.length}` },
  })
  t.notMatch(JSON.stringify(emulator.ledger), KEY)
  emulator.script({ times: 1, fault: { kind: 'hang' } })
  const leaving = new AbortController()
  const gone = t.rejects(ask(emulator, 'gpt-4o', leaving.signal))
  await until(() => emulator.open() === 1)
  t.equal(emulator.ledger[1]?.closedAt, undefined)
  leaving.abort()
  await gone
  await until(() => emulator.open() === 0)
  t.equal(emulator.ledger[1]?.outcome, 'client_closed')
  t.type(emulator.ledger[1]?.closedAt, 'number')
})

void t.test('the ledger is bounded and can be off', async (t) => {
  const off = await startUpstream(t, { ledger: 0 })
  const few = await startUpstream(t, { ledger: 3 })
  for (let index = 0; index < 5; index += 1) {
    t.equal(await statusOf(ask(off)), 200)
    t.equal(await statusOf(ask(few)), 200)
  }
  t.same(off.ledger, [])
  t.same(
    few.ledger.map(({ id }) => id),
    [3, 4, 5],
  )
})

void t.test('the reply depends on the seed only', async (t) => {
  const clock = (): number => 1_700_000_000_000
  const one = await startUpstream(t, { seed: 1, clock })
  const same = await startUpstream(t, { seed: 1, clock })
  const other = await startUpstream(t, { seed: 2, clock })
  const text = async (emulator: Emulator): Promise<string> => (await ask(emulator)).text()
  t.equal(await text(one), await text(same))
  t.not(await text(one), await text(other))
})

void t.test('native paths at the root reach the right provider', async (t) => {
  const emulator = await startUpstream(t)
  const get = async (path: string, headers: Record<string, string>): Promise<unknown> =>
    (await fetch(`${emulator.origin}${path}`, { headers })).json()
  t.match(await get('/v1/models', { authorization: 'Bearer k' }), { object: 'list' })
  const claude = { 'x-api-key': 'k', 'anthropic-version': '2023-06-01' }
  t.match(await get('/v1/models', claude), { has_more: false })
  t.match(await get('/v1beta/models', { 'x-goog-api-key': 'k' }), {
    models: [{ name: /^models\/gemini/ }],
  })
  const status = async (path: string): Promise<number> =>
    (await fetch(`${emulator.origin}${path}`, { method: 'POST', body: '{}' })).status
  t.equal(await status('/v1/chat/completions'), 401)
  t.equal(await status('/v1/messages'), 401)
  t.equal(await status('/v1beta/models/gemini-2.5-flash:generateContent'), 400)
  t.equal(await status('/v1/elsewhere'), 404)
})

void t.test('a body is replayed byte for byte in the requested chunks', async (t) => {
  const emulator = await startUpstream(t)
  const body = 'data: {"a":"Grüße 🐋"}\n\ndata: [DONE]\n\n'
  const recorded = { status: 200, headers: { 'content-type': 'text/event-stream' }, body }
  const cases = [
    ['whole', [Buffer.byteLength(body)]],
    ['bytes', Array.from({ length: Buffer.byteLength(body) }, () => 1)],
    [20, [20, 20, 2]],
    [
      [3, 17, 18],
      [3, 14, 1, 24],
    ],
  ] as const
  for (const [chunking, sizes] of cases) {
    emulator.replay(recorded, { chunking })
    const reply = await rawPost(emulator.port, { path: '/anything', headers: {}, body: '{}' })
    const { chunks, complete } = chunksOf(reply.body)
    t.ok(complete)
    t.same(
      chunks.map(({ length }) => length),
      sizes,
    )
    t.equal(Buffer.concat(chunks).toString(), body)
  }
  emulator.replay(recorded, { fault: { kind: 'cut', event: 1, mode: 'eof' } })
  const cut = await rawPost(emulator.port, { path: '/anything', headers: {}, body: '{}' })
  t.equal(Buffer.concat(chunksOf(cut.body).chunks).toString(), body.slice(0, body.indexOf('data: [')))
})

void t.test('recordings are replayed byte for byte', skipWithoutFixtures(), async (t) => {
  const emulator = await startUpstream(t)
  const recordings = fixtures({ provider: 'gemini', stream: true, status: 200, raw: true })
  t.ok(recordings.length > 10)
  for (const recording of recordings) {
    emulator.replay(recording, { chunking: 777 })
    const reply = await rawPost(emulator.port, { path: '/anything', headers: {}, body: '{}' })
    const { chunks } = chunksOf(reply.body)
    t.equal(Buffer.concat(chunks).toString(), recording.response_body, recording.name)
    t.match(reply.head, /content-type: (text\/event-stream|application\/json)/)
  }
})
