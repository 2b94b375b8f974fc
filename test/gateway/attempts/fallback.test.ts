/**
 * Goal: for every fault of a provider before its first content, a client with a fallback gets one complete
 * reply, and a client without one gets a clear error in time. A request that may have been executed is not
 * repeated, unless that is allowed.
 * Method: a route over three providers, each fault at the first of them; the emulator's ledger shows which
 * provider got a request.
 */
import t from 'tap'
import type { Fault } from '../../../src/emulator/faults/fault-table.js'
import { ask, checkFailed, isComplete, question, series, watchProcess } from '../../faults/scene.js'
import { breakProvider, CHAIN, counts, entryOf, startWith } from './fixtures.js'

/** Faults after which the next target is always tried, for streams. */
const SAFE: readonly [name: string, fault: Fault, outcome: string][] = [
  ['throttles', { kind: 'status', code: 429 }, 'upstream_busy'],
  ['throttles for long', { kind: 'status', code: 429, 'retry-after': '3000' }, 'upstream_busy'],
  ['fails', { kind: 'status', code: 500 }, 'upstream_failed'],
  ['is overloaded', { kind: 'status', code: 529 }, 'upstream_busy'],
  ['denies the credential', { kind: 'status', code: 401 }, 'upstream_denied'],
  ['sends an error in the stream', { kind: 'error', event: 0 }, 'upstream_'],
  ['answers 200 and ends', { kind: 'cut', event: 0, mode: 'eof' }, 'upstream_truncated'],
  ['answers 200 and is reset', { kind: 'cut', event: 0, mode: 'reset' }, 'upstream_truncated'],
  ['answers 200 and sends nothing', { kind: 'silent' }, 'upstream_truncated'],
]

/** Faults after which the upstream may have executed the request. */
const UNSAFE: readonly [name: string, fault: Fault, outcome: string][] = [
  ['hangs', { kind: 'hang' }, 'upstream_timeout'],
  ['closes without a reply', { kind: 'drop' }, 'upstream_failed'],
  ['answers 200 and is silent', { kind: 'stall', event: 0 }, 'upstream_timeout'],
]

const QUICK = 'timeouts: { first_byte_ms: 400, idle_ms: 400 }'

void t.test('a stream is served by the next target', async (t) => {
  watchProcess(t)
  const gateway = await startWith(t, [`model: main, ${CHAIN}`], { upstreamOptions: QUICK })
  for (const [name, fault, outcome] of SAFE) {
    gateway.emulator.reset()
    breakProvider(gateway, 'openai', { fault })
    const seen = await ask(gateway, question('main', true))
    t.ok(isComplete(seen), `a provider that ${name}`)
    t.match(seen.headers['x-sluice-attempts'], new RegExp(`^openai:${outcome}\\w*, anthropic:ok$`))
    t.match(seen.headers, {
      'x-sluice-upstream': 'anthropic',
      'x-sluice-model': 'claude-sonnet-4-5',
    })
    t.same(counts(gateway), { openai: 1, anthropic: 1, gemini: 0 }, 'each got one request')
    const entry = await entryOf(gateway, seen.headers['x-request-id'] ?? '')
    t.match(entry, { attempts: 2, upstream: 'anthropic', outcome: 'ok', status: 200 })
    t.equal(entry.attempted, seen.headers['x-sluice-attempts'])
  }
  const fallbacks = 'sluice_fallbacks_total{from="openai",to="anthropic"}'
  t.equal(await series(gateway, fallbacks), SAFE.length)
})

void t.test('without a fallback the same faults give clear errors in time', async (t) => {
  watchProcess(t)
  const gateway = await startWith(t, ['model: alone, targets: [ { upstream: openai, model: gpt-4o } ]'], {
    upstreamOptions: QUICK,
  })
  for (const [name, fault] of [...SAFE, ...UNSAFE]) {
    gateway.emulator.reset()
    breakProvider(gateway, 'openai', { fault })
    const seen = await ask(gateway, question('alone', true))
    const kinds = ['busy', 'failed', 'denied', 'truncated', 'timeout'].map((kind) => `upstream_${kind}`)
    checkFailed(t, seen, { name: `a provider that ${name}`, kinds })
    t.ok(seen.status >= 429, `${name}: a real status, ${seen.status}`)
    t.ok(seen.ownMs < 1500, `${name}: in time, ${seen.ownMs} ms`)
  }
})

