/**
 * Goal: a connection ends after 60 minutes with the error by which Codex opens another one, and never within
 * a turn.
 * Method: one connection, ticked with times of an hour later instead of a wait.
 */
import t from 'tap'
import type { HttpResponse } from '../../../src/http/message.js'
import { eventually } from '../../faults/scene.js'
import { SocketClient, typeOf } from './client.js'
import { openLoneSocket } from './lone-socket.js'

t.setTimeout(60_000)

const HOUR_MS = 60 * 60_000
const LIMIT = {
  type: 'error',
  status: 400,
  error: {
    type: 'invalid_request_error',
    code: 'websocket_connection_limit_reached',
    message: /limit of 60 minutes: open another/,
  },
}

void t.test('an idle connection ends after an hour', async (t) => {
  const openedMs = performance.now()
  const { session, client: socket } = await openLoneSocket(t)
  const client = new SocketClient(socket)
  session.tick(openedMs + HOUR_MS - 1000)
  t.same(client.events, [], 'not before')
  session.tick(performance.now() + HOUR_MS + 1)
  t.equal(await client.closed, 1008)
  t.match(client.events, [LIMIT])
})

void t.test('a running turn is served to its end', async (t) => {
  const replies: HttpResponse[] = []
  const { session, client: socket } = await openLoneSocket(t, (_req, res) => replies.push(res))
  const client = new SocketClient(socket)
  client.send({ type: 'response.create', model: 'm', input: 'x' })
  await eventually(() => replies.length === 1, 'the turn runs')
  for (const laterMs of [HOUR_MS + 1, HOUR_MS + 60_000]) session.tick(performance.now() + laterMs)
  t.same(client.events, [], 'the turn goes on')
  const completed = { type: 'response.completed', response: { id: 'resp_1' } }
  const [reply] = replies
  reply?.writeHead(200, { 'content-type': 'text/event-stream' })
  reply?.end(`event: response.completed\ndata: ${JSON.stringify(completed)}\n\n`)
  t.equal(await client.closed, 1008)
  t.match(client.events, [completed, LIMIT], 'then the error, once')
  t.equal(typeOf(client.events.at(-1)), 'error')
})
