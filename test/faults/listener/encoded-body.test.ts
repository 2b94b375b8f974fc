/**
 * Goal: a compressed body is served like a plain one over HTTP/1.1 and HTTP/2, is limited by its decoded
 * size, and never blocks the event loop; a damaged, truncated or otherwise coded body is refused with the
 * reason.
 * Method: bodies compressed by zlib and the zstd tool, including decompression bombs, sent to a running
 * gateway.
 */
import { connect } from 'node:http2'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { newAuthority, newPair } from '../../helpers/certificates.js'
import { eventually } from '../scene.js'

const MIB = 1024 * 1024

const ZSTD_MAGIC = [0x28, 0xb5, 0x2f, 0xfd]
/** No flags, and a window of 128 KiB. */
const ZSTD_HEADER = Buffer.from([...ZSTD_MAGIC, 0x00, 0x38])
const BLOCK_BYTES = 128 * 1024

/** A frame of blocks with the unchanged bytes. */
function zstd(bytes: Buffer): Buffer {
  const blocks: Buffer[] = []
  for (let index = 0; index < bytes.length; index += BLOCK_BYTES) {
    const block = bytes.subarray(index, index + BLOCK_BYTES)
    const header = Buffer.alloc(3)
    header.writeUIntLE((block.length << 3) | Number(index + BLOCK_BYTES >= bytes.length), 0, 3)
    blocks.push(header, block)
  }
  return Buffer.concat([ZSTD_HEADER, ...blocks])
}

/** A chat as the zstd tool compresses it. */
const ZSTD_CHAT = Buffer.from(
  'KLUv/QRoxQIAEsYSEaBvPk3QgAohy1YTfQCF9g9NGeUG4z2/4BNYMYHgKnqN/uBdq+Df6YTSdOkavUapOjT1t13an6' +
    'SNT+l3lv4ddmhJRJ2sSz9fEjYOAgBbSVBxsnGaAZ7uqho=',
  'base64',
)

const CODERS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: (bytes) => gzipSync(bytes),
  'x-gzip': (bytes) => gzipSync(bytes),
  deflate: (bytes) => deflateSync(bytes),
  br: (bytes) => brotliCompressSync(bytes),
  zstd: (bytes) => zstd(bytes),
  GZip: (bytes) => gzipSync(bytes),
}

function chatOf(content: string): Buffer {
  return Buffer.from(JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content }] }))
}

async function post(
  gateway: TestGateway,
  coding: string,
  body: Buffer,
): Promise<{ status: number; text: string; headers: Headers }> {
  const headers = { 'content-encoding': coding }
  const res = await gateway.chat('', { body, headers })
  return { status: res.status, text: await res.text(), headers: res.headers }
}

void t.test('every content coding, small and large', async (t) => {
  const gateway = await startGateway(t)
  const long = Array.from({ length: 60_000 }, (_, index) => `word ${index}`).join(' ')
  for (const [coding, encode] of Object.entries(CODERS)) {
    for (const content of ['hi', long]) {
      const { status, text } = await post(gateway, coding, encode(chatOf(content)))
      t.equal(status, 200, `${coding}: ${text.slice(0, 200)}`)
    }
  }
  const parts = Buffer.concat([zstd(chatOf('hi').subarray(0, 20)), zstd(chatOf('hi').subarray(20))])
  t.equal((await post(gateway, 'zstd', parts)).status, 200, 'two frames')
  t.equal((await post(gateway, 'zstd', ZSTD_CHAT)).status, 200, 'entropy-coded blocks')
  const skipped = Buffer.from([0x51, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2])
  const mixed = Buffer.concat([skipped, zstd(chatOf('hi'))])
  t.equal((await post(gateway, 'zstd', mixed)).status, 200, 'a frame to skip')
  t.equal((await post(gateway, 'identity', chatOf('hi'))).status, 200)
})

void t.test('other codings are refused with a list of the accepted ones', async (t) => {
  const gateway = await startGateway(t)
  for (const coding of ['compress', 'gzip, br', 'gzip gzip', 'none']) {
    const { status, text, headers } = await post(gateway, coding, chatOf('hi'))
    t.equal(status, 415, coding)
    t.match(text, '"param":"content-encoding"')
    t.equal(headers.get('accept-encoding'), 'gzip, deflate, br, zstd')
  }
})

void t.test('damaged and truncated bodies are client errors', async (t) => {
  const gateway = await startGateway(t)
  for (const [coding, encode] of Object.entries(CODERS)) {
    const good = encode(chatOf('hi '.repeat(500)))
    for (const bad of [good.subarray(0, good.length - 6), chatOf('hi'), Buffer.alloc(0)]) {
      const { status, text } = await post(gateway, coding, bad)
      t.equal(status, 400, `${coding} ${bad.length}`)
      t.match(text, 'malformed_request')
    }
  }
  t.equal(gateway.emulator.ledger.length, 0)
})

