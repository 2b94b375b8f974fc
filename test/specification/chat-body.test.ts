/**
 * Goal: a chat body that is not a valid JSON object within the limits is refused with the right status, and
 * one at the limits passes.
 * Method: sends exact bytes with `fetch`, or over a plain socket if the framing is tested.
 */
import t from 'tap'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { cpuWatch } from '../helpers/stopwatch.js'
import { ask, body, chunkOf, post } from './exchange.js'

const GOOD = JSON.stringify(body())

/** A valid body of exactly `bytes` bytes. */
function sized(bytes: number): Buffer {
  const empty = JSON.stringify(body({ user: '' }))
  return Buffer.from(JSON.stringify(body({ user: 'x'.repeat(bytes - empty.length) })))
}

async function refused(
  t: Test,
  gateway: TestGateway,
  { bytes, why }: { bytes: string | Buffer; why: RegExp },
) {
  const init = { body: typeof bytes === 'string' ? bytes : new Uint8Array(bytes) }
  const { status, error } = await ask(gateway, '', init)
  const shown = bytes.toString('latin1').slice(0, 60)
  t.equal(status, 400, shown)
  t.match(error, { type: 'invalid_request_error', code: null, kind: 'malformed_request' })
  t.match(error.message, why, shown)
}

const CAP = 10_000

void t.test('S1: a body at the cap passes, one byte more is 413, in every framing', async (t) => {
  const gateway = await startGateway(t, { server: `max_body_bytes: ${CAP}` })
  for (const [bytes, status] of [
    [CAP - 1, 200],
    [CAP, 200],
    [CAP + 1, 413],
    [CAP * 20, 413],
  ] as const) {
    const whole = sized(bytes)
    t.equal(whole.length, bytes)
    const counted = await post(gateway, { 'content-length': String(bytes) }, [whole])
    t.equal(counted.status, status, `${bytes} bytes with content-length`)
    const parts = [0, 1, 2, 3, 4].map((at) =>
      chunkOf(whole.subarray((bytes * at) / 5, (bytes * (at + 1)) / 5)),
    )
    const chunked = await post(gateway, { 'transfer-encoding': 'chunked' }, [...parts, '0\r\n\r\n'])
    t.equal(chunked.status, status, `${bytes} bytes in chunks`)
    if (status === 413) t.match(chunked.text, /"kind":"body_too_large"/)
  }
})

void t.test('S1: a length that is over the cap is refused before the body arrives', async (t) => {
  const gateway = await startGateway(t, { server: `max_body_bytes: ${CAP}` })
  const { status, text } = await post(gateway, { 'content-length': '10000000000' }, [])
  t.equal(status, 413)
  t.match(text, /larger than 10000 bytes/)
})

void t.test('S1: only application/json is accepted', async (t) => {
  const gateway = await startGateway(t)
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/json; charset=utf-16',
    'application/json, text/plain',
    '',
  ]) {
    const { status, error } = await ask(gateway, GOOD, { headers: { 'content-type': type } })
    t.equal(status, 415, type)
    t.match(error, { type: 'invalid_request_error', code: null, param: 'content-type' })
  }
  for (const type of [
    'application/json; charset=utf-8',
    'Application/JSON;charset="UTF-8"',
    'application/json ; charset=UTF8',
  ]) {
    const { status } = await ask(gateway, GOOD, { headers: { 'content-type': type } })
    t.equal(status, 200, type)
  }
  const compressed = new Uint8Array(gzipSync(GOOD))
  for (const encoding of ['compress', 'exi', 'gzip, br']) {
    const headers = { 'content-encoding': encoding }
    const { status, error } = await ask(gateway, '', { headers, body: compressed })
    t.equal(status, 415, encoding)
    t.match(error, { code: null, param: 'content-encoding' })
  }
  for (const encoding of ['br', 'deflate']) {
    const headers = { 'content-encoding': encoding }
    const { status } = await ask(gateway, '', { headers, body: compressed })
    t.equal(status, 400, `gzip that is sent as ${encoding}`)
  }
  const gzip = { headers: { 'content-encoding': 'gzip' }, body: compressed }
  t.equal((await ask(gateway, '', gzip)).status, 200)
  const identity = await ask(gateway, GOOD, { headers: { 'content-encoding': 'identity' } })
  t.equal(identity.status, 200)
})

void t.test('S1: a body that is not a JSON object is refused', async (t) => {
  const gateway = await startGateway(t)
  for (const text of ['', ' ', '{', 'null', '7', '"x"', '[]', `[${GOOD}]`, `${GOOD}x`, "{'a':1}"]) {
    await refused(t, gateway, { bytes: text, why: /./ })
  }
  await refused(t, gateway, { bytes: GOOD.slice(0, -1), why: /JSON/i })
  await refused(t, gateway, { bytes: `${GOOD.slice(0, -1)},}`, why: /JSON/i })
  t.equal(gateway.emulator.ledger.length, 0)
})

