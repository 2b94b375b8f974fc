/**
 * Goal: a message of a WebSocket counts in the budget of bodies until it has been read, also behind others.
 * Method: two large messages at once on a connection with the budget of a process.
 */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { openLoneSocket } from './lone-socket.js'

t.setTimeout(60_000)

/** What arrives with the end of a message. */
const SLACK = 130_000

void t.test('a message that waits for another one is counted until it was read', async (t) => {
  const { client, memory } = await openLoneSocket(t)
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
