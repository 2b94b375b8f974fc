/**
 * Goal: large bodies that a guardrail masks do not exhaust the memory of a process: each is served, or
 * refused because the bodies of requests need too much memory.
 * Method: the real program with a heap of 700 MB, and eight bodies of 7.5 MB of several accounts at once.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { makeKeys, post } from '../large-bodies.js'
import { startServe, until } from '../program.js'

/** Texts of 7.5 MB in which guardrails mask something: seldom, and nearly everything. */
const MASKED: readonly (readonly [name: string, model: string, unit: string])[] = [
  ['few matches', 'gpt-4o', `${'words of a prompt '.repeat(5_000)}joe@example.com `],
  ['only matches', 'claude-sonnet-4-5', 'joe@example.com, sk_abcdefgh12 '],
  ['matches in two bytes a letter', 'gpt-4o', 'слово joe@example.com '],
]
const MASKED_BYTES = 7_500_000

void t.test('8 concurrent bodies of 7.5 MB that are masked do not exhaust a heap of 700 MB', async (t) => {
  const guardrails = `
guardrails:
  pii: { detect: [email], action: mask, timeout_ms: 60000, apply_to: { all: true } }
  own: { patterns: ['sk_[a-z0-9]{6,}'], action: mask, timeout_ms: 60000, apply_to: { all: true } }
`
  const served = await startServe(t, {}, { NODE_OPTIONS: '--max-old-space-size=700' })
  served.write(readFileSync(served.file, 'utf8') + guardrails)
  await until(async () => (await served.ops('/config')).text.includes('"generation":2'))
  const keys = await makeKeys(served.file, 8)
  for (const [name, model, unit] of MASKED) {
    const content = unit.repeat(Math.floor(MASKED_BYTES / Buffer.byteLength(unit)))
    const body = Buffer.from(JSON.stringify({ model, messages: [{ role: 'user', content }] }))
    const replies = await Promise.all(keys.map((secret) => post(served.port, secret, body)))
    const statuses = replies.map(([status]) => status)
    t.comment(`${name}: ${statuses.join(' ')}`)
    t.ok(
      statuses.every((status) => [200, 413, 429, 503].includes(status)),
      `${name}: ${statuses.join(' ')}`,
    )
    t.ok(statuses.includes(200), `${name}: some are served`)
  }
  t.equal(served.program.child.exitCode, null, 'the process lives')
  t.notMatch(served.program.err(), /heap out of memory|worker exited/i)
})
