/**
 * Goal: a run keeps the cores busy: it has its least number of processes at once, more only while the cores
 * are idle, and never more than its most.
 * Method: the times of the cores are the test's.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Slots } from './slots.js'

/** Cores of which a share is idle, on a clock that moves with each look. */
function cores(idleShare: number): () => { idle: number; all: number } {
  let all = 0
  return () => {
    all += 2_000
    return { idle: idleShare * all, all }
  }
}

/** More than a look at the cores takes. */
const LONG_MS = 2_000

/** A slot that is given only when another is free. */
async function waitsForRelease(t: Test, slots: Slots, name: string): Promise<void> {
  const taken = slots.take()
  t.equal(await Promise.race([taken.then(() => 'given'), delay(LONG_MS, 'waits')]), 'waits', name)
  slots.release()
  await taken
}

void t.test('busy cores: the least number, and one more for each that ends', async (t) => {
  const slots = new Slots(2, 4, cores(0.1))
  for (let process = 1; process <= 2; process += 1) await slots.take()
  await waitsForRelease(t, slots, 'a third')
})

void t.test('idle cores: one more each second, up to the most', async (t) => {
  const slots = new Slots(1, 3, cores(0.5))
  for (let process = 1; process <= 3; process += 1) await slots.take()
  await waitsForRelease(t, slots, 'a fourth')
})
