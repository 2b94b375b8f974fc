/** A connection of Responses alone, without the gateway around it, and its client. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import type { Identity } from '../../../src/accounts/account.js'
import { BodyMemory } from '../../../src/gateway/body-memory.js'
import { ClientSocket, ResponsesSocket } from '../../../src/gateway/responses-socket/responses-socket.js'
import { ConnectionResponses } from '../../../src/gateway/stored-responses/connection-responses.js'
import { listen } from '../../helpers/listen.js'

type Run = ConstructorParameters<typeof ResponsesSocket>[1]['run']

/** Both ends of a connection. */
export interface LoneSocket {
  readonly session: ResponsesSocket
  readonly client: WebSocket
  /** Counts what has arrived. */
  readonly memory: BodyMemory
}

/** Opens it until the test ends; `run` receives its turns. */
export async function openLoneSocket(t: Test, run: Run = () => undefined): Promise<LoneSocket> {
  const memory = new BodyMemory(1e9)
  const acceptor = new WebSocketServer({ noServer: true, perMessageDeflate: false, WebSocket: ClientSocket })
  const server = createServer()
  const opened = new Promise<ResponsesSocket>((resolve) => {
    server.on('upgrade', (req: IncomingMessage, _connection, head) => {
      acceptor.handleUpgrade(req, req.socket, head, (socket) => {
        const { url = '', headers, rawHeaders } = req
        const identity = { accountId: 'acc_ada', keyId: 'key_ada', digest: null } as unknown as Identity
        const session = new ResponsesSocket(socket, {
          identity,
          handshake: { url, headers, rawHeaders, socket: req.socket },
          kept: new ConnectionResponses(memory.open('acc_ada'), () => 0),
          held: memory.open('acc_ada'),
          run,
          onClosed: () => undefined,
        })
        resolve(session)
      })
    })
  })
  const port = await listen(t, server)
  const client = new WebSocket(`ws://127.0.0.1:${port}`)
  t.teardown(() => client.terminate())
  await once(client, 'open')
  return { session: await opened, client, memory }
}
