/**
 * Goal: what is written in a turn leaves at its end, whole and in order, and the writer hears of it.
 * Method: the outbox of one end of a real connection, read at the other end.
 */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { Outbox } from '../../src/http/outbox.js'

interface Ends {
  readonly near: Socket
  readonly far: Socket
  readonly box: Outbox
  readonly events: string[]
}

async function ends(t: Test): Promise<Ends> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const far = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [near] = (await once(server, 'connection')) as [Socket]
  t.teardown(() => {
    near.destroy()
    far.destroy()
    server.close()
  })
  const events: string[] = []
  const owner = { drained: () => events.push('drained'), left: () => events.push('left') }
  const box = new Outbox(near, owner)
  near.on('drain', () => box.caughtUp())
  return { near, far, box, events }
}

function endOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

async function read(far: Socket, length: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  far.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    size += chunk.length
  })
  far.resume()
  while (size < length) await once(far, 'data')
  return Buffer.concat(chunks)
}

void t.test('nothing leaves before the end of the turn', async (t) => {
  const { near, far, box, events } = await ends(t)
  t.equal(box.write('a', 'latin1'), true)
  t.equal(box.write('b', 'latin1'), true)
  box.finish()
  await Promise.resolve()
  t.same([near.bytesWritten, box.length, box.isFinished, events], [0, 2, true, []])
  await endOfTurn()
  t.same([near.bytesWritten, box.length, box.isFinished, events], [2, 0, false, ['left']])
  t.equal((await read(far, 2)).toString(), 'ab')
})

void t.test('texts of both encodings and bytes keep their order', async (t) => {
  const { far, box } = await ends(t)
  box.write('\xe9', 'latin1')
  box.write('é', 'utf8')
  box.write(Buffer.from([1, 2]), 'latin1')
  box.write('\xff', 'latin1')
  t.same(await read(far, 6), Buffer.from([0xe9, 0xc3, 0xa9, 1, 2, 0xff]))
})

void t.test('a flush does not wait for the turn, and what follows is of its own', async (t) => {
  const { near, box, events } = await ends(t)
  box.write('a', 'latin1')
  box.finish()
  box.flush()
  t.same([near.bytesWritten, events], [1, ['left']])
  box.write('b', 'latin1')
  t.equal(near.bytesWritten, 1)
  await endOfTurn()
  t.same([near.bytesWritten, events], [2, ['left']])
})

void t.test('a writer that was held back by the turn alone is told at its end', async (t) => {
  const { far, box, events } = await ends(t)
  far.resume()
  t.equal(box.write('x'.repeat(9000), 'latin1'), true)
  t.equal(box.write('x'.repeat(9000), 'latin1'), false)
  while (events.length === 0) await endOfTurn()
  t.same(events, ['drained'])
  t.equal(box.write('x', 'latin1'), true)
})

void t.test('a client that takes nothing is waited for', async (t) => {
  const { far, box, events } = await ends(t)
  far.pause()
  t.equal(box.write(Buffer.alloc(20e6), 'latin1'), false)
  box.finish()
  await endOfTurn()
  await endOfTurn()
  t.same(events, [])
  t.ok(box.length > 0)
  await read(far, 20e6)
  while (events.length < 2) await endOfTurn()
  t.same(events.sort(), ['drained', 'left'])
})

void t.test('a connection that is gone is written nothing', async (t) => {
  const { near, box, events } = await ends(t)
  near.on('error', (error) => events.push(String(error)))
  box.write('a', 'latin1')
  box.finish()
  near.destroy()
  await once(near, 'close')
  await endOfTurn()
  t.same([near.bytesWritten, events], [0, []])
})
