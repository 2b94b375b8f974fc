/**
 * Goal: whole requests that come in one turn of the event loop are begun behind its reads, in order, and a client
 * that has left by then is missed by nobody.
 * Method: a listener of our own with a handler that notes, and clients that write and leave at once.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { openServer } from '../../src/server.js'
import { until } from '../helpers/upstream.js'

const HEAD = 'GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n'

interface Seen {
  /** What was begun and what was over, in order. */
  readonly notes: string[]
  readonly port: number
}

async function listening(t: Test): Promise<Seen> {
  const notes: string[] = []
  const server = await openServer({
    host: '127.0.0.1',
    port: 0,
    handler: (req, res) => {
      notes.push(`begun ${req.complete ? 'whole' : 'not whole'}`)
      setImmediate(() => notes.push('turn over'))
      res.owner = { closed: () => notes.push('closed') }
      res.send(200, [], 'ok')
    },
  })
  t.teardown(() => server.drain(0))
  return { notes, port: server.port }
}

async function connected(t: Test, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

void t.test('the requests of a turn are begun together', async (t) => {
  const { notes, port } = await listening(t)
  const clients: Socket[] = []
  for (let at = 0; at < 4; at += 1) {
    const client = await connected(t, port)
    client.write(HEAD)
    await once(client, 'data')
    clients.push(client)
  }
  await until(() => notes.filter((note) => note === 'turn over').length === 4)
  notes.length = 0
  // Written in one turn of ours, so they are there when the listener, in the same process, reads.
  for (const client of clients) client.write(HEAD)
  await until(() => notes.filter((note) => note === 'closed').length === 4)
  const firstEnd = notes.indexOf('turn over')
  const begun = notes.slice(0, firstEnd).filter((note) => note === 'begun whole')
  t.equal(begun.length, 4, 'all are begun before anything else of the turn')
})

void t.test(
  'whoever leaves before a request is begun is told of as one who leaves after',
  async (t) => {
    const { notes, port } = await listening(t)
    const count = (note: string) => notes.filter((each) => each === note).length
    const other = await connected(t, port)
    for (let round = 0; round < 30; round += 1) {
      const client = await connected(t, port)
      client.write(HEAD)
      await once(client, 'data')
      // Both are there when the listener reads.
      client.write(HEAD)
      client.resetAndDestroy()
      await once(client, 'close')
      other.write(HEAD)
      await once(other, 'data')
    }
    await until(() => count('closed') === count('begun whole'))
    t.ok(count('begun whole') >= 60, 'and the others are answered')
  },
)
