/**
 * Goal: the front door serves the same where Node's sockets cannot be given a buffer (`http/lent-reads.ts`).
 * Method: the handles lose what makes it possible; then the front door's own tests.
 */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import t from 'tap'
import { lendReads } from '../../src/http/lent-reads.js'

void t.test('a socket without it is left as it is', async (t) => {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect(port, '127.0.0.1')
  const [accepted] = (await once(server, 'connection')) as [Socket & { _handle: object }]
  let prototype = accepted._handle
  while (!Object.hasOwn(prototype, NAME)) prototype = Object.getPrototypeOf(prototype) as object
  Reflect.deleteProperty(prototype, NAME)
  const taken = new Promise<Buffer>((resolve) => {
    t.equal(lendReads(accepted, resolve), accepted)
  })
  client.end('text')
  t.equal((await taken).toString(), 'text')
  server.close()
  await import('./connection.test.js')
  await import('../faults/front-door.test.js')
})

const NAME = 'useUserBuffer'
