/**
 * The classes of hostile requests. One run of a class takes at most a few seconds and returns a short result:
 * a status, `closed`, `no reply`. A result that starts with `!` is a vulnerability.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { CLIENTS, COSTLY_REPLIES, requestFor } from './costly-replies.js'
import { BODIES, type Bodies } from './hostile-bodies.js'
import { connect, drip, post, send, type Target } from './hostile-connection.js'

/** One run; `turn` counts the runs of the class. */
export type Shot = (target: Target, turn: number) => Promise<string>

const SLOW_MS = 3_000
const QUIET_MS = 300
/** A client of Gemini's format names the model in its path. */
const REPLIES = COSTLY_REPLIES.filter(({ client }) => client !== 'gemini')
/** The request that is hidden in the body of another. */
const HIDDEN = 'GET /v1/models HTTP/1.1\r\nhost: gateway\r\n\r\n'

/** Every class by name. */
export const CLASSES: ReadonlyMap<string, Shot> = new Map<string, Shot>([
  ...Object.entries(BODIES).map(([name, make]): [string, Shot] => [name, shotOf(make)]),
  ['costly-replies', costlyReplies],
  ['wrong-keys', wrongKeys],
  ['header-flood', headerFlood],
  ['smuggling', smuggling],
  ['slow-heads', slowHeads],
  ['slow-bodies', slowBodies],
  ['long-host', longHost],
  ['never-reading', neverReading],
  ['connection-churn', connectionChurn],
  ['junk-models-and-paths', junkModelsAndPaths],
])

function shotOf(make: () => Bodies): Shot {
  let made: Bodies | null = null
  return (target, turn) => {
    made ??= make()
    return send(target, post(target.secret, made[turn % made.length] ?? ''))
  }
}

/** Whole replies and streams that are costly to read; the client takes all of each. */
async function costlyReplies(target: Target, turn: number): Promise<string> {
  const index = turn % REPLIES.length
  const reply = REPLIES[index]
  if (reply === undefined) return 'no reply'
  const body = requestFor(reply, `costly-${COSTLY_REPLIES.indexOf(reply)}`)
  return send(target, post(target.secret, body, '', CLIENTS[reply.client].path), QUIET_MS)
}

/** 200 requests in one write, each with a different key. */
async function wrongKeys(target: Target, turn: number): Promise<string> {
  const body = '{"model":"gpt-5.4-mini","messages":[{"role":"user","content":"Hi."}]}'
  const requests = Array.from({ length: 200 }, (_, at) => post(`sk-wrong-${turn}-${at}`, body))
  const found = await send(target, Buffer.concat(requests), QUIET_MS)
  const kinds = new Set(found.split('+'))
  return kinds.has('200') ? `!accepted a wrong key` : [...kinds].join('+')
}

async function headerFlood(target: Target, turn: number): Promise<string> {
  const floods = [
    Array.from({ length: 20_000 }, (_, at) => `x-${at}: 1\r\n`).join(''),
    `x-large: ${'a'.repeat(1_000_000)}\r\n`,
    Array.from({ length: 2_000 }, () => 'cookie: a=b\r\n').join(''),
  ]
  return send(target, post(target.secret, '{}', floods[turn % floods.length]))
}

/** Ambiguous framing. More than one reply is a vulnerability, unless the second is a refusal. */
async function smuggling(target: Target, turn: number): Promise<string> {
  const { secret } = target
  const start = `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\n`
  const chunked = `0\r\n\r\n${HIDDEN}`
  const both = `content-length: ${chunked.length}\r\ntransfer-encoding: chunked\r\n\r\n${chunked}`
  const attempts = [
    both,
    `content-length: 2\r\ncontent-length: ${HIDDEN.length + 2}\r\n\r\n{}${HIDDEN}`,
    `x-a: content-length\r\ncontent-length: 2\r\ncontent-length: 0\r\n\r\n{}${HIDDEN}`,
    `content-length: +2\r\n\r\n{}${HIDDEN}`,
    `content-length: 0x2\r\n\r\n{}${HIDDEN}`,
    `transfer-encoding: chunked, identity\r\n\r\n${chunked}`,
    `transfer-encoding : chunked\r\ncontent-length: 0\r\n\r\n${chunked}`,
    `transfer-encoding: xchunked\r\ncontent-length: 0\r\n\r\n${chunked}`,
    `expect: 100-continue\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n{}${HIDDEN}`,
    `content-length: 2\ncontent-length: 0\r\n\r\n{}${HIDDEN}`,
    `transfer-encoding: chunked\r\n\r\n2;${'a'.repeat(100_000)}\r\n{}\r\n0\r\n\r\n`,
    `transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n`,
  ]
  const found = await send(target, start + (attempts[turn % attempts.length] ?? ''), QUIET_MS)
  const hidden = found
    .split('+')
    .slice(1)
    .some((status) => status.startsWith('2'))
  return hidden ? `!smuggled (attempt ${turn % attempts.length}: ${found})` : found
}

