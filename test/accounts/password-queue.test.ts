/**
 * Goal: a low-priority thread checks passwords one at a time and refuses checks beyond a short queue. A
 * check without a hash takes as long as a wrong password.
 * Method: the real queue with real hashes, counted and timed; /proc for the priority of the thread.
 */
import { readdirSync, readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { PasswordQueue } from '../../src/accounts/password-queue.js'
import { GatewayError } from '../../src/errors.js'

void t.test('K-178: one check runs, 64 wait, others are refused with retry-after', async (t) => {
  const queue = newQueue(t)
  const hash = await queue.hash('correct horse')
  const outcomes = await Promise.all(
    Array.from({ length: 80 }, (_, index) =>
      queue.matches(hash, index % 2 === 0 ? 'correct horse' : 'wrong').catch((error: unknown) => error),
    ),
  )
  const refused = outcomes.filter((outcome) => outcome instanceof GatewayError)
  t.equal(refused.length, 80 - 65)
  t.match(refused[0], { kind: 'rate_limited', wire: { retryAfterSeconds: 2 } })
  t.equal(outcomes.filter((outcome) => outcome === true).length, 33, 'every second result is a match')
  t.equal(outcomes.filter((outcome) => outcome === false).length, 32)
  t.ok(await queue.matches(hash, 'correct horse'), 'the slots are free again')
})

const isLinux = process.platform === 'linux'
void t.test('only the thread of the queue has the lowest priority', { skip: !isLinux }, async (t) => {
  const queue = newQueue(t)
  const before = priorities().length
  await queue.hash('correct horse')
  const after = priorities()
  t.ok(after.length > before, 'a thread was started')
  t.equal(after.filter((each) => each === 19).length, 1)
  t.ok(after[0] !== 19, 'not the main thread')
})

void t.test('closing rejects waiting checks, and a later check starts a new thread', async (t) => {
  const queue = newQueue(t)
  const waiting = [1, 2, 3].map(() => queue.hash('correct horse'))
  const outcomes = Promise.allSettled(waiting)
  await queue.close()
  t.match(
    (await outcomes).map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  )
  t.ok(await queue.matches(await queue.hash('correct horse'), 'correct horse'))
})

void t.test('K-165: a check without an account takes as long as a wrong password', async (t) => {
  const queue = newQueue(t)
  const hash = await queue.hash('correct horse')
  // The minimum of alternating measurements: load on the machine only increases a time.
  const quickest = new Map<string | null, number>()
  for (let round = 0; round < 12; round += 1) {
    for (const passwordHash of [hash, null, '']) {
      const startMs = performance.now()
      t.equal(await queue.matches(passwordHash, 'wrong password'), false)
      const ms = performance.now() - startMs
      quickest.set(passwordHash, Math.min(ms, quickest.get(passwordHash) ?? ms))
    }
  }
  const known = quickest.get(hash) ?? 0
  for (const missing of [null, '']) {
    const ms = quickest.get(missing) ?? 0
    t.ok(ms > known / 2 && ms < known * 2, `${ms} ms and ${known} ms`)
  }
})

function newQueue(t: Test): PasswordQueue {
  const queue = new PasswordQueue()
  t.teardown(() => queue.close())
  return queue
}

/** The nice value of each thread of this process, the main thread first. */
function priorities(): number[] {
  // A thread has a lower number than the main thread if the numbers began again meanwhile.
  const own = String(process.pid)
  const others = readdirSync('/proc/self/task').filter((id) => id !== own)
  return [own, ...others].map((id) => {
    const text = readFileSync(`/proc/self/task/${id}/stat`, 'utf8')
    // Field 19 of the line, counted after the name, which may contain spaces.
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[16])
  })
}