void t.test('a request that may have been executed is repeated only if that is allowed', async (t) => {
  watchProcess(t)
  const routes = [
    `model: main, ${CHAIN}`,
    `model: free, ${CHAIN}, retry: { attempts: 1, non_idempotent: true }`,
  ]
  const gateway = await startWith(t, routes, { upstreamOptions: QUICK })
  for (const [name, fault, outcome] of UNSAFE) {
    for (const [model, key, isRepeated] of [
      ['main', null, false],
      ['main', 'abc-1', true],
      ['free', null, true],
    ] as const) {
      gateway.emulator.reset()
      breakProvider(gateway, 'openai', { fault })
      const headers: Record<string, string> = key === null ? {} : { 'idempotency-key': key }
      const reply = await gateway.chat(question(model, true), { headers })
      const body = await reply.text()
      const { openai, anthropic } = counts(gateway)
      // A reused connection that is lost at once may cause one more attempt on a new connection.
      t.ok(openai === 1 || (fault.kind === 'drop' && openai === 2), `${name}: ${openai} requests`)
      t.equal(anthropic, isRepeated ? 1 : 0, `${name}, ${model} ${key ?? 'without a key'}`)
      if (isRepeated) {
        t.match(body, /\[DONE\]/)
        const sent = gateway.emulator.ledger.at(-1)?.headers['idempotency-key']
        if (key === null) t.equal(sent, undefined)
        else t.match(sent, new RegExp(`^[0-9a-f]{16}-${key}$`), 'behind the digest of the account')
      } else {
        t.ok(reply.status >= 500)
        t.match(body, new RegExp(outcome))
      }
    }
  }
})

void t.test('long idempotency keys that differ at the end stay different', async (t) => {
  const gateway = await startWith(t, [`model: main, ${CHAIN}`])
  const sent = new Set<string>()
  for (const end of ['a', 'b']) {
    const headers = { 'idempotency-key': 'k'.repeat(300) + end }
    const reply = await gateway.chat(question('main', false), { headers })
    await reply.arrayBuffer()
    const [key = ''] = [gateway.emulator.ledger.at(-1)?.headers['idempotency-key']].flat()
    t.match(key, /^[0-9a-f]{16}-[0-9a-f]{64}$/)
    sent.add(key)
  }
  t.equal(sent.size, 2)
})

void t.test('a truncated whole reply may have been executed', async (t) => {
  const gateway = await startWith(t, [`model: main, ${CHAIN}`])
  breakProvider(gateway, 'openai', { fault: { kind: 'cut', bytes: 40, mode: 'reset' } })
  const cut = await ask(gateway, question('main', false))
  checkFailed(t, cut, { name: 'cut', kinds: ['upstream_truncated'] })
  t.same(counts(gateway), { openai: 1, anthropic: 0, gemini: 0 })
  for (const code of [429, 500, 503]) {
    gateway.emulator.reset()
    breakProvider(gateway, 'openai', { fault: { kind: 'status', code } })
    const seen = await ask(gateway, question('main', false))
    t.ok(isComplete(seen), `${code}: the next target replies`)
    t.match(seen.headers['x-sluice-attempts'], /, anthropic:ok$/)
  }
})

void t.test("a request that the provider refuses as the client's fault is never repeated", async (t) => {
  const gateway = await startWith(t, [`model: main, ${CHAIN}, retry: { attempts: 3 }`])
  for (const code of [400, 404, 413, 422]) {
    gateway.emulator.reset()
    breakProvider(gateway, 'openai', { fault: { kind: 'status', code } })
    const seen = await ask(gateway, question('main', true))
    t.ok(seen.status >= 400 && seen.status < 500, `${code} → ${seen.status}`)
    t.same(counts(gateway), { openai: 1, anthropic: 0, gemini: 0 })
    t.equal(seen.headers['x-sluice-attempts'], undefined, 'one attempt is not listed')
  }
})