/** 40 connections, each with a head that never ends. */
async function slowHeads(target: Target): Promise<string> {
  const text = `GET /v1/models HTTP/1.1\r\nhost: gateway\r\nx-slow: ${'a'.repeat(1_000)}`
  return many(40, async () => {
    const socket = await connect(target)
    if (socket === null) return 'refused'
    await drip(socket, text, { everyMs: 100, forMs: SLOW_MS })
    const word = socket.destroyed ? 'closed' : 'open'
    socket.destroy()
    return word
  })
}

/** 40 connections, each with a body that never ends. */
async function slowBodies(target: Target): Promise<string> {
  return many(40, async () => {
    const socket = await connect(target)
    if (socket === null) return 'refused'
    const head = post(target.secret, 'x'.repeat(1_000)).toString().split('\r\n\r\n')[0] ?? ''
    socket.write(`${head}\r\n\r\n`)
    await drip(socket, `{"model":"${'m'.repeat(900)}`, { everyMs: 100, forMs: SLOW_MS })
    const word = socket.destroyed ? 'closed' : 'open'
    socket.destroy()
    return word
  })
}

async function longHost(target: Target): Promise<string> {
  const bytes = `GET /v1/models HTTP/1.1\r\nhost: ${'h'.repeat(10_240)}\r\nauthorization: Bearer ${target.secret}\r\n\r\n`
  const found = await send(target, bytes)
  return found === '200' ? '!accepted a host of 10 KB' : found
}

/** Long streams that the client does not read. */
async function neverReading(target: Target): Promise<string> {
  const content = '[[words: 50000]]'
  const body = { model: 'gpt-5.4-mini', stream: true, messages: [{ role: 'user', content }] }
  return many(4, async () => {
    const socket = await connect(target)
    if (socket === null) return 'refused'
    socket.pause()
    socket.write(post(target.secret, JSON.stringify(body)))
    await sleep(SLOW_MS)
    const word = socket.destroyed ? 'closed' : 'open'
    socket.destroy()
    return word
  })
}

/** 100 connections that are opened and closed at once, half of them within a request. */
async function connectionChurn(target: Target): Promise<string> {
  const bytes = post(target.secret, '{"model":"gpt-5.4-mini","messages":[')
  return many(100, async (at) => {
    const socket = await connect(target)
    if (socket === null) return 'refused'
    if (at % 2 === 0) socket.write(bytes.subarray(0, bytes.length - (at % 40)))
    if (at % 3 === 0) socket.resetAndDestroy()
    else socket.destroy()
    return 'left'
  })
}

/** Names that could each become a label, a cache entry or a log line. */
async function junkModelsAndPaths(target: Target, turn: number): Promise<string> {
  const name = `m-${turn}-${Math.random().toString(36).slice(2)}`
  const body = JSON.stringify({ model: name, messages: [{ role: 'user', content: 'Hi.' }] })
  const get = (path: string): string =>
    `GET ${path} HTTP/1.1\r\nhost: ${name}\r\nauthorization: Bearer ${target.secret}\r\n\r\n`
  const requests = [get(`/v1/${name}`), get(`/%2e%2e/${name}?${'q='.repeat(500)}`), get(`//${name}`)]
  const answers = [await send(target, post(target.secret, body))]
  for (const bytes of requests) answers.push(await send(target, bytes))
  return [...new Set(answers)].join('+')
}

/** Runs `count` at a time and returns their results. */
async function many(count: number, one: (at: number) => Promise<string>): Promise<string> {
  const words = await Promise.all(Array.from({ length: count }, (_, at) => one(at)))
  return [...new Set(words)].sort().join('+')
}
