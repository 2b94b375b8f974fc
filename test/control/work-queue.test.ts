/**
 * Goal: queued tasks run in order, other work runs between them, and a full queue refuses tasks.
 * Method: the real event loop, with other work in each of its turns.
 */
import t from 'tap'
import { WorkQueue } from '../../src/control/work-queue.js'

void t.test('runs one task per turn, in order', async (t) => {
  const queue = new WorkQueue()
  const seen: string[] = []
  const tick = (): void => {
    seen.push('else')
    if (seen.filter((each) => each !== 'else').length < 3) setImmediate(tick)
  }
  setImmediate(tick)
  for (const name of ['a', 'b', 'c']) queue.take(() => seen.push(name))
  t.same(seen, [], 'nothing runs at once')
  while (!seen.includes('c')) await new Promise((resolve) => setImmediate(resolve))
  t.same(seen.slice(0, 6), ['else', 'a', 'else', 'b', 'else', 'c'])
})

void t.test('a queue of 256 refuses one more task and never runs it', async (t) => {
  const queue = new WorkQueue()
  let count = 0
  const taken = Array.from({ length: 300 }, () => queue.take(() => (count += 1)))
  t.equal(taken.filter(Boolean).length, 256)
  while (count < 256) await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(count, 256)
  t.ok(
    queue.take(() => undefined),
    'and there is room again',
  )
})

void t.test('a failing task does not affect the others', async (t) => {
  const queue = new WorkQueue()
  const failed = new Promise((resolve) => process.once('uncaughtException', resolve))
  queue.take(() => {
    throw new Error('as a mistake would')
  })
  await new Promise<void>((resolve) => queue.take(() => resolve()))
  t.match(await failed, { message: 'as a mistake would' })
})
