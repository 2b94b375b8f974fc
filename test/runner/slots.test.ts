/**
 * Goal: a run keeps the cores busy: it has its least number of processes at once, more only while the cores
 * are idle, and never more than its most.
 * Method: the times of the cores are the test's.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { Slots } from './slots.js'

/** Cores of which a share is idle, on a clock that moves with each look. */
function cores(idleShare: number): () => { idle: number; all: number } {
  let all = 0
  return () => {
    all += 2_000
    return { idle: idleShare * all, all }
  }
}

/** Takes a slot; tells whether that took less than two seconds, and when it is taken. */
function take(slots: Slots): { isSoon: Promise<boolean>; taken: Promise<void> } {
  const taken = slots.take()
  return { isSoon: Promise.race([taken.then(() => true), delay(2_000, false)]), taken }
}

void t.test('busy cores: the least number, and one more for each that ends', async (t) => {
  const slots = new Slots(2, 4, cores(0.1))
  for (const at of [1, 2]) t.equal(await take(slots).isSoon, true, `process ${at}`)
  const third = take(slots)
  t.equal(await third.isSoon, false, 'the third waits')
  slots.release()
  await third.taken
})

void t.test('idle cores: one more each second, up to the most', async (t) => {
  const slots = new Slots(1, 3, cores(0.5))
  for (const at of [1, 2, 3]) t.equal(await take(slots).isSoon, true, `process ${at}`)
  const fourth = take(slots)
  t.equal(await fourth.isSoon, false, 'no fourth')
  slots.release()
  await fourth.taken
})
