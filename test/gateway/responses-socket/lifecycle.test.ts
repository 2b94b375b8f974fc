/**
 * Goal: a connection ends with its key, with the gateway and with its client; its turns have limits, and what
 * a turn of a client that left has cost is charged.
 * Method: gateways over an emulator with slow replies, and clients that leave, stall or go on too long.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { WebSocket } from 'ws'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { stringOf, type JsonObject } from '../../../src/base/json.js'
import { openStore } from '../../../src/store/open-store.js'
import { onBothStores, startAdmin } from '../../control/admin/admin-stage.js'
import { eventually } from '../../faults/scene.js'
import { newAuthority } from '../../helpers/certificates.js'
import { startGateway } from '../../helpers/gateway.js'
import { createKey, revokeKey } from '../../helpers/keys.js'
import { rowsOf } from '../../helpers/ledger.js'
import { allKeys } from '../../helpers/lists.js'
import { connectSocket, refusedHandshake, SocketClient, textOf, typeOf } from './client.js'

const SLOW = '[[words: 400]] [[pace: 30]]'

function turn(text: string, more: JsonObject = {}): JsonObject {
  return { model: 'gpt-5.4-mini', input: text, store: false, ...more }
}

onBothStores(t, 'a revoked key ends its connections within a second', async (t, settings) => {
  const { gateway, store } = await startAdmin(t, settings)
  const idle = await connectSocket(t, gateway)
  const busy = await connectSocket(t, gateway)
  busy.send({ type: 'response.create', ...turn(SLOW) })
  await eventually(() => textOf(busy.events) !== '', 'the reply has begun')
  const page = await store.listAccounts({ order: 'newest_first', after: null, limit: 10 })
  const [account] = page.items
  const [key] = await allKeys(store, account?.id ?? '')
  const beganMs = performance.now()
  await revokeKey(store, { accountId: account?.id ?? '', id: key?.id ?? '' })
  t.same(await Promise.all([idle.closed, busy.closed]), [1008, 1008])
  const tookMs = performance.now() - beganMs
  t.ok(tookMs < 3000, `${Math.round(tookMs)} ms`)
  for (const { events } of [idle, busy]) {
    t.match(events.at(-1), { type: 'error', status: 401, error: { type: 'authentication_error' } })
  }
  t.equal((await refusedHandshake(gateway)).status, 401)
})

void t.test('a draining gateway closes idle connections, and others after their turn', async (t) => {
  const gateway = await startGateway(t)
  const idle = await connectSocket(t, gateway)
  const busy = await connectSocket(t, gateway)
  busy.send({ type: 'response.create', ...turn('[[words: 8]] [[pace: 20]]') })
  await eventually(() => textOf(busy.events) !== '', 'the reply has begun')
  const drained = gateway.plane.drain()
  t.equal(await idle.closed, 1001)
  t.equal(await busy.closed, 1001)
  t.equal(typeOf(busy.events.at(-1)), 'response.completed')
  await drained
})

void t.test('a turn that is too long for the drain ends with an error', async (t) => {
  const gateway = await startGateway(t)
  const busy = await connectSocket(t, gateway)
  busy.send({ type: 'response.create', ...turn(SLOW) })
  await eventually(() => textOf(busy.events) !== '', 'the reply has begun')
  await gateway.plane.drain()
  t.equal(await busy.closed, 1001)
  t.match(busy.events.at(-1), { type: 'response.failed', response: { error: { kind: 'draining' } } })
})

void t.test('a client that leaves ends the turn, which is charged', async (t) => {
  const gateway = await startGateway(t, { more: 'on_disconnect: cancel' })
  const client = await connectSocket(t, gateway)
  client.send({ type: 'response.create', ...turn(SLOW) })
  await eventually(() => textOf(client.events) !== '', 'the reply has begun')
  client.socket.terminate()
  await eventually(async () => (await rowsOf(gateway)).length === 1, 'an entry')
  const [row] = await rowsOf(gateway)
  t.match(row, { outcome: 'client_gone', ingress: 'responses', stream: true })
  t.ok((row?.costNanoUsd ?? 0) > 0)
  await eventually(() => gateway.emulator.open() === 0, 'the upstream is cancelled')
})

void t.test('failures of the upstream end the turn and not the connection', async (t) => {
  const gateway = await startGateway(t)
  const client = await connectSocket(t, gateway)
  gateway.emulator.script({ times: 1, fault: { kind: 'status', code: 429 } })
  const busy = (await client.turn(turn('one'))).at(-1)
  t.match(busy, { type: 'error', status: 429, headers: { 'retry-after': /\d/ } })
  gateway.emulator.script({ times: 1, fault: { kind: 'cut', event: 4 } })
  t.equal(typeOf((await client.turn(turn('[[words: 100]]'))).at(-1)), 'response.failed')
  t.equal(typeOf((await client.turn(turn('two'))).at(-1)), 'response.completed')
})

onBothStores(t, 'limits and dimensions count turns, not connections', async (t, settings) => {
  const more = `
dimensions:
  - { name: session, from: ['body:client_metadata.session_id', 'header:session-id'], required: true }
limits:
  - { scope: key, concurrent: 1 }
  - { scope: 'dimension:session', requests_total: 2 }`
  const { gateway } = await startAdmin(t, { ...settings, more })
  const client = await connectSocket(t, gateway)
  const other = await connectSocket(t, gateway, { headers: { 'session-id': 'b' } })
  const missing = (await client.turn(turn('x'))).at(-1)
  t.match(missing, { type: 'error', status: 400, error: { kind: 'dimension_required' } })
  const own = { client_metadata: { session_id: 'a' } }
  const events = await client.turn(turn('x', own))
  t.equal(typeOf(events.at(-1)), 'response.completed')
  const left = { 'x-sluice-remaining-session-requests': '1' }
  t.same(events[0], { type: 'sluice.limits', headers: left }, 'first what is left')
  t.equal(typeOf(events[1]), 'response.created')
  client.send({ type: 'response.create', ...turn('[[words: 40]] [[pace: 30]]', own) })
  const from = client.events.length
  await eventually(() => textOf(client.events.slice(from)) !== '', 'the turn has begun')
  t.match((await other.turn(turn('x'))).at(-1), { status: 429, error: { type: 'rate_limit_error' } })
  t.equal(typeOf((await client.rest(from)).at(-1)), 'response.completed')
  t.equal(typeOf((await other.turn(turn('x'))).at(-1)), 'response.completed')
  t.match((await client.turn(turn('x', own))).at(-1), {
    status: 429,
    headers: { 'x-should-retry': 'false' },
  })
  const rows = await rowsOf(gateway)
  t.ok(rows.some(({ dimensions }) => dimensions === 'session=a'))
  t.ok(rows.some(({ dimensions }) => dimensions === 'session=b'))
})

void t.test('a client that reads nothing is cut off, and holds up nothing', async (t) => {
  const gateway = await startGateway(t, { server: 'client_stall_ms: 1000' })
  const client = await connectSocket(t, gateway)
  client.socket.pause()
  client.send({ type: 'response.create', ...turn('[[words: 120000]]', { max_output_tokens: 1_000_000 }) })
  await eventually(async () => (await rowsOf(gateway)).length === 1, 'an entry', 60_000)
  const [row] = await rowsOf(gateway)
  t.equal(row?.outcome, 'client_gone')
})

void t.test('a large prompt and many turns in sequence', async (t) => {
  const gateway = await startGateway(t)
  const client = await connectSocket(t, gateway)
  const text = 'word '.repeat(120_000)
  t.equal(typeOf((await client.turn(turn(text))).at(-1)), 'response.completed')
  let previous = ''
  for (let at = 0; at < 20; at += 1) {
    const more: JsonObject = previous === '' ? {} : { previous_response_id: previous }
    const last = (await client.turn(turn(`turn ${at}`, more))).at(-1)
    t.equal(typeOf(last), 'response.completed', JSON.stringify(last))
    const { response = null } = last ?? {}
    previous = stringOf((response as JsonObject | null)?.['id']) ?? ''
  }
  const sent = JSON.stringify(gateway.emulator.ledger.at(-1)?.body)
  for (const number of [0, 10, 19]) t.match(sent, new RegExp(`turn ${number}"`))
})

void t.test('bytes that are no frames end the connection', async (t) => {
  const { port, secret } = await startGateway(t)
  const socket = connect(port, '127.0.0.1')
  socket.write(
    `GET /v1/responses HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${secret}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n`,
  )
  const [head] = (await once(socket, 'data')) as [Buffer]
  t.match(head.toString('latin1'), /^HTTP\/1\.1 101 [^]*x-request-id: /i)
  socket.write('GET / HTTP/1.1\r\n\r\n')
  let rest = ''
  socket.on('data', (chunk: Buffer) => (rest += chunk.toString('latin1')))
  await once(socket, 'close')
  t.match(rest, /"type":"error","status":400/)
})

void t.test('other protocols that a client offers are ignored, as by Java and its h2c', async (t) => {
  const { port, secret } = await startGateway(t)
  const body = JSON.stringify({ model: 'gpt-5.4-mini', input: 'hello' })
  const socket = connect(port, '127.0.0.1')
  socket.write(
    `POST /v1/responses HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n${body}`,
  )
  let reply = ''
  socket.on('data', (chunk: Buffer) => (reply += chunk.toString('latin1')))
  await once(socket, 'close')
  t.match(reply, /^HTTP\/1\.1 200 /)
  t.match(reply, /"object":\s*"response"/)
})

void t.test('a connection over TLS', async (t) => {
  const { cert, key } = newAuthority(t.testdir(), 'own')
  const { port, secret } = await startGateway(t, { server: `tls: { cert: ${cert}, key: ${key} }` })
  const headers = { authorization: `Bearer ${secret}` }
  const socket = new WebSocket(`wss://127.0.0.1:${port}/v1/responses`, { headers, rejectUnauthorized: false })
  const client = new SocketClient(socket)
  await once(socket, 'open')
  t.equal(typeOf((await client.turn(turn('hello'))).at(-1)), 'response.completed')
  await client.close()
})

void t.test('no key and no account holds the places of all others', async (t) => {
  const gateway = await startGateway(t, { server: 'max_connections: 80' })
  const store = await openStore(gateway.store)
  t.teardown(() => store.close())
  const secrets: string[] = []
  for (const name of ['a', 'b', 'c']) {
    const { account } = await createAccount(store, { name, plan: 'max', password: null })
    for (const key of ['one', 'two', 'three', 'four']) {
      secrets.push((await createKey(store, { plans: gateway.plans, account, name: key })).secret)
    }
  }
  const sockets: WebSocket[] = []
  t.teardown(() => {
    for (const socket of sockets) socket.terminate()
  })
  /** Opens as many as the key gets; why it gets no more. */
  const fill = async (secret: string): Promise<string> => {
    const headers = { authorization: `Bearer ${secret}` }
    for (;;) {
      const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/v1/responses`, { headers })
      const isOpen = await once(socket, 'open').then(
        () => true,
        () => false,
      )
      if (isOpen) sockets.push(socket)
      else {
        const { status, body } = await refusedHandshake(gateway, { headers })
        return `${sockets.length}: ${status} ${JSON.stringify(body)}`
      }
    }
  }
  const [a1 = '', a2 = '', a3 = '', , b1 = '', b2 = '', , , c1 = ''] = secrets
  t.match(await fill(a1), /^20: 429 .*This API key has 20 open WebSockets, the maximum of one key\./s)
  t.match(await fill(a2), /^30: 429 .*This account has 30 open WebSockets, and no more than these are left/s)
  t.match(await fill(a3), /^30: 429 /, 'a third key of the account gets none')
  t.match(await fill(b1), /^45: 429 .*This account has 15 open/s)
  t.match(await fill(b2), /^45: 429 /)
  t.match(await fill(c1), /^53: 429 .*This account has 8 open/s, 'another account has places')
  t.equal(
    (await fetch(`${gateway.origin}/v1/models`, { headers: { authorization: `Bearer ${c1}` } })).status,
    200,
  )
  for (const socket of sockets.splice(0)) {
    socket.close()
    await once(socket, 'close')
  }
  t.match(await fill(b2), /^20: 429 /, 'places are given back')
})
