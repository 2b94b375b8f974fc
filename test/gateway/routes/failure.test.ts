/**
 * Goal (E-85, E-86, E-87, E-88): breakers open and close under faults and never lose a request, credentials
 * rotate after 401, 403 and 429, requests fall back across formats, and headers, metrics and `/readyz` report
 * it.
 * Method: a whole gateway with an emulator for each upstream that fails as the test sets.
 */
import t from 'tap'
import { startStage, until } from './fixtures.js'

const FALLBACK = '  - { prefix: m-, upstream: a, fallback: [{ upstream: b }] }'
const BREAKER =
  'breaker: { failures: 3, error_rate: 1, min_requests: 1000, window_seconds: 5, open_seconds: 1 }'

void t.test(
  'E-85: a breaker opens after failures in a row, and the upstream gets no more requests',
  async (t) => {
    const { ask, emulators, received, metric, gateway } = await startStage(
      t,
      { a: { options: BREAKER }, b: {} },
      FALLBACK,
    )
    const restore = emulators['a']?.script({ fault: { kind: 'status', code: 503 } })
    for (let index = 0; index < 3; index += 1) {
      const { status, upstream, attempts } = await ask({ stream: index === 1 })
      t.match(
        { status, upstream, attempts },
        { status: 200, upstream: 'b', attempts: /^a:upstream_\w+, b:ok$/ },
      )
    }
    t.equal(await metric('sluice_breaker_state{upstream="a"}'), 2)
    t.match(gateway.plane.ready(), {
      ready: true,
      checks: { upstreams: 'circuit breaker of a open' },
    })
    const before = received()['a']
    const { attempts } = await ask()
    t.equal(attempts, null, 'one attempt')
    t.equal(received()['a'], before)
    t.equal(await metric('sluice_fallbacks_total{from="a",to="b"}'), 3)

    restore?.()
    await until(async () => (await ask()).upstream === 'a')
    t.equal(await metric('sluice_breaker_state{upstream="a"}'), 0)
    t.equal(gateway.plane.ready().checks['upstreams'], 'ok')
  },
)

void t.test('E-86: half-open: one request at a time tests the upstream', async (t) => {
  const { ask, emulators, received, metric } = await startStage(
    t,
    { a: { options: BREAKER }, b: {} },
    FALLBACK,
  )
  emulators['a']?.script({ times: 3, fault: { kind: 'status', code: 500 } })
  for (let index = 0; index < 3; index += 1) await ask()
  emulators['a']?.script({ fault: { kind: 'delay', ms: 2_000 } })
  await until(async () => (await metric('sluice_breaker_state{upstream="a"}')) === 1)
  const before = received()['a'] ?? 0
  // Large requests are prepared in several turns of the event loop.
  const content = 'x'.repeat(400_000)
  const large = { messages: [{ role: 'user', content }] }
  await Promise.all(Array.from({ length: 20 }, (_, index) => ask(index % 2 === 0 ? large : {})))
  t.equal((received()['a'] ?? 0) - before, 1)
})

void t.test('E-87: an open breaker has no effect without another target', async (t) => {
  const { ask, emulators, received, metric } = await startStage(
    t,
    { a: { options: BREAKER } },
    '  - { prefix: m-, upstream: a }',
  )
  const restore = emulators['a']?.script({ fault: { kind: 'status', code: 500 } })
  for (let index = 0; index < 5; index += 1) t.equal((await ask()).status, 502)
  t.equal(await metric('sluice_breaker_state{upstream="a"}'), 2)
  t.equal(received()['a'], 5)
  restore?.()
  t.equal((await ask()).status, 200, 'the first request after the fault is served')
  t.equal(await metric('sluice_breaker_state{upstream="a"}'), 0)
})

