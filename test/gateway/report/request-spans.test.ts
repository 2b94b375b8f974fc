/**
 * Goal: a request is one server span, and each attempt one client span, in the trace of the client; the
 * attributes are correct and contain no prompt unless that is configured.
 * Method: a gateway with the emulator exports to a real OTLP receiver, which decodes the spans.
 */
import { createServer } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { startOtlpReceiver, type OtlpReceiver, type ReceivedSpan } from '../../observe/otlp-receiver.js'
import { startGateway, type GatewaySettings, type TestGateway } from '../../helpers/gateway.js'
import { until } from '../../helpers/upstream.js'
import { listen } from '../../helpers/listen.js'

const PROMPT = 'The canary sings at dawn.'
const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const UNSAMPLED = PARENT.replace(/01$/, '00')

/** Sets environment variables for the test; `undefined` removes one. */
function setEnv(t: Test, variables: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries({ OTEL_BSP_SCHEDULE_DELAY: '20', ...variables })) {
    const before = process.env[name]
    const set = (text: string | undefined): void => {
      if (text === undefined) Reflect.deleteProperty(process.env, name)
      else process.env[name] = text
    }
    set(value)
    t.teardown(() => set(before))
  }
}

async function startTraced(
  t: Test,
  settings: GatewaySettings = {},
  variables: Readonly<Record<string, string>> = {},
): Promise<{ gateway: TestGateway; receiver: OtlpReceiver }> {
  const receiver = await startOtlpReceiver(t)
  setEnv(t, { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...variables })
  return { gateway: await startGateway(t, settings), receiver }
}

function question(more: object = {}, text = PROMPT): object {
  return { model: 'gpt-4o', messages: [{ role: 'user', content: text }], ...more }
}

/** Sends a request within the client's trace and returns the whole reply. */
async function ask(gateway: TestGateway, body: object, headers: object = {}): Promise<string> {
  const traced = { traceparent: PARENT, tracestate: 'vendor=1,other=2', ...headers }
  const response = await gateway.chat(body, { headers: traced })
  return response.text().catch(() => '')
}

function names(span: ReceivedSpan | undefined): string[] {
  return (span?.events ?? []).map(({ name }) => name)
}

void t.test('a stream: names, relations, attributes and events', async (t) => {
  const { gateway, receiver } = await startTraced(t)
  const body = question({ stream: true, temperature: 0.5, max_tokens: 100, stop: ['canary'] })
  await ask(gateway, { ...body, model: 'claude-sonnet-4-5' })
  const [server, attempt, ...others] = await receiver.trace(TRACE, 2)
  t.same(others, [])
  t.match(server, {
    name: 'POST /v1/chat/completions',
    kind: 2,
    parentSpanId: 'b7ad6b7169203331',
    traceState: 'vendor=1,other=2',
    status: 0,
    resource: { 'service.name': 'sluice', 'process.pid': process.pid },
    attributes: {
      'http.request.method': 'POST',
      'http.route': '/v1/chat/completions',
      'http.response.status_code': 200,
      'gen_ai.request.model': 'claude-sonnet-4-5',
      'sluice.upstream': 'anthropic',
      'sluice.outcome': 'ok',
      'sluice.attempts': 1,
    },
  })
  t.match(attempt, {
    name: 'chat claude-sonnet-4-5',
    kind: 3,
    parentSpanId: server?.spanId,
    status: 0,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.request.model': 'claude-sonnet-4-5',
      'gen_ai.request.stream': true,
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.max_tokens': 100,
      'gen_ai.response.model': /^claude-sonnet-4-5/,
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.response.time_to_first_chunk': Number,
      'gen_ai.usage.input_tokens': Number,
      'gen_ai.usage.output_tokens': Number,
      'server.address': '127.0.0.1',
      'server.port': Number,
      'http.response.status_code': 200,
    },
  })
  t.same(names(server).sort(), ['commit', 'first_content'])
  t.same(names(attempt), ['first_content'])
  for (const span of [server, attempt]) {
    if (span === undefined) continue
    t.ok(span.startMs <= span.endMs && Math.abs(span.endMs - Date.now()) < 60_000, 'times')
    for (const { atMs } of span.events) {
      t.ok(atMs >= span.startMs - 1 && atMs <= span.endMs + 1, 'events are within their span')
    }
  }
  const upstream = gateway.emulator.ledger.at(-1)?.headers ?? {}
  t.equal(upstream['traceparent'], `00-${TRACE}-${attempt?.spanId}-01`, 'the upstream is the child')
  t.equal(upstream['tracestate'], 'vendor=1,other=2')
  t.equal(gateway.lines.at(-1)?.['trace_id'], TRACE, 'the log line names the trace')
  for (const { text } of receiver.requests) t.notMatch(text, /canary/, 'no prompt')
})

