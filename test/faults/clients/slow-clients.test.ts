/**
 * Goal (F-93, F-95 to F-99, F-103): clients that are slow or silent, or that reconnect often, use limited
 * time and memory and do not disturb other clients, also in large numbers.
 * Method: the real program, hundreds of raw sockets, its memory and open files as the system reports them.
 * A day has half of the kinds of clients; SLUICE_LONG=1 runs all with the numbers of the design.
 */
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startServe, until, type Served } from '../../process/program.js'
import { anotherDay, IS_LONG } from '../../helpers/long-suite.js'

const SLOW_HEADS = IS_LONG ? 1_000 : 100
const SILENT = IS_LONG ? 5_000 : 200
const NEVER_READING = IS_LONG ? 400 : 10
const CHURN = IS_LONG ? 60_000 : 500
const MEBIBYTE = 2 ** 20

t.setTimeout(IS_LONG ? 900_000 : 170_000)

async function open(t: Test, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** A chat request over a raw socket; `more` are header lines. */
function request(served: Served, body: object, more: readonly string[] = []): string {
  const text = JSON.stringify({ model: 'gpt-5.4-mini', ...body })
  return [
    'POST /v1/chat/completions HTTP/1.1',
    'host: gateway',
    `authorization: Bearer ${served.secret}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    ...more,
    '',
    text,
  ].join('\r\n')
}

function chatBody(content: string, stream = true): object {
  return { stream, messages: [{ role: 'user', content }] }
}

/** Threads of the store open and close other files. */
function openSockets({ program }: Served): number {
  const folder = `/proc/${program.pid}/fd`
  return readdirSync(folder).filter((fd) => isSocket(`${folder}/${fd}`)).length
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('socket:')
  } catch {
    // The file was closed after it was listed.
    return false
  }
}

function residentBytes({ program }: Served): number {
  const status = readFileSync(`/proc/${program.pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024
}

async function serves(t: Test, served: Served, what: string): Promise<void> {
  const reply = await served.chat()
  const text = await reply.text()
  t.equal(reply.status, 200, reply.ok ? what : `${what}: ${text}`)
}

async function gaugeOf(served: Served, series: string): Promise<number> {
  const { text } = await served.ops('/metrics')
  const lines = text.split('\n').filter((each) => each.startsWith(series))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

/** The system reports to the gateway what a slow client has read only now and then. */
const usual = await startServe(t, { server: 'workers: 1, drain_ms: 500, client_stall_ms: 4000' })

void t.test('a short time for heads', async (t) => {
  const server = 'workers: 1, drain_ms: 500, headers_timeout_ms: 2000'
  const served = await startServe(t, { server })
  await t.test('F-93: slow heads', { skip: anotherDay(0, 2) }, (t) => slowHeads(t, served))
  await t.test('F-95: connections on which nothing is sent', { skip: anotherDay(1, 2) }, (t) =>
    silent(t, served),
  )
})

async function slowHeads(t: Test, served: Served): Promise<void> {
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nx-slow: ${'a'.repeat(100)}`
  const answers: string[] = []
  const sockets = await Promise.all(Array.from({ length: SLOW_HEADS }, () => open(t, served.port)))
  for (const socket of sockets) {
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    socket.once('close', () => answers.push(text.slice(0, 12)))
  }
  let at = 0
  const drip = setInterval(() => {
    for (const socket of sockets) if (!socket.destroyed) socket.write(head.charAt(at))
    at += 1
  }, 100)
  t.teardown(() => clearInterval(drip))
  while (answers.length < SLOW_HEADS) {
    await serves(t, served, 'another client is served')
    await sleep(200)
  }
  const refused = answers.filter((answer) => answer === 'HTTP/1.1 408')
  t.equal(refused.length, SLOW_HEADS, 'each is answered 408 and closed')
}

async function silent(t: Test, served: Served): Promise<void> {
  await serves(t, served, 'before')
  const before = openSockets(served)
  const sockets = await Promise.all(Array.from({ length: SILENT }, () => open(t, served.port)))
  await serves(t, served, 'a new client is served beside them')
  for (const socket of sockets) socket.resume()
  await until(() => sockets.every(({ closed }) => closed), 60_000)
  await until(() => openSockets(served) <= before + 2, 20_000)
}

void t.test('F-96: many clients that never read', { skip: anotherDay(1, 2) }, async (t) => {
  const served = await startServe(t, {
    // Longer than the requests need to be in flight together on a busy machine.
    server: 'workers: 1, drain_ms: 500, client_stall_ms: 20000, headers_timeout_ms: 60000',
  })
  for (let index = 0; index < 20; index += 1) await serves(t, served, 'warm')
  const before = residentBytes(served)
  const sockets = await Promise.all(Array.from({ length: NEVER_READING }, () => open(t, served.port)))
  for (const socket of sockets) {
    socket.pause()
    socket.write(request(served, chatBody('[[words: 60000]]')))
  }
  await until(async () => (await gaugeOf(served, 'sluice_inflight{')) >= NEVER_READING, 60_000)
  await sleep(2_000)
  const each = (residentBytes(served) - before) / NEVER_READING
  // The first load after an idle time allocates some memory.
  const maxBytes = 0.25 * MEBIBYTE + (80 * MEBIBYTE) / NEVER_READING
  t.ok(each < maxBytes, `${Math.round(each / 1024)} KiB for each`)
  await serves(t, served, 'another client is served')
  await until(async () => (await gaugeOf(served, 'sluice_inflight{')) === 0, 60_000)
})

void t.test('F-97: a client that stops reading and resets', async (t) => {
  const served = usual
  const socket = await open(t, served.port)
  socket.pause()
  socket.write(request(served, chatBody('[[words: 100000]]')))
  await until(async () => (await gaugeOf(served, 'sluice_inflight{')) === 1)
  await sleep(500)
  socket.resetAndDestroy()
  const tookMs = await until(() => served.emulator.open() === 0)
  t.ok(tookMs < 500, `the upstream connection was closed after ${Math.round(tookMs)} ms`)
  await until(async () => (await gaugeOf(served, 'sluice_inflight{')) === 0)
})

void t.test('F-98: a client that reads slowly', { skip: anotherDay(0, 2) }, async (t) => {
  const served = usual
  const socket = await open(t, served.port)
  const seconds = IS_LONG ? 600 : 5
  let text = ''
  const before = residentBytes(served)
  socket.write(request(served, chatBody(`[[words: ${IS_LONG ? 600_000 : 60_000}]]`), ['connection: close']))
  socket.on('data', (chunk: Buffer) => {
    text = (text + chunk.toString()).slice(-200)
    socket.pause()
    setTimeout(() => socket.resume(), 40)
  })
  await sleep(seconds * 1000)
  t.notOk(socket.closed, 'it is not cut while it reads')
  const grown = residentBytes(served) - before
  t.ok(grown < 80 * MEBIBYTE, `${Math.round(grown / MEBIBYTE)} MiB more`)
  socket.removeAllListeners('data')
  socket.on('data', (chunk: Buffer) => (text = (text + chunk.toString()).slice(-200)))
  socket.resume()
  await once(socket, 'close')
  t.match(text, '[DONE]', 'and gets the whole stream')
})

void t.test('F-99: connections that come and go', async (t) => {
  const served = usual
  await serves(t, served, 'before')
  const before = openSockets(served)
  const bytes = request(served, chatBody('Hi.'))
  for (let done = 0; done < CHURN; done += 100) {
    const sockets = await Promise.all(Array.from({ length: 100 }, () => open(t, served.port)))
    for (const [index, socket] of sockets.entries()) {
      if (index % 2 === 0) socket.write(bytes.slice(0, 50 + index))
      if (index % 3 === 0) socket.resetAndDestroy()
      else socket.destroy()
    }
  }
  await until(() => openSockets(served) <= before + 2, 30_000)
  await serves(t, served, 'after')
})

void t.test('F-102, F-103: the client chooses keep-alive or close', async (t) => {
  const served = usual
  const closing = await open(t, served.port)
  let text = ''
  closing.on('data', (chunk: Buffer) => (text += chunk.toString()))
  closing.write(request(served, chatBody('Hi.', false), ['connection: close']))
  await once(closing, 'close')
  t.match(text, /^HTTP\/1\.1 200[^]*connection: close/i)
  const kept = await open(t, served.port)
  let answers = ''
  kept.on('data', (chunk: Buffer) => (answers += chunk.toString()))
  const requestBytes = request(served, chatBody('Hi.', false), ['keep-alive: timeout=999999'])
  kept.write(requestBytes + requestBytes)
  await until(() => answers.split('HTTP/1.1 200').length === 3)
  t.notMatch(answers, '999999', 'the time that a client wishes for is not promised')
  t.notOk(kept.closed)
})
