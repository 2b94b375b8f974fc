/**
 * Goal: large bodies that a guardrail masks do not exhaust the memory of a process: each is served, or
 * refused because the bodies of requests need too much memory.
 * Method: the real program with a heap of 700 MB, and eight bodies of 7.5 MB of several accounts at once:
 * each day two pairs of a text and a format, the long suite all.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { isToday } from '../../helpers/long-suite.js'
import { makeKeys, post } from '../large-bodies.js'
import { startServe, until } from '../program.js'

/** Texts of 7.5 MB in which guardrails mask something: seldom, and nearly everything. */
const MASKED: readonly (readonly [name: string, model: string, unit: string])[] = [
  ['few matches', 'gpt-4o', `${'words of a prompt '.repeat(5_000)}joe@example.com `],
  ['only matches', 'claude-sonnet-4-5', 'joe@example.com, sk_abcdefgh12 '],
  ['matches in two bytes a letter', 'gpt-4o', 'слово joe@example.com '],
]
const MASKED_BYTES = 7_500_000
/** Until each text has been in each format. */
const DAYS = 6

/** The place of the text in a request of each client format. */
const PLACES: readonly (readonly [path: string, bodyOf: (model: string, text: string) => object])[] = [
  ['/v1/chat/completions', (model, text) => ({ model, messages: [{ role: 'user', content: text }] })],
  [
    '/v1/responses',
    (_model, text) => ({
      ...{ model: 'gpt-4o', stream: true },
      input: [
        { type: 'function_call', call_id: 'c', name: 'f', arguments: JSON.stringify({ a: text }) },
        { type: 'function_call_output', call_id: 'c', output: 'x' },
      ],
    }),
  ],
  [
    '/v1/messages',
    (model, text) => ({
      ...{ model, max_tokens: 100, stream: true },
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: { a: text } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'x' }] },
      ],
    }),
  ],
  [
    '/v1beta/models/gpt-4o:generateContent',
    (_model, text) => {
      const parts = Array.from({ length: 1_000 }, (_, at) => ({
        text: text.slice((at * text.length) / 1_000, ((at + 1) * text.length) / 1_000),
      }))
      return { contents: [{ role: 'user', parts }] }
    },
  ],
]

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
  for (const [number, [name, model, unit]] of MASKED.entries()) {
    const content = unit.repeat(Math.floor(MASKED_BYTES / Buffer.byteLength(unit)))
    for (const [at, [path, bodyOf]] of PLACES.entries()) {
      if (!isToday(number * PLACES.length + at, DAYS)) continue
      const body = Buffer.from(JSON.stringify(bodyOf(model, content)))
      const replies = await Promise.all(keys.map((secret) => post(served.port, secret, body, path)))
      const statuses = replies.map(([status]) => status)
      t.comment(`${name}: ${path}: ${statuses.join(' ')}`)
      t.ok(
        statuses.every((status) => [200, 413, 429, 503].includes(status)),
        `${name}: ${path}: ${statuses.join(' ')}`,
      )
      if (path === '/v1/chat/completions') t.ok(statuses.includes(200), `${name}: some are served`)
    }
  }
  t.equal(served.program.child.exitCode, null, 'the process lives')
  t.notMatch(served.program.err(), /heap out of memory|worker exited/i)
})
