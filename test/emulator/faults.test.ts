/**
 * Goal: every fault has its documented effect on the wire, from a program, over HTTP and from a prompt.
 * Method: raw sockets read the bytes and the end of the connection; the emulator's ledger has what it sent.
 */
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { GatewayError } from '../../src/errors.js'
import { FAULTS, faultOf } from '../../src/emulator/faults/fault-table.js'
import { directionsOf, faultFromWords } from '../../src/emulator/prompt-directives.js'
import { chunksOf, eventsOf, rawPost } from '../helpers/collect.js'
import { startUpstream, until } from '../helpers/upstream.js'
import type { Fault } from '../../src/emulator/faults/fault-table.js'
import type { Emulator } from '../../src/emulator/server.js'
import type { RawReply } from '../helpers/collect.js'

const HEADERS = {
  openai: { authorization: 'Bearer key' },
  anthropic: { 'x-api-key': 'key', 'anthropic-version': '2023-06-01' },
  gemini: { 'x-goog-api-key': 'key' },
}
type Provider = keyof typeof HEADERS

/** A fixed clock, so that equal requests get equal bytes. */
function noon(): number {
  return 1_700_000_000_000
}

interface Extra {
  readonly provider?: Provider
  readonly stream?: boolean
  readonly timeoutMs?: number
}

