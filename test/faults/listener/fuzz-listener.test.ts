/**
 * Goal: no bytes crash the server or cause a 5xx, and the handler gets only requests that the listener's
 * checks allow.
 * Method: seeded mutations of a good request over raw sockets, fifty at a time, then a good one.
 */
import t from 'tap'
import { pathOf } from '../../../src/http/request-guard.js'
import { headerOf } from '../../../src/http/message.js'
import { sendReply } from '../../../src/http/respond.js'
import { openServer } from '../../../src/http/server.js'
import { bodyOf } from '../../helpers/requests.js'
import { send } from './raw-client.js'

const SEED = [
  'POST /v1/chat/completions?a=1 HTTP/1.1',
  'Host: gateway:8080',
  'Authorization: Bearer abc',
  'Content-Type: application/json',
  'Transfer-Encoding: chunked',
  'Connection: close',
  '',
  '2\r\n{}\r\n0\r\n\r\n',
].join('\r\n')

const FRAGMENTS = [
  ...['\r\n', '\n', '\r', ' ', '\t', ':', '\u0000', '\u00ff', ',', ';', '/', '//', '%', '%00', '%2e'],
  ...['\r\nHost: b', '\r\nContent-Length: 3', '\r\nTransfer-Encoding: x', '0', '-', '\\', '#', '?', '..'],
  ...[
    'HTTP/1.0',
    'HTTP/2.0',
    'chunked',
    'GET / HTTP/1.1\r\n',
    'Expect: 100-continue\r\n',
    'Upgrade: h2c\r\n',
  ],
]

void t.test('seeded mutations of a request never pass the checks', async (t) => {
  let state = 4711
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return Math.floor((state / 0x80000000) * below)
  }
  const mutated = (): string => {
    let text = SEED
    for (let i = random(3); i >= 0; i -= 1) {
      const at = random(text.length)
      const fragment = FRAGMENTS[random(FRAGMENTS.length)] ?? ''
      text = text.slice(0, at) + fragment + text.slice(at + random(4))
    }
    return text
  }
  const wrong: string[] = []
  let begun = 0
  const door = await openServer({
    host: '127.0.0.1',
    port: 0,
    handler: (req, res) => {
      begun += 1
      const host = headerOf(req, 'host') ?? ''
      const length = headerOf(req, 'content-length')
      const encoding = headerOf(req, 'transfer-encoding')
      const hosts = req.rawHeaders.filter((name, i) => i % 2 === 0 && /^host$/i.test(name))
      const isFramed = encoding === undefined || (encoding === 'chunked' && length === undefined)
      const path = pathOf(req.url ?? '')
      const isPath = /^\/(?!\/)[!-~]*$/.test(path) && !/\/\/|\/\.\.?(?:\/|$)|[\\#]/.test(path)
      if (hosts.length !== 1 || !/^[\w.:[\]-]+$/.test(host) || !isFramed || !isPath) {
        wrong.push(JSON.stringify([req.url, req.rawHeaders]))
      }
      bodyOf(req, () => {
        if (!res.headersSent) sendReply(res, { status: 200, headers: [], body: '' })
      })
    },
  })
  t.teardown(() => door.drain(0))
  const statuses = new Map<number, number>()
  for (let round = 0; round < 12; round += 1) {
    const requests = Array.from({ length: 50 }, mutated)
    // The gateway waits for the rest of a truncated request; the time limit of the client ends it.
    const outcomes = await Promise.all(
      requests.map((text, i) => {
        // Half of them arrive in two chunks, divided at random.
        const cut = i % 2 === 0 ? 0 : random(text.length)
        return send(door.port, [text.slice(0, cut), text.slice(cut)], { waitMs: 400 })
      }),
    )
    for (const { answers } of outcomes) {
      for (const { status } of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  t.same(wrong, [])
  t.ok(begun > 30, `${begun} mutations left a valid request`)
  t.ok((statuses.get(400) ?? 0) > 100, 'most did not')
  t.same(
    [...statuses.keys()].filter((status) => ![100, 200, 400, 405, 413, 431].includes(status)),
    [],
  )
  t.equal((await send(door.port, SEED)).answers[0]?.status, 200)
})

void t.test('the path is the part before the query', (t) => {
  t.equal(pathOf('/a/b'), '/a/b')
  t.equal(pathOf('/a?b?c/d'), '/a')
  t.equal(pathOf('/?'), '/')
  t.end()
})