/** 1,000 MiB in 31 KiB: blocks of one repeated byte. */
function zstdBomb(): Buffer {
  const block = Buffer.from([0x02, 0x00, 0x10, 0x61])
  const last = Buffer.from([0x03, 0x00, 0x10, 0x61])
  return Buffer.concat([ZSTD_HEADER, ...Array.from({ length: 8_000 }, () => block), last])
}

void t.test('a bomb is refused with 413, without a stall', async (t) => {
  const gateway = await startGateway(t, { server: 'max_body_bytes: 4194304' })
  const zeros = Buffer.alloc(64 * MIB)
  const gzipped = gzipSync(zeros)
  const bombs: [string, Buffer][] = [
    ['gzip', gzipped],
    ['br', brotliCompressSync(zeros, { params: { 0: 0, 1: 1 } })],
    ['zstd', zstdBomb()],
    ['gzip', gzipSync(gzipped)],
  ]
  const before = process.memoryUsage().rss
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  for (const [coding, bomb] of bombs.slice(0, 3)) {
    const { status, text } = await post(gateway, coding, bomb)
    t.equal(status, 413, coding)
    t.match(text, 'body_too_large')
  }
  delay.disable()
  t.ok(delay.max / 1e6 < 250, `longest stall of both sides ${(delay.max / 1e6).toFixed(0)} ms`)
  t.ok(process.memoryUsage().rss - before < 300 * MIB)
  t.equal((await post(gateway, 'gzip', bombs[3]?.[1] ?? Buffer.alloc(0))).status, 400, 'not JSON')
})

void t.test('empty members count: the coded bytes are limited, too', async (t) => {
  const gateway = await startGateway(t, { server: 'max_body_bytes: 100000' })
  const empty = Buffer.concat(Array.from({ length: 10_000 }, () => gzipSync(Buffer.alloc(0))))
  async function* chunks(): AsyncGenerator<Buffer> {
    for (let index = 0; index < empty.length; index += 10_000) {
      yield empty.subarray(index, index + 10_000)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
  const headers = { 'content-encoding': 'gzip' }
  const init: RequestInit & { duplex: 'half' } = { headers, duplex: 'half' }
  const body = ReadableStream.from(chunks())
  const res = await gateway.chat('', { ...init, body })
  await res.arrayBuffer()
  t.equal(res.status, 413)
})

void t.test('a zstd window above 8 MiB is refused', async (t) => {
  const gateway = await startGateway(t)
  const body = zstd(chatOf('hi')).subarray(ZSTD_HEADER.length)
  const withWindow = (descriptor: number): Buffer =>
    Buffer.concat([Buffer.from([...ZSTD_MAGIC, 0x00, descriptor]), body])
  t.equal((await post(gateway, 'zstd', withWindow(13 << 3))).status, 200)
  for (const log of [14, 17, 21, 31]) {
    t.equal((await post(gateway, 'zstd', withWindow(log << 3))).status, 400)
  }
})

void t.test('a client that disconnects during the body leaves no reserved memory', async (t) => {
  const gateway = await startGateway(t)
  for (const [coding, encode] of Object.entries(CODERS)) {
    const bytes = encode(chatOf('hi '.repeat(50_000)))
    const leave = new AbortController()
    const body = new ReadableStream<Buffer>({
      start: (controller) => controller.enqueue(bytes.subarray(0, bytes.length >> 1)),
    })
    const init: RequestInit & { duplex: 'half' } = {
      headers: { 'content-encoding': coding },
      duplex: 'half',
      body,
      signal: leave.signal,
    }
    const sent = gateway.chat('', init).catch(() => null)
    setTimeout(() => leave.abort(), 50)
    t.equal(await sent, null)
  }
  await eventually(() => gateway.lines.length === 6, 'every exchange has ended')
  // A truncated upload counts as an invalid request or as a client that left.
  const ends = new Set(['client_gone', 'malformed_request'])
  t.ok(gateway.lines.every(({ outcome }) => ends.has(String(outcome))))
  t.equal((await post(gateway, 'gzip', gzipSync(chatOf('hi')))).status, 200)
})

void t.test('over HTTP/2', async (t: Test) => {
  const folder = t.testdir()
  const { cert, key } = newPair(folder, 'server', { authority: newAuthority(folder, 'ca') })
  const server = `tls: { cert: ${JSON.stringify(cert)}, key: ${JSON.stringify(key)} }`
  const gateway = await startGateway(t, { server })
  const session = connect(`https://127.0.0.1:${gateway.port}`, { rejectUnauthorized: false })
  t.teardown(() => session.close())
  const statusOf = (coding: string, body: Buffer): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/v1/chat/completions',
        authorization: `Bearer ${gateway.secret}`,
        'content-type': 'application/json',
        'content-encoding': coding,
      })
      stream.once('response', (headers) => resolve(headers[':status']))
      stream.once('error', reject)
      stream.resume().end(body)
    })
  for (const [coding, encode] of Object.entries(CODERS)) {
    t.equal(await statusOf(coding, encode(chatOf('hi'))), 200, coding)
  }
  t.equal(await statusOf('gzip', gzipSync(Buffer.alloc(64 * MIB))), 413)
})