void t.test('a retry and a fallback are spans and events', async (t) => {
  const routes = `  - model: fragile
    targets: [{ upstream: openai, model: gpt-4o }]
    fallback: [{ upstream: anthropic, model: claude-sonnet-4-5 }]
    retry: { attempts: 2, max_wait_ms: 5000 }
`
  const { gateway, receiver } = await startTraced(t, { routes })
  gateway.emulator.script({ times: 2, fault: { kind: 'status', code: 503 } })
  await ask(gateway, question({ model: 'fragile' }))
  const [server, ...attempts] = await receiver.trace(TRACE, 4)
  t.equal(attempts.length, 3)
  t.same(names(server), ['retry', 'fallback', 'commit'])
  t.match(server?.events[0]?.attributes, {
    'sluice.upstream': 'openai',
    'error.type': 'upstream_busy',
  })
  t.match(server?.events[1]?.attributes, {
    'sluice.upstream': 'anthropic',
    'sluice.upstream.before': 'openai',
  })
  t.equal(server?.status, 0)
  t.same(
    attempts.map(({ status, attributes }) => [
      status,
      attributes['sluice.upstream'],
      attributes['sluice.occasion'],
      attributes['error.type'],
    ]),
    [
      [2, 'openai', 'first', 'upstream_busy'],
      [2, 'openai', 'retry', 'upstream_busy'],
      [0, 'anthropic', 'fallback', undefined],
    ],
  )
  const ids = gateway.emulator.ledger.map(({ headers }) => headers['traceparent'])
  t.equal(new Set(ids).size, ids.length, 'each attempt has its own context')
})

void t.test('a hedge has its own span beside the slower attempt', async (t) => {
  const routes = `  - model: late
    targets: [{ upstream: openai, model: gpt-4o }, { upstream: anthropic, model: claude-sonnet-4-5, weight: 0 }]
    hedge: { after_ms: 50, extra_spend: 1 }
`
  const { gateway, receiver } = await startTraced(t, { routes })
  gateway.emulator.script({ times: 1, fault: { kind: 'hang' } })
  await ask(gateway, question({ model: 'late', stream: true }))
  const [server, ...attempts] = await receiver.trace(TRACE, 3)
  t.ok(names(server).includes('hedge'))
  t.same(attempts.map(({ attributes }) => attributes['sluice.outcome']).sort(), ['cancelled', 'ok'])
  t.same(
    attempts.map(({ status }) => status),
    [0, 0],
    'a slower attempt that was cancelled is not an error',
  )
})

void t.test('the classes of errors and their causes', async (t) => {
  const { gateway, receiver } = await startTraced(t)
  const cases: [string, object, { status: number; attempt: number | null; outcome: string }][] = [
    ['client', question({ model: 'nope' }), { status: 0, attempt: null, outcome: 'unknown_model' }],
    [
      'provider',
      question({}, `[[fault: status code=500]] ${PROMPT}`),
      { status: 2, attempt: 2, outcome: 'upstream_failed' },
    ],
    [
      'truncated',
      question({ stream: true }, `[[words: 50]] [[fault: cut event=8 mode=eof]] ${PROMPT}`),
      { status: 2, attempt: 2, outcome: 'upstream_truncated' },
    ],
  ]
  for (const [index, [name, body, { status, attempt, outcome }]] of cases.entries()) {
    const traceId = TRACE.replace(/.$/, String(index))
    await ask(gateway, body, { traceparent: PARENT.replace(TRACE, traceId) })
    const [server, first] = await receiver.trace(traceId, attempt === null ? 1 : 2)
    t.match(server, { status, attributes: { 'sluice.outcome': outcome, 'error.type': outcome } }, name)
    t.equal(first?.status ?? null, attempt, name)
  }
  for (const { text } of receiver.requests) t.notMatch(text, /canary/, 'no prompt')
})

void t.test('a client that leaves ends both spans', async (t) => {
  const { gateway, receiver } = await startTraced(t)
  const leaving = new AbortController()
  const response = await gateway.chat(question({ stream: true }, `[[words: 2000]] [[pace: 20]] ${PROMPT}`), {
    headers: { traceparent: PARENT },
    signal: leaving.signal,
  })
  await response.body?.getReader().read()
  leaving.abort()
  const [server, attempt] = await receiver.trace(TRACE, 2)
  const attributes = { 'sluice.outcome': 'client_gone', 'http.response.status_code': 499 }
  t.match(server, { status: 0, attributes })
  t.match(attempt, { status: 0, attributes: { 'error.type': 'client_gone' } })
})

