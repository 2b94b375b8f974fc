/**
 * Goal: clients' bytes come in one buffer of the process, and nothing else is different for a socket.
 * Method: an accepted connection, its other end, and what is seen of both.
 */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { lendReads } from '../../src/http/lent-reads.js'

interface Pair {
  readonly client: Socket
  readonly accepted: Socket
  readonly lent: Socket
  /** What came, copied, and the memory that each piece was in. */
  readonly pieces: string[]
  readonly memory: Set<unknown>
}

async function pair(t: Test): Promise<Pair> {
  const server = createServer({ allowHalfOpen: true })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  t.teardown(() => server.close())
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const [accepted] = (await once(server, 'connection')) as [Socket]
  const pieces: string[] = []
  const memory = new Set<unknown>()
  const lent = lendReads(accepted, (bytes) => {
    pieces.push(bytes.toString('latin1'))
    memory.add(bytes.buffer)
    client.emit('taken')
  })
  t.teardown(() => {
    client.destroy()
    lent.destroy()
  })
  return { client, accepted, lent, pieces, memory }
}

void t.test('every read of every socket is in one buffer', async (t) => {
  const one = await pair(t)
  const other = await pair(t)
  for (const text of ['a', 'bc', 'def']) {
    for (const { client } of [one, other]) {
      client.write(text)
      await once(client, 'taken')
    }
  }
  t.same(one.pieces, ['a', 'bc', 'def'])
  t.same(other.pieces, one.pieces)
  t.equal(new Set([...one.memory, ...other.memory]).size, 1)
  t.not(one.lent, one.accepted, 'Node still lets the handle be put into another socket')
})

void t.test('the socket answers, tells where it comes from, and is half-open', async (t) => {
  const { client, lent } = await pair(t)
  t.equal(lent.remoteAddress, '127.0.0.1')
  client.end('question')
  await once(lent, 'end')
  t.notOk(lent.destroyed)
  const closed = once(lent, 'close')
  lent.end('answer')
  const [answer] = (await once(client, 'data')) as [Buffer]
  t.equal(answer.toString(), 'answer')
  await closed
})

void t.test('nothing is read while the socket is paused', async (t) => {
  const { client, lent, pieces } = await pair(t)
  client.once('taken', () => lent.pause())
  client.write('a')
  await once(client, 'taken')
  client.write('x'.repeat(32_000_000))
  await once(client, 'drain', { signal: AbortSignal.timeout(200) }).catch(() => undefined)
  t.ok(client.writableLength > 0, 'the other end feels it')
  t.same(pieces, ['a'])
  lent.resume()
  await once(client, 'drain')
  const length = (): number => pieces.reduce((sum, piece) => sum + piece.length, 0)
  while (length() < 32_000_001) await once(client, 'taken')
})

void t.test('a socket may be ended by what takes its bytes', async (t) => {
  const { client, lent } = await pair(t)
  client.once('taken', () => lent.destroy())
  client.write('a')
  client.resume()
  await once(client, 'end')
  t.ok(lent.destroyed)
})