void t.test('E-87: if all breakers are open, an upstream that has recovered is found', async (t) => {
  const lasting = BREAKER.replace('open_seconds: 1', 'open_seconds: 600')
  const { ask, emulators } = await startStage(
    t,
    { a: { options: lasting }, b: { options: lasting } },
    FALLBACK,
  )
  const faults = ['a', 'b'].map((name) => emulators[name]?.script({ fault: { kind: 'status', code: 500 } }))
  for (let index = 0; index < 5; index += 1) t.equal((await ask()).status, 502)
  faults[1]?.()
  const reply = await ask()
  t.equal(reply.status, 200)
  t.equal(reply.upstream, 'b')
})

void t.test('E-85: errors of the client and clients that leave do not open the breaker', async (t) => {
  const { ask, emulators, metric, gateway } = await startStage(
    t,
    { a: { options: BREAKER }, b: {} },
    FALLBACK,
  )
  const restore = emulators['a']?.script({ fault: { kind: 'status', code: 400 } })
  for (let index = 0; index < 5; index += 1) {
    const { status, upstream } = await ask()
    t.match({ status, upstream }, { status: 400, upstream: 'a' }, 'never repeated elsewhere')
  }
  restore?.()
  emulators['a']?.script({ fault: { kind: 'hang' } })
  for (let index = 0; index < 5; index += 1) {
    const signal = AbortSignal.timeout(50)
    await gateway
      .chat({ model: 'm-1', messages: [{ role: 'user', content: 'x' }] }, { signal })
      .catch(() => undefined)
  }
  await until(() => emulators['a']?.open() === 0)
  t.equal(await metric('sluice_breaker_state{upstream="a"}'), 0)
})

void t.test('a reload keeps an open breaker, unless its settings changed', async (t) => {
  const { ask, emulators, metric, reload } = await startStage(t, { a: { options: BREAKER }, b: {} }, FALLBACK)
  emulators['a']?.script({ fault: { kind: 'status', code: 500 } })
  const lasting = BREAKER.replace('open_seconds: 1', 'open_seconds: 600')
  reload({ a: { options: lasting }, b: {} }, FALLBACK)
  for (let index = 0; index < 3; index += 1) await ask()
  const state = () => metric('sluice_breaker_state{upstream="a"}')
  t.equal(await state(), 2)
  reload({ a: { options: `${lasting}, max_connections: 7` }, b: {} }, FALLBACK)
  t.equal(await state(), 2)
  reload({ a: { options: lasting.replace('failures: 3', 'failures: 4') }, b: {} }, FALLBACK)
  t.equal(await state(), 0)
})

void t.test(
  'probes open the breaker of an upstream without traffic, and let it be tested at once',
  async (t) => {
    const slow = BREAKER.replace('open_seconds: 1', 'open_seconds: 600')
    const { ask, emulators, metric, received } = await startStage(
      t,
      { a: { options: `${slow}, probe: { interval_ms: 100 }` }, b: {} },
      FALLBACK,
    )
    const restore = emulators['a']?.script({ fault: { kind: 'status', code: 503 } })
    const state = () => metric('sluice_breaker_state{upstream="a"}')
    await until(async () => (await state()) === 2)
    t.equal(received()['a'], 0)
    t.equal((await ask()).upstream, 'b')
    restore?.()
    await until(async () => (await state()) === 1)
    t.equal((await ask()).upstream, 'a')
    t.equal(await state(), 0)
  },
)

for (const [code, kind] of [
  [401, 'upstream_denied'],
  [403, 'upstream_denied'],
  [429, 'upstream_busy'],
] as const) {
  void t.test(`after ${code} the next credential is used at once, and the refused one rests`, async (t) => {
    const { ask, emulators, received, metric, gateway } = await startStage(
      t,
      { a: { options: 'api_keys: [key-one, key-two]' } },
      '  - { prefix: m-, upstream: a }',
    )
    const match = ({ headers }: { headers: { authorization?: string | undefined } }) =>
      headers.authorization === 'Bearer key-one'
    emulators['a']?.script({ match, fault: { kind: 'status', code } })
    const replies = []
    for (let index = 0; index < 6; index += 1) replies.push(await ask())
    t.ok(replies.every(({ status }) => status === 200))
    const several = replies.flatMap(({ attempts }) => attempts ?? [])
    t.same(several, [`a:${kind}, a:ok`], 'one request used the refused key')
    t.equal(received()['a'], 7)
    t.equal(await metric('sluice_credentials_resting{upstream="a"}'), 1)
    t.equal(gateway.plane.ready().checks['upstreams'], '1 of 2 keys of a resting')
  })
}