void t.test('S1: bytes that are not UTF-8 are refused', async (t) => {
  const gateway = await startGateway(t)
  const [before = '', after = ''] = GOOD.split('Name')
  for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf5, 0x80, 0x80, 0x80]]) {
    const broken = [Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]
    await refused(t, gateway, { bytes: Buffer.concat(broken), why: /UTF-8/ })
  }
  await refused(t, gateway, { bytes: Buffer.from(GOOD, 'utf16le'), why: /./ })
  await refused(t, gateway, { bytes: Buffer.from(`\uFEFF${GOOD}`), why: /./ })
})

void t.test('S1: a duplicate member is refused at any depth', async (t) => {
  const gateway = await startGateway(t)
  const inside = (members: string): string => `${GOOD.slice(0, -1)},${members}}`
  await refused(t, gateway, { bytes: inside('"model":"claude-opus-5"'), why: /model/ })
  await refused(t, gateway, { bytes: inside('"stream":true,"stream":false'), why: /stream/ })
  await refused(t, gateway, { bytes: inside('"mod\\u0065l":"x"'), why: /model/ })
  await refused(t, gateway, { bytes: inside('"metadata":{"a":"1","a":"2"}'), why: /metadata\.a/ })
  await refused(t, gateway, {
    bytes: inside('"tools":[{"type":"function","type":"function"}]'),
    why: /type/,
  })
  t.equal(gateway.emulator.ledger.length, 0)
})

void t.test('S1: nesting to 64 passes the parser, deeper is refused at once', async (t) => {
  const gateway = await startGateway(t)
  const deep = (levels: number, open: string, close: string): string =>
    `${GOOD.slice(0, -1)},"x":${open.repeat(levels)}${close.repeat(levels)}}`
  t.equal((await ask(gateway, deep(63, '[', ']'))).status, 200)
  await refused(t, gateway, { bytes: deep(64, '[', ']'), why: /deep|nest/i })
  await refused(t, gateway, { bytes: deep(10_000, '[', ']'), why: /deep|nest/i })
  const watch = cpuWatch()
  await refused(t, gateway, { bytes: `{"x":${'['.repeat(1_000_000)}`, why: /deep|nest/i })
  await refused(t, gateway, { bytes: '{"x":'.repeat(200_000), why: /deep|nest/i })
  t.ok(watch() < 2_000, 'without reading them to the end')
})

void t.test('S1: numbers that JSON cannot write again are refused, others stay exact', async (t) => {
  const gateway = await startGateway(t)
  const withNumber = (field: string, text: string): string => `${GOOD.slice(0, -1)},"${field}":${text}}`
  await refused(t, gateway, { bytes: withNumber('temperature', '1e400'), why: /temperature/ })
  await refused(t, gateway, { bytes: withNumber('x', '-1e999'), why: /./ })
  for (const text of ['1.0', '-0', '1e0', '0.70']) {
    t.equal((await ask(gateway, withNumber('temperature', text))).status, 200, text)
  }
  // Numbers beyond 2^53 reach an upstream of the same dialect with every digit.
  t.equal((await ask(gateway, withNumber('x', '12345678901234567890'))).status, 200)
  const [last] = gateway.emulator.ledger.slice(-1)
  t.ok(last?.bodyBytes !== undefined && last.bodyBytes >= GOOD.length + 24, 'digit for digit')
})

void t.test('S1: large but legal: a message of megabytes, a thousand images', async (t) => {
  const gateway = await startGateway(t)
  const url = 'data:image/png;base64,iVBORw0KGgo='
  const images = Array.from({ length: 1_000 }, () => ({ type: 'image_url', image_url: { url } }))
  const large = body({ messages: [{ role: 'user', content: 'x '.repeat(2_000_000) }] })
  t.equal((await ask(gateway, large)).status, 200)
  t.equal((await ask(gateway, body({ messages: [{ role: 'user', content: images }] }))).status, 200)
})

void t.test('S1: no field of a body chooses the upstream', async (t) => {
  const gateway = await startGateway(t)
  const nested = body({
    extra_body: { base_url: 'http://127.0.0.1:1/' },
    provider: { api_base: 'http://127.0.0.1:1/' },
    metadata: { api_base: 'http://127.0.0.1:1/' },
  })
  t.equal((await ask(gateway, nested)).status, 200)
  const headers = {
    'x-api-base': 'http://127.0.0.1:1/',
    'x-portkey-custom-host': 'http://127.0.0.1:1/',
    'x-forwarded-host': 'evil.example',
    'openai-organization': 'org-client',
    'anthropic-beta': 'client-beta',
    cookie: 'session=client',
  }
  for (const model of ['gpt-4o-mini', 'claude-haiku-4-5', 'gemini-2.5-flash']) {
    t.equal((await ask(gateway, body({ model }), { headers })).status, 200)
    const sent = JSON.stringify(gateway.emulator.ledger.at(-1)?.headers)
    for (const trace of ['client', 'evil', 'portkey', 'x-api-base']) {
      t.notMatch(sent, new RegExp(trace), `${model}: ${trace}`)
    }
  }
  t.equal(gateway.emulator.ledger.length, 4, 'the configured upstream got all of them')
  const another = { headers: { ...headers, 'x-goog-api-key': 'client-key' } }
  t.equal((await ask(gateway, body(), another)).status, 400, 'a second key')
})
