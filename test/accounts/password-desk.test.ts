/**
 * Goal: a flood of sign-ins is worked off a few at a time, and refused beyond a short queue; no hash and a
 * wrong password take as long.
 * Method: the real desk with real hashes, counted and timed.
 */
import t from 'tap'
import { PasswordDesk } from '../../src/accounts/password-desk.js'
import { GatewayError } from '../../src/errors.js'

void t.test('K-178: two run, 64 wait, the rest is told to come back', async (t) => {
  const desk = new PasswordDesk()
  const hash = await desk.hash('correct horse')
  const outcomes = await Promise.all(
    Array.from({ length: 80 }, (_, at) =>
      desk.matches(hash, at % 2 === 0 ? 'correct horse' : 'wrong').catch((error: unknown) => error),
    ),
  )
  const refused = outcomes.filter((outcome) => outcome instanceof GatewayError)
  t.equal(refused.length, 80 - 66)
  t.match(refused[0], { kind: 'rate_limited', wire: { retryAfterSeconds: 2 } })
  t.equal(outcomes.filter((outcome) => outcome === true).length, 33, 'every other answer is right')
  t.equal(outcomes.filter((outcome) => outcome === false).length, 33)
  t.ok(await desk.matches(hash, 'correct horse'), 'and the places are free again')
})

void t.test('K-165: nobody’s password takes as long as a wrong one', async (t) => {
  const desk = new PasswordDesk()
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
