/**
 * Goal: a message of a WebSocket counts in the budget of bodies until it has been read, also behind others.
 * Method: two large messages at once on a connection with the budget of a process.
 */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import type { Identity } from '../../../src/accounts/account.js'
import { BodyMemory } from '../../../src/gateway/body-memory.js'
import { ClientSocket, ResponsesSocket } from '../../../src/gateway/responses-socket/responses-socket.js'
import { ConnectionResponses } from '../../../src/gateway/stored-responses/connection-responses.js'

t.setTimeout(60_000)

/** What arrives with the end of a message. */
const SLACK = 130_000

void t.test('a message that waits for another one is counted until it was read', async (t) => {
  const memory = new BodyMemory(1e9)
  const acceptor = new WebSocketServer({ noServer: true, perMessageDeflate: false, WebSocket: ClientSocket })
  const server = createServer().on('upgrade', (req: IncomingMessage, connection, head) => {
    acceptor.handleUpgrade(req, req.socket, head, (socket) => {
      const { url = '', headers, rawHeaders } = req
      const identity = { accountId: 'acc_ada', keyId: 'key_ada', digest: null } as unknown as Identity
      new ResponsesSocket(socket, {
        identity,
        handshake: { url, headers, rawHeaders, socket: req.socket },
        kept: new ConnectionResponses(memory.open('acc_ada'), () => 0),
        held: memory.open('acc_ada'),
        run: () => undefined,
        onClosed: () => undefined,
      })
    })
    void connection
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const client = new WebSocket(`ws://127.0.0.1:${port}`)
  t.teardown(() => client.terminate())
  await once(client, 'open')
  // Read in many turns.
  const text = JSON.stringify({
    type: 'response.processed',
    pad: Array.from({ length: 90_000 }, () => 'x'.repeat(60)),
  })
  client.send(text)
  client.send(text)
  const seen: number[] = []
  for (let idle = 0; idle < 2_000; idle += 1) {
    if (memory.heldBytes > 0) idle = 0
    seen.push(memory.heldBytes)
    await setImmediate()
  }
  const drops = seen.flatMap((bytes, at) => {
    const before = seen[at - 1] ?? 0
    return before - bytes > text.length / 2 ? [{ before, bytes }] : []
  })
  const [first = { before: 0, bytes: 0 }] = drops
  t.ok(first.before > text.length + SLACK, 'bytes of the second one are counted while the first one is read')
  t.ok(first.bytes > first.before - text.length - SLACK, 'and when it was read')
  t.equal(drops.length, 2, 'each is freed once')
  t.equal(memory.heldBytes, 0, 'and nothing afterwards')
})