function post(emulator: Emulator, prompt: string, extra: Extra = {}): Promise<RawReply> {
  const { provider = 'openai', stream = true, timeoutMs = 20_000 } = extra
  const messages = [{ role: 'user', content: prompt }]
  const send = (path: string, body: object): Promise<RawReply> =>
    rawPost(emulator.port, {
      path,
      headers: HEADERS[provider],
      body: JSON.stringify(body),
      limitMs: timeoutMs,
    })
  switch (provider) {
    case 'openai':
      return send('/openai/v1/chat/completions', { model: 'gpt-4o', stream, messages })
    case 'anthropic':
      return send('/anthropic/v1/messages', {
        model: 'claude-sonnet-4-6',
        max_tokens: 999,
        stream,
        messages,
      })
    case 'gemini':
      return send(
        `/gemini/v1beta/models/gemini-2.5-flash:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
        { contents: [{ role: 'user', parts: [{ text: prompt }] }] },
      )
  }
}

/** The reply with one fault, scripted for one request. */
async function faulty(emulator: Emulator, fault: Fault, extra: Extra = {}): Promise<RawReply> {
  emulator.script({ times: 1, fault })
  return post(emulator, 'Hello there, you', extra)
}

function textOf(reply: RawReply): string {
  return Buffer.concat(chunksOf(reply.body).chunks).toString()
}

void t.test('without a fault a stream is complete and chunked event by event', async (t) => {
  const emulator = await startUpstream(t, { clock: noon })
  const reply = await post(emulator, 'Hello there, you')
  const { chunks, complete } = chunksOf(reply.body)
  t.ok(complete)
  t.match(reply.head, /transfer-encoding: chunked/i)
  t.ok(chunks.every((chunk) => chunk.toString().startsWith('data: ')))
  t.equal(reply.ended, 'fin')
  t.match(emulator.ledger.at(-1), { outcome: 'done', bytesSent: Buffer.concat(chunks).length })
})

void t.test('a cut ends at the byte or event, in five ways', async (t) => {
  const emulator = await startUpstream(t, { clock: noon })
  const reset = await faulty(emulator, { kind: 'cut', bytes: 120, mode: 'reset' })
  t.equal(reset.ended, 'reset')
  t.notOk(chunksOf(reset.body).complete)
  const eof = await faulty(emulator, { kind: 'cut', bytes: 120, mode: 'eof' })
  t.ok(chunksOf(eof.body).complete, 'a clean end of chunks')
  t.equal(textOf(eof).length, 120)
  const closed = await faulty(emulator, { kind: 'cut', event: 2, mode: 'close' })
  t.notMatch(closed.head, /chunked|content-length/i)
  t.equal(closed.ended, 'fin')
  t.equal(eventsOf(closed.body.toString()).length, 2)
  const torn = await faulty(emulator, { kind: 'cut', event: 2, mode: 'chunk' })
  t.notOk(chunksOf(torn.body).complete)
  t.equal(chunksOf(torn.body).chunks.length, 2)
  t.ok(torn.body.length > textOf(torn).length + 100, 'part of a third chunk is there')
  t.equal(torn.ended, 'fin')
  const short = await faulty(emulator, { kind: 'cut', bytes: 50, mode: 'length' }, { stream: false })
  t.equal(short.body.length, 50)
  t.ok(Number(/content-length: (\d+)/i.exec(short.head)?.[1]) > 50)
  const dropped = await faulty(emulator, { kind: 'drop' })
  t.equal(dropped.bytes.length, 0)
  t.equal(dropped.ended, 'reset')
  await until(() => emulator.open() === 0)
  t.same(
    emulator.ledger.map(({ outcome }) => outcome),
    Array.from({ length: 6 }, () => 'faulted'),
  )
})

void t.test('delays and drips take the configured time', async (t) => {
  const emulator = await startUpstream(t, { clock: noon })
  for (const mode of ['headers', 'first']) {
    const start = performance.now()
    await faulty(emulator, { kind: 'delay', ms: 60, mode })
    t.ok(performance.now() - start >= 55, mode)
  }
  const whole = await post(emulator, 'Hello there, you', { stream: false })
  const start = performance.now()
  const dripped = await faulty(emulator, { kind: 'drip', ms: 5, bytes: 100 }, { stream: false })
  const { chunks } = chunksOf(dripped.body)
  t.ok(chunks.slice(0, -1).every(({ length }) => length === 100))
  t.ok(performance.now() - start >= (chunks.length - 1) * 4)
  t.equal(textOf(dripped), textOf(whole), 'the bytes themselves are whole')
})

void t.test('chunks of any size have the same content', async (t) => {
  const emulator = await startUpstream(t, { clock: noon })
  const plain = textOf(await post(emulator, 'Hello there, you'))
  const bytes = chunksOf((await faulty(emulator, { kind: 'chunks', bytes: 1 })).body)
  t.ok(bytes.chunks.every(({ length }) => length === 1))
  t.equal(Buffer.concat(bytes.chunks).toString(), plain)
  const lump = chunksOf((await faulty(emulator, { kind: 'lump' })).body)
  t.equal(lump.chunks.length, 1)
  t.equal(lump.chunks[0]?.toString(), plain)
})

void t.test('a silent upstream keeps the connection until its client leaves', async (t) => {
  const emulator = await startUpstream(t)
  const timeoutMs = 600
  const beganMs = [Date.now()]
  const hung = await faulty(emulator, { kind: 'hang' }, { timeoutMs })
  t.equal(hung.bytes.length, 0)
  t.equal(hung.ended, 'timeout')
  beganMs.push(Date.now())
  const stalled = await faulty(emulator, { kind: 'stall', event: 3 }, { timeoutMs })
  t.equal(chunksOf(stalled.body).chunks.length, 3)
  t.equal(stalled.ended, 'timeout')
  beganMs.push(Date.now())
  const open = await faulty(emulator, { kind: 'open' }, { timeoutMs })
  t.match(textOf(open), /\[DONE\]/)
  t.notOk(chunksOf(open.body).complete)
  beganMs.push(Date.now())
  const extra = await faulty(emulator, { kind: 'extra', ms: 5 }, { timeoutMs })
  t.match(textOf(extra), /\[DONE\]\n\ndata: \{/)
  await until(() => emulator.open() === 0)
  t.equal(emulator.ledger.length, 4)
  for (const [at, entry] of emulator.ledger.entries()) {
    t.equal(entry.outcome, 'client_closed')
    t.ok(Number(entry.closedAt) - Number(beganMs[at]) >= timeoutMs - 20)
  }
})

void t.test("an error status comes in each provider's form, as HTML or empty, with hints", async (t) => {
  const emulator = await startUpstream(t, { clock: noon })
  const status = { kind: 'status', code: 529, 'retry-after': '2' } as const
  const claude = await faulty(emulator, status, { provider: 'anthropic' })
  t.match(claude.head, /^HTTP\/1.1 529 [\s\S]*retry-after: 2\r\n/i)
  t.match(JSON.parse(textOf(claude)), { type: 'error', error: { type: 'overloaded_error' } })
  const gemini = await faulty(
    emulator,
    { kind: 'status', code: 429, 'retry-info': '34.4s' },
    { provider: 'gemini' },
  )
  t.match(JSON.parse(textOf(gemini)), {
    error: { code: 429, status: 'RESOURCE_EXHAUSTED', details: [{ retryDelay: '34.4s' }] },
  })
  const limited = await faulty(emulator, { kind: 'status', code: 429, 'retry-after-ms': '350' })
  t.match(limited.head, /retry-after-ms: 350/)
  t.match(JSON.parse(textOf(limited)), { error: { code: 'rate_limit_exceeded' } })
  const html = await faulty(emulator, { kind: 'status', code: 502, mode: 'html' })
  t.match(html.head, /^HTTP\/1.1 502 [\s\S]*text\/html/)
  t.match(textOf(html), /^<!DOCTYPE html>/)
  const empty = await faulty(emulator, { kind: 'status', code: 500, mode: 'empty' })
  t.equal(textOf(empty), '')
})

void t.test('errors and malformed events appear at the configured event', async (t) => {
  const emulator = await startUpstream(t, { clock: noon })
  const shapes: Record<Provider, RegExp> = {
    openai: /^data: \{"error":\{"message":"[^"]+","type":"server_error"/,
    anthropic: /^event: error\ndata: \{"type":"error","error":\{/,
    gemini: /^data: \{"error":\{"code":503,[^}]*"status":"UNAVAILABLE"\}\}\r\n\r\n/,
  }
  for (const provider of ['openai', 'anthropic', 'gemini'] as const) {
    const failed = chunksOf((await faulty(emulator, { kind: 'error', event: 2 }, { provider })).body)
    t.equal(failed.chunks.length, 3, provider)
    t.match(failed.chunks[2]?.toString(), shapes[provider])
    t.ok(failed.complete)
    const odd = chunksOf((await faulty(emulator, { kind: 'unknown', event: 1 }, { provider })).body)
    t.match(odd.chunks[1]?.toString(), /invented/)
    const broken = await faulty(emulator, { kind: 'garbage', event: 1 }, { provider })
    const [, event] = eventsOf(textOf(broken))
    t.throws(() => void JSON.parse(event?.data ?? ''), provider)
  }
  const bytes = await faulty(emulator, { kind: 'garbage', event: 1, mode: 'bytes' })
  t.ok(bytes.body.includes(Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28])))
  const giant = await faulty(emulator, { kind: 'giant', bytes: 300_000 })
  t.ok(eventsOf(textOf(giant)).some(({ data }) => data.length > 300_000))
})

void t.test('terminators and usage are missing, repeated or wrong', async (t) => {
  const emulator = await startUpstream(t, { clock: noon })
  t.notMatch(textOf(await faulty(emulator, { kind: 'unterminated' })), /\[DONE\]/)
  const claude = await faulty(emulator, { kind: 'unterminated' }, { provider: 'anthropic' })
  t.notMatch(textOf(claude), /message_stop/)
  t.match(textOf(claude), /message_delta/)
  const gemini = await faulty(emulator, { kind: 'unterminated' }, { provider: 'gemini' })
  t.notMatch(textOf(gemini), /finishReason/)
  const cases: [string, Provider, RegExp, number][] = [
    ['missing', 'anthropic', /"usage"/g, 0],
    ['missing', 'gemini', /"usageMetadata"/g, 0],
    ['null', 'anthropic', /"usage":null/g, 2],
    ['negative', 'anthropic', /"output_tokens":-7/g, 2],
    ['huge', 'anthropic', /"output_tokens":1000000000000000000/g, 2],
    ['twice', 'anthropic', /event: message_delta/g, 2],
  ]
  for (const [mode, provider, pattern, count] of cases) {
    const reply = await faulty(emulator, { kind: 'usage', mode }, { provider })
    t.equal((textOf(reply).match(pattern) ?? []).length, count, `${mode} ${provider}`)
  }
})

void t.test('a 200 can be a whole reply instead of a stream', async (t) => {
  const emulator = await startUpstream(t, { clock: noon })
  const html = await faulty(emulator, { kind: 'html' })
  t.match(html.head, /^HTTP\/1.1 200 [\s\S]*content-type: text\/html/)
  const whole = await faulty(emulator, { kind: 'whole' })
  t.match(whole.head, /content-type: application\/json/)
  t.match(JSON.parse(textOf(whole)), { object: 'chat.completion' })
  const zipped = await faulty(emulator, { kind: 'gzip' })
  t.match(zipped.head, /content-encoding: gzip/)
  t.match(gunzipSync(Buffer.concat(chunksOf(zipped.body).chunks)).toString(), /\[DONE\]/)
  const empty = await faulty(emulator, { kind: 'empty' })
  t.match(empty.head, /^HTTP\/1.1 204 /)
  t.equal(empty.body.length, 0)
  const moved = await faulty(emulator, { kind: 'redirect', to: 'http://127.0.0.1:9/x' })
  t.match(moved.head, /^HTTP\/1.1 302 [\s\S]*location: http:\/\/127.0.0.1:9\/x/)
  const untyped = await faulty(emulator, { kind: 'untyped' })
  t.notMatch(untyped.head, /content-type/i)
  t.equal(textOf(await faulty(emulator, { kind: 'silent' })), '')
  const comments = await faulty(emulator, { kind: 'silent', mode: 'comments' })
  t.same(eventsOf(textOf(comments)), [])
  const pings = await faulty(emulator, { kind: 'silent', mode: 'pings' }, { provider: 'anthropic' })
  t.same(
    eventsOf(textOf(pings)).map(({ name }) => name),
    ['ping', 'ping'],
  )
})

void t.test('a prompt can ask for faults, words and pace; a mistake is named', async (t) => {
  const emulator = await startUpstream(t, { clock: noon })
  for (const provider of ['openai', 'anthropic', 'gemini'] as const) {
    const failed = await post(emulator, 'x [[fault: status code=503]]', { provider })
    t.match(failed.head, /^HTTP\/1.1 503 /, provider)
  }
  const start = performance.now()
  const paced = await post(emulator, '[[words: 6]] [[pace: 10]]')
  t.ok(performance.now() - start >= 60)
  t.ok(chunksOf(paced.body).complete)
  const once = '[[fault: status code=500 times=1]] hi'
  t.match((await post(emulator, once)).head, /^HTTP\/1.1 500 /)
  t.match((await post(emulator, once)).head, /^HTTP\/1.1 200 /, 'times=1: the second try succeeds')
  const wrong = await post(emulator, '[[fault: explode]]')
  t.match(wrong.head, /^HTTP\/1.1 400 /)
  t.match(textOf(wrong), /fault.kind must be one of/)
})

void t.test('a fault has the same meaning as words and as JSON', (t) => {
  t.same(faultFromWords('cut bytes=120 mode=reset'), { kind: 'cut', bytes: 120, mode: 'reset' })
  t.same(faultOf({ kind: 'cut', bytes: 120 }), { kind: 'cut', bytes: 120 })
  for (const kind of Object.keys(FAULTS)) {
    t.same(faultFromWords(kind), { kind })
  }
  t.same(directionsOf('a [[words: 3]] b [[fault: lump]]'), {
    text: 'a  b',
    faults: [{ kind: 'lump' }],
    words: 3,
    pace: undefined,
  })
  const bad = ['cut bytes=-1', 'cut bytes=x', 'cut mode=sideways', 'lump ms=3', 'status code=99', 'cut 5']
  for (const words of bad) {
    t.throws(() => faultFromWords(words), GatewayError, words)
  }
  t.end()
})
