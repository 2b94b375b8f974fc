/**
 * Goal: with random faults at three upstreams, no reply is wrong and no request is executed twice unless
 * allowed. A reply that looks complete has every word of one upstream's reply, and no bytes follow it.
 * Method: each request names its own token and the requested words; the emulator repeats the token. Every
 * upstream breaks some requests in a random way, from a seed. `SLUICE_FAULTS=10000` runs as many requests
 * (short by default).
 */
import t from 'tap'
import type { Fault } from '../../src/emulator/faults/fault-table.js'
import { startWith } from '../gateway/attempts/fixtures.js'
import { dice } from '../helpers/seeded-random.js'
import { ask, eventually, isComplete, question, series, watchProcess } from './scene.js'

const REQUESTS = Number(process.env['SLUICE_FAULTS'] ?? 300)
const SEED = Number(process.env['SLUICE_SEED'] ?? 1)
const AT_ONCE = 8

const FAULTS: readonly Fault[] = [
  { kind: 'status', code: 429 },
  { kind: 'status', code: 500 },
  { kind: 'status', code: 529 },
  { kind: 'status', code: 503, 'retry-after': '0' },
  { kind: 'error', event: 0 },
  { kind: 'error', event: 3 },
  { kind: 'cut', event: 0, mode: 'eof' },
  { kind: 'cut', event: 0, mode: 'reset' },
  { kind: 'cut', event: 4, mode: 'eof' },
  { kind: 'cut', event: 5, mode: 'reset' },
  { kind: 'cut', bytes: 200, mode: 'chunk' },
  { kind: 'drop' },
  { kind: 'silent' },
  { kind: 'garbage', event: 2 },
  { kind: 'unterminated' },
  { kind: 'drip', ms: 1, bytes: 400 },
  { kind: 'hang' },
  { kind: 'stall', event: 3 },
]

// Ten thousand requests take minutes.
t.setTimeout(900_000)

/** Outcomes after which the gateway must not send the request to another target. */
const FINAL = new Set(['upstream_rejected', 'malformed_request'])

void t.test('random faults at three upstreams', { timeout: 900_000 }, async (t) => {
  watchProcess(t)
  const random = dice(SEED)
  const gateway = await startWith(
    t,
    [
      'model: main, targets: [ { upstream: openai, model: gpt-4o }, { upstream: anthropic, model: claude-sonnet-4-5 } ], fallback: [ { upstream: google, model: gemini-2.5-flash } ], retry: { attempts: 2, max_wait_ms: 50 }',
    ],
    { upstreamOptions: 'timeouts: { first_byte_ms: 500, first_byte_whole_ms: 500, idle_ms: 500 }' },
  )
  const { emulator } = gateway
  for (const fault of FAULTS) {
    emulator.script({ match: () => random() < 0.03, fault })
  }
  const results = { complete: 0, failed: 0, broken: 0 }
  let next = 0
  const client = async (): Promise<void> => {
    for (; next < REQUESTS;) {
      next += 1
      const token = `token-${next}`
      const isStream = random() < 0.7
      const text = `Say ${token} [[words: 12]]`
      const seen = await ask(gateway, question('main', isStream, { text }), 20_000)
      if (isComplete(seen)) {
        results.complete += 1
        const words = seen.text.trim().split(/\s+/).length
        if (words < 12) t.fail(`${token}: ${words} words of a reply that looks complete: ${seen.text}`)
        if (seen.text.match(/token-\d+/)?.[0] !== undefined && !seen.text.includes(token)) {
          t.fail(`${token}: the reply of another request: ${seen.text}`)
        }
      } else if (seen.status === 200) {
        results.broken += 1
        const isHonest = seen.error !== undefined && !seen.done && !seen.whole
        if (!isHonest) t.fail(`${token}: a lie: ${seen.body.slice(-300)}`)
      } else {
        results.failed += 1
        if (seen.error === undefined || !seen.whole) t.fail(`${token}: ${seen.body.slice(0, 300)}`)
      }
      checkAttempts(seen.headers['x-sluice-attempts'] ?? '', token)
    }
  }
  const checkAttempts = (list: string, token: string): void => {
    const outcomes = list.split(', ').map((each) => each.split(':')[1] ?? '')
    for (const [index, outcome] of outcomes.entries()) {
      const isLast = index === outcomes.length - 1
      if (!isLast && (outcome === 'ok' || outcome === 'upstream_timeout' || FINAL.has(outcome))) {
        t.fail(`${token}: repeated after ${outcome}: ${list}`)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
  t.comment(`${JSON.stringify(results)}, seed ${SEED}`)
  t.ok(results.complete > REQUESTS * 0.6, `${results.complete} of ${REQUESTS} are complete`)
  t.ok(results.failed + results.broken > 0, 'some failed')
  for (const name of ['openai', 'anthropic', 'google']) {
    const gauge = `sluice_inflight{upstream="${name}"}`
    await eventually(async () => (await series(gateway, gauge)) === 0, `${gauge} is 0`)
  }
  const done = new Map<string, number>()
  for (const { body, outcome, status, faults } of emulator.ledger) {
    const [token = ''] = /token-\d+/.exec(JSON.stringify(body ?? {})) ?? []
    const isWhole = status === 200 && outcome === 'done' && faults.every((kind) => kind === 'drip')
    if (isWhole && token !== '') done.set(token, (done.get(token) ?? 0) + 1)
  }
  t.ok(done.size > REQUESTS * 0.5 || REQUESTS > 1000, 'the ledger of the upstreams is read')
  t.same(
    [...done].filter(([, times]) => times > 1),
    [],
    'no request was executed twice',
  )
  emulator.reset()
  t.ok(isComplete(await ask(gateway, question('main', true))), 'a good request afterwards')
})