void t.test('sampling follows the standard variables and the client', async (t) => {
  const cases = [
    {
      name: 'always_off',
      headers: {},
      variables: { OTEL_TRACES_SAMPLER: 'always_off' },
      flags: '00',
    },
    {
      name: 'a ratio of 0',
      headers: { traceparent: undefined },
      variables: { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' },
      flags: '00',
    },
    {
      name: 'a parent that is not sampled',
      headers: { traceparent: UNSAMPLED },
      variables: {},
      flags: '00',
    },
    {
      name: 'always_on, for every parent',
      headers: { traceparent: UNSAMPLED },
      variables: { OTEL_TRACES_SAMPLER: 'always_on' },
      flags: '01',
    },
  ]
  for (const { name, headers, variables, flags } of cases) {
    await t.test(name, async (t) => {
      const { gateway, receiver } = await startTraced(t, {}, variables)
      const given = { traceparent: PARENT, ...headers }
      const sent = Object.entries(given).filter(([, value]) => value !== undefined)
      const response = await gateway.chat(question(), {
        headers: Object.fromEntries(sent) as Record<string, string>,
      })
      await response.text()
      const traceparent = String(gateway.emulator.ledger.at(-1)?.headers['traceparent'])
      t.match(traceparent, new RegExp(`^00-[0-9a-f]{32}-[0-9a-f]{16}-${flags}$`))
      t.notMatch(traceparent, 'b7ad6b7169203331', 'a span id of the gateway')
      if (headers.traceparent !== undefined) t.match(traceparent, TRACE)
      await gateway.plane.drain()
      t.equal(receiver.spans.length > 0, flags === '01')
    })
  }
})

void t.test('JSON, resource and headers follow the environment variables', async (t) => {
  const { gateway, receiver } = await startTraced(
    t,
    {},
    {
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20secret,x-tenant=blue',
      OTEL_SERVICE_NAME: 'edge',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    },
  )
  await ask(gateway, question())
  const [server] = await receiver.trace(TRACE, 2)
  t.match(server?.resource, { 'service.name': 'edge', 'deployment.environment.name': 'test' })
  t.match(receiver.requests[0], {
    path: '/v1/traces',
    headers: { 'x-tenant': 'blue', authorization: 'Basic secret', 'content-type': /json/ },
  })
})

void t.test('content only if it is configured, and bounded', async (t) => {
  const more = 'telemetry: { capture_content: true }'
  const { gateway, receiver } = await startTraced(t, { more })
  const system = { role: 'system', content: 'Be brief.' }
  for (const [index, stream] of [false, true].entries()) {
    for (const [place, model] of ['gpt-4o', 'claude-sonnet-4-5', 'gemini-2.5-flash'].entries()) {
      const traceId = TRACE.replace(/..$/, `${index}${place}`)
      const messages = [system, { role: 'user', content: `${PROMPT} [[words: 12]]` }]
      const replied = await ask(
        gateway,
        { model, stream, messages },
        { traceparent: PARENT.replace(TRACE, traceId) },
      )
      const [, attempt] = await receiver.trace(traceId, 2)
      const attributes = attempt?.attributes ?? {}
      t.match(attributes['gen_ai.input.messages'], PROMPT, `${model} ${stream}`)
      t.match(attributes['gen_ai.system_instructions'], 'Be brief.')
      const [reply] = JSON.parse(String(attributes['gen_ai.output.messages'])) as {
        role: string
        finish_reason: string
        parts: { type: string; content: string }[]
      }[]
      t.match(reply, { role: 'assistant', finish_reason: 'stop' })
      const words = reply?.parts[0]?.content.split(' ') ?? []
      t.equal(words.length, 12)
      t.match(replied, words.at(-1) ?? 'no word', 'the text that the client received')
    }
  }
  const long = 'x'.repeat(300_000)
  const traceId = TRACE.replace(/..$/, '99')
  await ask(
    gateway,
    question({
      messages: [
        { role: 'user', content: long },
        { role: 'assistant', content: 'Yes.' },
        { role: 'user', content: PROMPT },
      ],
    }),
    { traceparent: PARENT.replace(TRACE, traceId) },
  )
  const [, attempt] = await receiver.trace(traceId, 2)
  const input = String(attempt?.attributes['gen_ai.input.messages'])
  t.ok(input.length < 70_000, `${input.length} characters`)
  t.match(input, PROMPT, 'the latest message is kept')
})

void t.test('failures of a receiver are counted and affect no request', async (t) => {
  const { gateway, receiver } = await startTraced(
    t,
    {},
    {
      OTEL_BSP_MAX_QUEUE_SIZE: '8',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4',
      OTEL_EXPORTER_OTLP_TIMEOUT: '2000',
    },
  )
  receiver.status = 400
  const replies = await Promise.all(
    Array.from({ length: 30 }, async () => (await gateway.chat(question())).status),
  )
  t.same(new Set(replies), new Set([200]))
  const count = async (result: string): Promise<number> => {
    const text = await gateway.metrics.text()
    const line = new RegExp(`sluice_trace_spans_total{result="${result}"} (\\d+)`).exec(text)
    return Number(line?.[1] ?? 0)
  }
  await until(() => gateway.lines.some(({ msg }) => String(msg).startsWith('traces are not exported')))
  await gateway.plane.drain()
  const [failed, dropped] = [await count('failed'), await count('dropped')]
  t.equal(failed + dropped, 60, `${failed} failed and ${dropped} dropped`)
  t.ok(dropped > 0, 'the queue is bounded')
  const warned = gateway.lines.filter(({ msg }) => String(msg).startsWith('traces are not exported'))
  t.equal(warned.length, 1, 'logged once')
  t.match(warned[0], { reason: 'status 400' })
})

void t.test('pending spans are exported when the gateway drains', async (t) => {
  const { gateway, receiver } = await startTraced(t, {}, { OTEL_BSP_SCHEDULE_DELAY: '60000' })
  await ask(gateway, question())
  t.same(receiver.spans, [])
  await gateway.plane.drain()
  t.equal(receiver.spans.length, 2)
})

void t.test('a receiver that never replies does not delay the drain', async (t) => {
  const silent = createServer(() => undefined)
  const port = await listen(t, silent)
  setEnv(t, { OTEL_EXPORTER_OTLP_ENDPOINT: undefined, OTEL_EXPORTER_OTLP_TIMEOUT: '500' })
  const gateway = await startGateway(t, {
    more: `telemetry: { otlp: 'http://127.0.0.1:${port}/' }`,
  })
  await ask(gateway, question())
  const beganMs = performance.now()
  await gateway.plane.drain()
  t.ok(performance.now() - beganMs < 15_000)
})

void t.test('native access is traced', async (t) => {
  const { gateway, receiver } = await startTraced(t, {
    upstreamOptions: `native: [ 'POST /v1/chat/completions' ]`,
  })
  const response = await fetch(`${gateway.origin}/native/openai/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.secret}`,
      'content-type': 'application/json',
      traceparent: PARENT,
    },
    body: JSON.stringify(question()),
  })
  t.equal(response.status, 200)
  await response.text()
  const [server, attempt] = await receiver.trace(TRACE, 2)
  t.match(server, { name: 'POST /native/openai', attributes: { 'http.route': '/native/openai' } })
  const traceparent = gateway.emulator.ledger.at(-1)?.headers['traceparent']
  t.equal(traceparent, `00-${TRACE}-${attempt?.spanId}-01`)
})

void t.test('each call of a guard server is a span', async (t) => {
  const guard = createServer((req, res) => {
    req.resume()
    res.end(JSON.stringify({ action: {} }))
  })
  const port = await listen(t, guard)
  const { gateway, receiver } = await startTraced(t, {
    more: `guardrails:
  topics: { url: 'http://127.0.0.1:${port}', protocol: webhook, apply_to: { all: true } }
  rules: { detect: [email], action: mask, apply_to: { all: true } }`,
  })
  await ask(gateway, question())
  const spans = await receiver.trace(TRACE, 4)
  const server = spans.find(({ kind }) => kind === 2)
  const guards = spans.filter(({ name }) => name.startsWith('guard '))
  t.same(
    guards.map(({ name, parentSpanId, attributes }) => [name, parentSpanId, attributes]),
    ['request', 'response'].map((on) => [
      'guard topics',
      server?.spanId,
      {
        'sluice.guardrail': 'topics',
        'sluice.guardrail.on': on,
        'sluice.guardrail.verdict': 'pass',
      },
    ]),
    'own rules make no call',
  )
  for (const { startMs, endMs } of guards) t.ok(startMs <= endMs)
  for (const { text } of receiver.requests) t.notMatch(text, /canary/)
})