void t.test('nothing is repeated after the first content', async (t) => {
  const gateway = await startWith(t, [`model: main, ${CHAIN}, retry: { non_idempotent: true }`])
  for (const fault of [
    { kind: 'cut', event: 4, mode: 'reset' },
    { kind: 'cut', event: 4, mode: 'eof' },
    { kind: 'error', event: 4 },
  ] as const) {
    gateway.emulator.reset()
    breakProvider(gateway, 'openai', { fault })
    const seen = await ask(gateway, question('main', true, { text: 'Tell me. [[words: 50]]' }))
    t.equal(seen.status, 200)
    t.ok(seen.text !== '', 'content has arrived')
    t.ok(seen.error !== undefined && !seen.done && !seen.whole, 'and the reply is an error')
    t.same(counts(gateway), { openai: 1, anthropic: 0, gemini: 0 })
  }
})

void t.test('E-91: all targets of the chain are tried, and the last error has an error status', async (t) => {
  const gateway = await startWith(t, [`model: main, ${CHAIN}`])
  for (const isStream of [true, false]) {
    gateway.emulator.reset()
    breakProvider(gateway, 'openai', { fault: { kind: 'status', code: 429 } })
    breakProvider(gateway, 'anthropic', { fault: { kind: 'status', code: 529 } })
    const third = await ask(gateway, question('main', isStream))
    t.ok(isComplete(third), 'the third one replies')
    t.equal(third.headers['x-sluice-attempts'], 'openai:upstream_busy, anthropic:upstream_busy, google:ok')
    breakProvider(gateway, 'gemini', { fault: { kind: 'status', code: 500 } })
    const none = await ask(gateway, question('main', isStream))
    t.equal(none.status, 502)
    t.equal(
      none.headers['x-sluice-attempts'],
      'openai:upstream_busy, anthropic:upstream_busy, google:upstream_failed',
    )
    const entry = await entryOf(gateway, none.headers['x-request-id'] ?? '')
    t.match(entry, { attempts: 3, outcome: 'upstream_failed', source: 'none', costNanoUsd: 0 })
  }
})

void t.test('an upstream that refuses connections is skipped', async (t) => {
  const gateway = await startWith(t, [`model: main, ${CHAIN}`], {
    upstreams: { openai: 'http://127.0.0.1:9/v1' },
  })
  const seen = await ask(gateway, question('main', true))
  t.ok(isComplete(seen))
  t.equal(seen.headers['x-sluice-attempts'], 'openai:upstream_unreachable, anthropic:ok')
})

void t.test('the head is held for the first content while another attempt could follow', async (t) => {
  const gateway = await startWith(t, [
    `model: main, ${CHAIN}`,
    'model: late, targets: [ { upstream: openai, model: gpt-4o } ], hedge: { after_ms: 1500, extra_spend: 1 }',
  ])
  // The head of the reply, no content for longer than the usual maximum hold of a head, and then an error.
  breakProvider(gateway, 'openai', {
    fault: { kind: 'delay', ms: 1500, mode: 'first' },
    times: 1,
  })
  gateway.emulator.script({
    match: ({ provider }) => provider === 'openai',
    fault: [
      { kind: 'delay', ms: 1500, mode: 'first' },
      { kind: 'error', event: 0 },
    ],
  })
  t.ok(
    isComplete(await ask(gateway, question('main', true), 10_000)),
    'late content does not count as a failure',
  )
  const moved = await ask(gateway, question('main', true), 10_000)
  t.ok(isComplete(moved))
  t.match(moved.headers['x-sluice-attempts'], /, anthropic:ok$/)
  gateway.emulator.reset()
  breakProvider(gateway, 'openai', {
    fault: { kind: 'delay', ms: 6000, mode: 'first' },
    times: 1,
  })
  const hedged = await ask(gateway, question('late', true), 10_000)
  t.ok(isComplete(hedged))
  t.equal(hedged.headers['x-sluice-attempts'], 'openai:cancelled, openai:ok')
  t.ok(hedged.ownMs < 4000, `${hedged.ownMs} ms`)
})
