/**
 * Goal: no traffic creates more than 1,500 series, with any names.
 * Method: random values in every label that a caller can set; then the lines are counted.
 */
import t from 'tap'
import { fieldLabel, Metrics } from '../../src/observe/metrics/metrics.js'
import { MAX_LINES, MetricSet } from '../../src/observe/metrics/capped-registry.js'

function series(text: string): string[] {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

function valueOf(text: string, start: string): number {
  const line = series(text).find((one) => one.startsWith(start))
  return Number(line?.slice(line.lastIndexOf(' ') + 1) ?? NaN)
}

function junk(): string {
  const codes = Array.from({ length: 1 + Math.floor(Math.random() * 12) }, () =>
    Math.floor(Math.random() * 0x250),
  )
  return String.fromCharCode(...codes)
}

void t.test('random values in every label stay below the cap and are counted', async (t) => {
  const metrics = new Metrics()
  for (let round = 0; round < 20_000; round += 1) {
    const target = metrics.target(junk(), junk())
    target.inflight(1)
    target.attempt('upstream_failed')
    target.finished(100 + Math.floor(Math.random() * 500), 'bug')
    target.streamEnd('truncated')
    target.chunkGap(Math.random())
    target.served(junk(), { seconds: 1, ttftSeconds: 0.5, usage: { input: 3, output: 5 } })
    metrics.loss(junk(), junk(), `${junk()}.${junk()}`)
    metrics.storeOperation(junk(), 1e-5, true)
    metrics.tokensAfterDisconnect(junk(), 3)
    metrics.unrouted(Math.floor(Math.random() * 1e6), 'malformed_request')
  }
  const text = await metrics.text()
  const count = series(text).length
  t.ok(count <= 1500, `${count} series`)
  t.ok(count - MAX_LINES <= 160, "Node's own metrics keep to their share")
  t.ok(valueOf(text, 'sluice_series_dropped_total') > 1000)
})

void t.test('unknown models and fields add no series', async (t) => {
  const metrics = new Metrics({ processMetrics: false })
  const target = metrics.target('route', 'upstream')
  target.served('other', { seconds: 1, ttftSeconds: 0.5, usage: { input: 3, output: 5 } })
  metrics.loss('openai-chat', 'anthropic', 'zzz')
  const before = series(await metrics.text()).length
  for (let round = 0; round < 5000; round += 1) {
    target.served('other', { seconds: 1, ttftSeconds: 0.5, usage: { input: 3, output: 5 } })
    metrics.loss('openai-chat', 'anthropic', `x_${junk()}[${round}].y${round}`)
  }
  t.equal(series(await metrics.text()).length, before)
})

void t.test('the ninth model of a process shares a series, and nothing is lost', async (t) => {
  const metrics = new Metrics({ processMetrics: false })
  const target = metrics.target('route', 'upstream')
  for (let index = 0; index < 30; index += 1) {
    target.served(`model-${index}`, {
      seconds: 1,
      ttftSeconds: null,
      usage: { input: 100, output: 10 },
    })
  }
  const text = await metrics.text()
  const counts = series(text).filter((line) =>
    line.startsWith('gen_ai_server_request_duration_seconds_count'),
  )
  t.equal(counts.length, 9)
  t.match(counts.join('\n'), 'gen_ai_request_model="other"} 22')
})

void t.test('a full metric folds into `other` where it has a label for that', async (t) => {
  const set = new MetricSet()
  const common = { help: 'h', labels: ['op'], maxLines: 2 }
  const folding = set.counter({ name: 'folding_total', fold: 'op', ...common })
  const strict = set.counter({ name: 'strict_total', ...common })
  set.droppedSeries({ name: 'dropped_total', help: 'h', labels: [], maxLines: 1 })
  for (const family of [folding, strict]) {
    for (const op of ['a', 'b', 'c', 'd']) family.child(op).add()
  }
  t.strictSame(series(await set.registry.metrics()), [
    'folding_total{op="a"} 1',
    'folding_total{op="b"} 1',
    'folding_total{op="other"} 2',
    'strict_total{op="a"} 1',
    'strict_total{op="b"} 1',
    'dropped_total 4',
  ])
})

void t.test('field labels come from known names only', (t) => {
  t.equal(fieldLabel('messages[3].content[0].detail'), 'messages.content.detail')
  t.equal(fieldLabel('response_format.json_schema.strict'), 'response_format.json_schema.strict')
  t.equal(fieldLabel('seed'), 'seed')
  t.equal(fieldLabel('zzz'), 'other')
  t.equal(fieldLabel('metadata.customer_4711'), 'metadata.other')
  t.equal(fieldLabel('tools[0].a.b.c.d.e.f'), 'tools.other.other.other')
  t.equal(fieldLabel(''), 'other')
  t.equal(fieldLabel('[0]'), 'other')
  t.end()
})
