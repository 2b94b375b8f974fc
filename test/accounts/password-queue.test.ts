/**
 * Goal: a flood of sign-ins is worked off one at a time by a thread that gives way, and refused beyond a short
 * queue; no hash and a wrong password take as long.
 * Method: the real desk with real hashes, counted and timed; the kernel's word for the thread's priority.
 */
import { readdirSync, readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { PasswordQueue } from '../../src/accounts/password-queue.js'
import { GatewayError } from '../../src/errors.js'

void t.test('K-178: one runs, 64 wait, the rest is told to come back', async (t) => {
  const desk = newDesk(t)
  const hash = await desk.hash('correct horse')
  const outcomes = await Promise.all(
    Array.from({ length: 80 }, (_, at) =>
      desk.matches(hash, at % 2 === 0 ? 'correct horse' : 'wrong').catch((error: unknown) => error),
    ),
  )
  const refused = outcomes.filter((outcome) => outcome instanceof GatewayError)
  t.equal(refused.length, 80 - 65)
  t.match(refused[0], { kind: 'rate_limited', wire: { retryAfterSeconds: 2 } })
  t.equal(outcomes.filter((outcome) => outcome === true).length, 33, 'every other answer is right')
  t.equal(outcomes.filter((outcome) => outcome === false).length, 32)
  t.ok(await desk.matches(hash, 'correct horse'), 'and the places are free again')
})

const isLinux = process.platform === 'linux'
void t.test(
  'its thread has the lowest priority, and no other has',
  { skip: !isLinux },
  async (t) => {
    const desk = newDesk(t)
    const before = priorities().length
    await desk.hash('correct horse')
    const after = priorities()
    t.ok(after.length > before, 'it has a thread')
    t.equal(after.filter((each) => each === 19).length, 1)
    t.ok(after[0] !== 19, 'which is not the one that serves')
  },
)

void t.test(
  'who waits when the desk closes is told, and a later one gets a new thread',
  async (t) => {
    const desk = newDesk(t)
    const waiting = [1, 2, 3].map(() => desk.hash('correct horse'))
    const outcomes = Promise.allSettled(waiting)
    await desk.close()
    t.match(
      (await outcomes).map(({ status }) => status),
      ['rejected', 'rejected', 'rejected'],
    )
    t.ok(await desk.matches(await desk.hash('correct horse'), 'correct horse'))
  },
)

void t.test('K-165: nobody’s password takes as long as a wrong one', async (t) => {
  const desk = newDesk(t)
  const hash = await desk.hash('correct horse')
  // In turn, and the quickest of each: a busy machine only ever makes one slower.
  const quickest = new Map<string | null, number>()
  for (let round = 0; round < 12; round += 1) {
    for (const passwordHash of [hash, null, '']) {
      const from = performance.now()
      t.equal(await desk.matches(passwordHash, 'wrong password'), false)
      const ms = performance.now() - from
      quickest.set(passwordHash, Math.min(ms, quickest.get(passwordHash) ?? ms))
    }
  }
  const known = quickest.get(hash) ?? 0
  for (const nobody of [null, '']) {
    const ms = quickest.get(nobody) ?? 0
    t.ok(ms > known / 2 && ms < known * 2, `${ms} ms and ${known} ms`)
  }
})

function newDesk(t: Test): PasswordQueue {
  const desk = new PasswordQueue()
  t.teardown(() => desk.close())
  return desk
}

/** The nice value of each thread of this process, the first one's first. */
function priorities(): number[] {
  return readdirSync('/proc/self/task').map((id) => {
    const text = readFileSync(`/proc/self/task/${id}/stat`, 'utf8')
    // Behind the name, which may have spaces: field 19 of the line.
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[16])
  })
}
