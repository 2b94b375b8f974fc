/**
 * Goal: no traffic creates more than 1,500 series, with any names.
 * Method: random values in every label that a caller can set; then the lines are counted.
 */
import t from 'tap'
import { fieldLabel } from '../../src/observe/metrics/loss-labels.js'
import { Metrics } from '../../src/observe/metrics/metrics.js'
import { MetricSet } from '../../src/observe/metrics/capped-registry.js'

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
  const sum = (name: string): number =>
    series(text)
      .filter((line) => line.startsWith(`${name}{`))
      .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
  for (const [name, times] of [
    ['sluice_requests_total', 2],
    ['sluice_attempts_total', 1],
    ['sluice_stream_ends_total', 1],
    ['sluice_translation_losses_total', 1],
    ['sluice_store_errors_total', 1],
    ['sluice_tokens_after_disconnect_total', 3],
    ['sluice_chunk_gap_seconds_count', 1],
    ['gen_ai_server_request_duration_seconds_count', 1],
  ] as const) {
    t.equal(sum(name), 20_000 * times, `${name}: no event is missing`)
  }
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

void t.test('a full metric counts further values as `other`', async (t) => {
  const set = new MetricSet()
  const common = { help: 'h', labels: ['upstream', 'kind'], maxLines: 2 }
  const folding = set.counter({ name: 'folding_total', fold: ['upstream'], ...common })
  const whole = set.counter({ name: 'whole_total', ...common })
  set.droppedSeries({ name: 'dropped_total', help: 'h', labels: [], maxLines: 1 })
  for (const family of [folding, whole]) {
    for (const upstream of ['a', 'b', 'c', 'd']) family.child(upstream, 'k').add()
  }
  t.strictSame(series(await set.registry.metrics()), [
    'folding_total{upstream="a",kind="k"} 1',
    'folding_total{upstream="b",kind="k"} 1',
    'folding_total{upstream="other",kind="k"} 2',
    'whole_total{upstream="a",kind="k"} 1',
    'whole_total{upstream="b",kind="k"} 1',
    'whole_total{upstream="other",kind="other"} 2',
    'dropped_total 4',
  ])
})

void t.test('a cap grows with the names of the configuration', async (t) => {
  const set = new MetricSet()
  const family = set.counter({
    ...{ name: 'a_total', help: 'h', labels: ['upstream', 'kind'], maxLines: 1 },
    ...{ perName: { upstream: 2 }, fold: ['upstream'] },
  })
  set.caps.add('upstream', ['a', 'b'])
  set.caps.add('upstream', ['b', 'c'])
  for (const upstream of ['none', 'a', 'b', 'c', 'd']) {
    for (const kind of ['k', 'l']) if (upstream !== 'none' || kind === 'k') family.child(upstream, kind).add()
  }
  const lines = series(await set.registry.metrics())
  t.equal(lines.length, 9)
  t.match(lines.slice(-2), ['a_total{upstream="other",kind="k"} 1', 'a_total{upstream="other",kind="l"} 1'])
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
