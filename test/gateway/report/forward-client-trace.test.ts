/**
 * Goal: without a receiver the SDK of OpenTelemetry is not loaded, and the client's trace context reaches the
 * upstream unchanged.
 * Method: a gateway in this process, whose loaded modules are listed; valid and invalid headers.
 */
import { createRequire } from 'node:module'
import t from 'tap'
import { startGateway } from '../../helpers/gateway.js'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`

const PASSED: Readonly<Record<string, { tracestate?: string; traceparent: string }>> = {
  'both headers': { traceparent: PARENT, tracestate: 'vendor=1,other=2' },
  'without a state': { traceparent: PARENT },
  'a later version with more fields': { traceparent: `01-${TRACE}-b7ad6b7169203331-01-more` },
}

const REFUSED: Readonly<Record<string, string>> = {
  'a trace id of zeros': `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
  'a span id of zeros': `00-${TRACE}-${'0'.repeat(16)}-01`,
  'a version that is forbidden': `ff-${TRACE}-b7ad6b7169203331-01`,
  'upper case': PARENT.toUpperCase(),
  'too short': '00-1-2-01',
  'a megabyte is no header': 'x'.repeat(8_000),
}

const QUESTION = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi.' }] }

void t.test("the client's trace context is forwarded and logged", async (t) => {
  for (const name of ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']) {
    Reflect.deleteProperty(process.env, name)
  }
  const gateway = await startGateway(t)
  for (const [name, headers] of Object.entries(PASSED)) {
    await (await gateway.chat(QUESTION, { headers })).text()
    const { traceparent, tracestate } = gateway.emulator.ledger.at(-1)?.headers ?? {}
    t.equal(traceparent, headers.traceparent, name)
    t.equal(tracestate, headers.tracestate, name)
    t.equal(gateway.lines.at(-1)?.['trace_id'], TRACE, name)
  }
  for (const [name, traceparent] of Object.entries(REFUSED)) {
    const headers = { traceparent, tracestate: 'vendor=1' }
    const response = await gateway.chat(QUESTION, { headers })
    await response.text()
    t.equal(response.status, 200, name)
    const sent = gateway.emulator.ledger.at(-1)?.headers ?? {}
    t.equal(sent['traceparent'], undefined, name)
    t.equal(sent['tracestate'], undefined, name)
    t.equal(gateway.lines.at(-1)?.['trace_id'], undefined, name)
  }
})

void t.test('the SDK of OpenTelemetry is not loaded', (t) => {
  const loaded = Object.keys(createRequire(import.meta.url).cache)
  t.ok(loaded.length > 0, 'the list contains modules')
  // prom-client loads the API package, which has no effect without the SDK.
  t.same(
    loaded.filter((path) => /@opentelemetry\/(?!api\/)/.test(path)),
    [],
  )
  t.end()
})

void t.test('the standard variables turn traces off', async (t) => {
  const switches = [{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }]
  for (const variables of switches) {
    Object.assign(process.env, variables, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' })
    const gateway = await startGateway(t)
    await (await gateway.chat(QUESTION, { headers: { traceparent: PARENT } })).text()
    t.equal(gateway.emulator.ledger.at(-1)?.headers['traceparent'], PARENT)
    for (const name of [...Object.keys(variables), 'OTEL_EXPORTER_OTLP_ENDPOINT']) {
      Reflect.deleteProperty(process.env, name)
    }
  }
})
