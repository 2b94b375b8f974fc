/**
 * Goal: the log line of a slow request shows the slow hop and the upstream.
 * Method: a gateway whose upstreams fail or wait; the largest time in the line must be that of the cause.
 */
import t from 'tap'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { until } from '../../helpers/upstream.js'

/** The fields of a line that are parts of `duration_ms`. */
const PARTS = [
  'overhead_ms',
  'receive_ms',
  'back_off_ms',
  'connect_ms',
  'first_byte_ms',
  'reply_ms',
  'relay_ms',
] as const

const WAIT_MS = 1500

type Line = Record<string, unknown>

async function lineOf(gateway: TestGateway, body: object): Promise<Line> {
  const response = await gateway.chat(body)
  await response.text()
  const id = response.headers.get('x-request-id')
  const find = (): Line | undefined =>
    gateway.lines.find((line) => line['msg'] === 'exchange' && line['request_id'] === id)
  await until(() => find() !== undefined)
  return find() ?? {}
}

function slowest(line: Line): string {
  const [first] = [...PARTS].sort((a, b) => Number(line[b] ?? 0) - Number(line[a] ?? 0))
  return first ?? ''
}

function question(prompt: string, more: object = {}): object {
  return { model: 'gpt-4o', messages: [{ role: 'user', content: prompt }], ...more }
}

void t.test('the upstream that replies late', async (t) => {
  const gateway = await startGateway(t)
  const prompt = `[[fault: delay ms=${WAIT_MS} mode=headers]] Hi.`
  const line = await lineOf(gateway, question(prompt))
  t.match(line, { outcome: 'ok', upstream: 'openai', attempts: 1 })
  t.equal(slowest(line), 'first_byte_ms')
  t.ok(Number(line['first_byte_ms']) >= WAIT_MS)
})

void t.test('the upstream whose first content is late', async (t) => {
  const gateway = await startGateway(t)
  const prompt = `[[fault: delay ms=${WAIT_MS} mode=first]] Hi.`
  const line = await lineOf(gateway, question(prompt, { stream: true }))
  t.match(line, { outcome: 'ok', upstream: 'openai' })
  const waited = Number(line['first_byte_ms']) + Number(line['reply_ms']) + Number(line['relay_ms'])
  t.ok(waited >= WAIT_MS, "the time is the upstream's")
  t.ok(Number(line['first_token_ms']) >= WAIT_MS, 'also if the head was sent before')
})

void t.test('the wait before a retry, and the upstream that caused it', async (t) => {
  const routes = `  - model: fragile
    targets: [{ upstream: openai, model: gpt-4o }]
    fallback: [{ upstream: anthropic, model: claude-sonnet-4-5 }]
    retry: { attempts: 2, max_wait_ms: 5000 }
`
  const gateway = await startGateway(t, { routes })
  gateway.emulator.script({
    times: 2,
    fault: { kind: 'status', code: 503, 'retry-after': '2' },
  })
  const line = await lineOf(gateway, { ...question('Hi.'), model: 'fragile' })
  t.match(line, {
    outcome: 'ok',
    attempts: 3,
    attempted: 'openai:upstream_busy, openai:upstream_busy, anthropic:ok',
    upstream: 'anthropic',
  })
  t.equal(slowest(line), 'back_off_ms')
  if (process.env['SLUICE_SHOW_LINES'] !== undefined) t.comment('retry', JSON.stringify(line))
})

void t.test('the parts of a line add up to its duration', async (t) => {
  const gateway = await startGateway(t)
  for (const more of [{}, { stream: true }]) {
    // While the process waits for a core, its phases overlap: the closest of a few requests counts.
    let differenceMs = Infinity
    for (let tries = 0; tries < 5 && differenceMs > 5; tries += 1) {
      const line = await lineOf(gateway, question('[[words: 40]] [[pace: 10]] Hi.', more))
      const sum = PARTS.reduce((total, part) => total + Number(line[part] ?? 0), 0)
      differenceMs = Math.min(differenceMs, Math.abs(sum - Number(line['duration_ms'])))
    }
    t.ok(differenceMs <= 5, `${differenceMs} ms apart`)
  }
})