void t.test('a single credential never rests, and if all are refused the client gets an error', async (t) => {
  const { ask, emulators, received } = await startStage(
    t,
    { a: { options: 'api_keys: [key-one, key-two, key-three]' }, b: {} },
    '  - { prefix: m-, upstream: a }\n  - { prefix: n-, upstream: b }',
  )
  emulators['a']?.script({ fault: { kind: 'status', code: 401 } })
  t.equal((await ask()).status, 502)
  t.equal(received()['a'], 3, 'each key once')
  const restore = emulators['b']?.script({ fault: { kind: 'status', code: 429 } })
  t.equal((await ask({ model: 'n-1' })).status, 429)
  restore?.()
  t.equal((await ask({ model: 'n-1' })).status, 200)
})

void t.test('targets of three formats replace each other, whole and streamed', async (t) => {
  const { ask, emulators } = await startStage(
    t,
    {
      a: { dialect: 'anthropic', options: 'breaker: { failures: 100, min_requests: 100 }' },
      b: { dialect: 'gemini' },
      c: {},
    },
    '  - { prefix: m-, upstream: a, fallback: [{ upstream: b, model: gemini-3.5-flash }, { upstream: c, model: gpt-5.4 }] }',
  )
  for (const [fault, upstream] of [
    [{ kind: 'status', code: 529 }, 'b'],
    [{ kind: 'error', event: 0 }, 'b'],
    [{ kind: 'status', code: 429, 'retry-after': '60' }, 'b'],
  ] as const) {
    const restore = emulators['a']?.script({ fault })
    for (const stream of [false, true]) {
      // An error event needs a stream.
      if (fault.kind === 'error' && !stream) continue
      const reply = await ask({ stream })
      t.match(reply, { status: 200, upstream, attempts: /^a:upstream_\w+, b:ok$/ }, fault.kind)
      t.match(reply.text, stream ? /\[DONE\]/ : /"finish_reason":"stop"/)
    }
    restore?.()
  }
  emulators['a']?.script({ fault: { kind: 'status', code: 500 } })
  emulators['b']?.script({ fault: { kind: 'error', event: 0 } })
  const reply = await ask({ stream: true })
  t.match(reply, { status: 200, upstream: 'c', attempts: /^a:\w+, b:\w+, c:ok$/ })
})

void t.test('failing upstreams get at most 1.2 times the requests (G9)', async (t) => {
  const many = 'breaker: { failures: 100000, min_requests: 100000 }'
  const retry = 'retry: { attempts: 3, budget: 0.2, max_wait_ms: 20 }'
  const { ask, emulators, received, reload, metric } = await startStage(
    t,
    { a: { options: many }, b: {} },
    `  - { prefix: m-, upstream: a, ${retry} }`,
  )
  for (const emulator of Object.values(emulators)) {
    emulator.script({ fault: { kind: 'status', code: 500 } })
  }
  const flood = async (requests: number): Promise<void> => {
    for (let index = 0; index < requests; index += 20) {
      const replies = await Promise.all(Array.from({ length: 20 }, () => ask()))
      t.ok(replies.every(({ status }) => status >= 500))
    }
  }
  await flood(300)
  const { a = 0 } = received()
  t.ok(a > 300 && a <= 300 * 1.2 + 3, `${a} of 300`)
  t.equal(await metric('sluice_retries_total{upstream="a"'), a - 300)

  reload({ a: {}, b: {} }, `  - { prefix: m-, upstream: a, fallback: [{ upstream: b }], ${retry} }`)
  await flood(400)
  const all = received()
  const sent = (all['a'] ?? 0) - a + (all['b'] ?? 0)
  t.ok(sent <= 400 * 1.2, `${sent} of 400`)
})
