/**
 * Goal: every expression of the dashboard and the alerts works on the metrics that there are.
 * Method: names, labels and label values are checked against the code; then a real Prometheus scrapes a
 * real ops port with traffic on it, and is asked every expression.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { z } from 'zod'
import { ERRORS } from '../../src/errors.js'
import { ROW_KINDS } from '../../src/ledger/books.js'
import { DEFINITIONS, type MetricDefinition } from '../../src/observe/metrics/definitions.js'
import { Metrics } from '../../src/observe/metrics/hops.js'
import { openOps } from '../../src/process/ops-listener.js'
import { prometheusMissing, startPrometheus } from '../helpers/prometheus.js'

interface Expression {
  where: string
  text: string
  legend: string
}

const DASHBOARDS = join('grafana', 'dashboards')
const ALERTS = join('grafana', 'alerts.yaml')

const Dashboard = z.object({
  panels: z.array(
    z.object({
      title: z.string(),
      type: z.string(),
      gridPos: z.object({ h: z.number(), w: z.number(), x: z.number(), y: z.number() }),
      targets: z.array(z.object({ expr: z.string(), legendFormat: z.string() })).default([]),
    }),
  ),
})
const Alerts = z.object({
  groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string(), expr: z.string() })) })),
})

function panels(): z.infer<typeof Dashboard>['panels'] {
  return readdirSync(DASHBOARDS).flatMap((file) => {
    return Dashboard.parse(JSON.parse(readFileSync(join(DASHBOARDS, file), 'utf8'))).panels
  })
}

function dashboardExpressions(): Expression[] {
  return panels().flatMap(({ title, targets }) =>
    targets.map(({ expr, legendFormat }) => ({
      where: title,
      text: expr.replaceAll('$__rate_interval', '1m').replaceAll('$__range', '1m'),
      legend: legendFormat,
    })),
  )
}

function alertExpressions(): Expression[] {
  const { groups } = Alerts.parse(parse(readFileSync(ALERTS, 'utf8')))
  return groups.flatMap(({ rules }) =>
    rules.map(({ alert, expr }) => ({ where: alert, text: expr, legend: '' })),
  )
}

/** A little of everything that the gateway counts. */
function traffic(metrics: Metrics): void {
  for (const hop of ['authenticate', 'receive', 'connect', 'first_byte', 'relay'] as const) {
    metrics.hops[hop].observe(0.003)
  }
  metrics.overhead(0.0004)
  metrics.auth('ok')
  metrics.auth('unknown')
  metrics.loss('openai-chat', 'anthropic', 'seed')
  metrics.unrouted(401, 'unauthenticated')
  metrics.configLoaded(1)
  metrics.configReload('ok')
  metrics.storeOperation('findKey', 0.00003, true)
  metrics.tokensAfterDisconnect('anthropic', 3)
  metrics.cost('anthropic', 'claude-sonnet-4-5', 3_000_000)
  for (const kind of ROW_KINDS) metrics.usageRow(kind, 1)
  const target = metrics.target('claude-', 'anthropic')
  target.inflight(1)
  target.attempt('ok')
  target.attempt('upstream_failed')
  target.attempt('upstream_denied')
  target.finished(200, 'ok')
  target.finished(502, 'upstream_failed')
  for (const end of ['complete', 'truncated'] as const) target.streamEnd(end)
  target.chunkGap(0.02)
  target.backpressure('client', 0.1)
  target.reasoningDropped()
  metrics.escrow('hit')
  metrics.limited('requests')
  metrics.retry('anthropic', 'upstream_busy')
  metrics.fallback('anthropic', 'openai')
  metrics.hedge('openai', 'won')
  metrics.levels.upstreams([
    { name: 'anthropic', breaker: 2, resting: 1, retriesDenied: 1 },
  ])
  metrics.limitsLocal(true)
  target.served('claude-sonnet-5', 2, 0.4, { input: 200, output: 90 })
}

/** Collects garbage until the page says so; Node tells of it a moment later. */
async function collectGarbage(metrics: Metrics): Promise<void> {
  setFlagsFromString('--expose-gc')
  await until(async () => {
    runInNewContext('gc()')
    return (await metrics.text()).includes('nodejs_gc_duration_seconds_sum')
  })
}

/** Every metric of the page, lines of histograms included, with its labels. */
async function knownMetrics(): Promise<Map<string, Set<string>>> {
  const metrics = new Metrics()
  traffic(metrics)
  await collectGarbage(metrics)
  const known = new Map<string, Set<string>>([['up', new Set()]])
  const all: MetricDefinition[] = Object.values(DEFINITIONS)
  for (const { name, labels, type } of all) {
    const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
    for (const suffix of suffixes) known.set(name + suffix, new Set(labels))
  }
  for (const line of (await metrics.text()).split('\n')) {
    const found = /^([a-z][\w]*)(?:\{(.*)\})? /.exec(line)
    if (found === null) continue
    const labels = known.get(found[1] ?? '') ?? new Set()
    for (const [, label] of (found[2] ?? '').matchAll(/(\w+)="/g)) labels.add(label ?? '')
    known.set(found[1] ?? '', labels)
  }
  return known
}

/** PromQL's own words that the expressions use. */
const WORDS = new Set('sum max rate increase histogram_quantile by and or vector'.split(' '))
/** Labels that Prometheus adds by itself. */
const ADDED = ['job', 'instance']

/** The names in an expression: metrics, labels, and values that labels are compared with. */
function namesIn(text: string) {
  const labels = new Set<string>()
  const values: { label: string; value: string }[] = []
  const grouped = new Set<string>()
  const rest = text
    .replace(/\{([^}]*)\}/g, (_, matchers: string) => {
      for (const [, label = '', value = ''] of matchers.matchAll(/(\w+)\s*[!=]~?\s*"([^"]*)"/g)) {
        labels.add(label)
        for (const one of value.split('|')) values.push({ label, value: one })
      }
      return ''
    })
    .replace(/\bby \(([^)]*)\)/g, (_, list: string) => {
      for (const label of list.split(',')) grouped.add(label.trim())
      return ''
    })
    .replace(/\[[^\]]*\]/g, '')
  const metrics = [...rest.matchAll(/[a-z_]\w*/g)].map(([name]) => name)
  return { metrics: metrics.filter((name) => !WORDS.has(name)), labels, values, grouped }
}

void t.test('expressions name metrics, labels and values that exist', async (t) => {
  const known = await knownMetrics()
  const kinds = new Set(['ok', ...Object.keys(ERRORS)])
  const rowKinds = new Set<string>(ROW_KINDS)
  const closed: Record<string, Set<string>> = {
    kind: kinds,
    outcome: kinds,
    end: new Set([
      'complete',
      'truncated',
      'malformed',
      'upstream_timeout',
      'upstream_error',
      'client_gone',
      'client_stalled',
      'key_ended',
      'draining',
      'gateway_error',
    ]),
    result: new Set(['ok', 'refused']),
    gen_ai_token_type: new Set(['input', 'output']),
    le: new Set(DEFINITIONS.overhead.buckets?.map((bound) => String(bound))),
  }
  const all = [...dashboardExpressions(), ...alertExpressions()]
  t.ok(all.length > 50, `${all.length} expressions`)
  for (const { where, text, legend } of all) {
    const { metrics, labels, values, grouped } = namesIn(text)
    t.ok(metrics.length > 0, `${where}: names a metric`)
    const allowed = new Set(ADDED)
    for (const metric of metrics) {
      t.ok(known.has(metric), `${where}: ${metric}`)
      for (const label of known.get(metric) ?? []) allowed.add(label)
    }
    for (const label of [...labels, ...grouped]) t.ok(allowed.has(label), `${where}: ${label}`)
    for (const { label, value } of values) {
      const ofRows = label === 'kind' && metrics.includes(DEFINITIONS.usageRows.name)
      const set = ofRows ? rowKinds : closed[label]
      if (set !== undefined) t.ok(set.has(value), `${where}: ${label}="${value}"`)
    }
    for (const [, label = ''] of legend.matchAll(/\{\{(\w+)\}\}/g)) {
      t.ok(grouped.has(label), `${where}: the legend's ${label}`)
    }
  }
})

void t.test('every metric of the gateway is on the dashboard', (t) => {
  const text = readdirSync(DASHBOARDS)
    .map((file) => readFileSync(join(DASHBOARDS, file), 'utf8'))
    .join('')
  for (const { name } of Object.values(DEFINITIONS)) t.match(text, name)
  t.end()
})

void t.test('panels do not overlap', (t) => {
  const taken = new Set<string>()
  for (const { title, gridPos } of panels()) {
    t.ok(gridPos.x + gridPos.w <= 24, title)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        if (taken.has(`${x},${y}`)) t.fail(`${title} at ${x},${y}`)
        taken.add(`${x},${y}`)
      }
    }
  }
  t.end()
})

async function until(met: () => Promise<boolean>): Promise<void> {
  const giveUpAt = Date.now() + 60_000
  while (!(await met())) {
    if (Date.now() > giveUpAt) throw new Error(`never came true: ${met.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

void t.test(
  'a real Prometheus answers every expression',
  { skip: prometheusMissing() },
  async (t: Test) => {
    const metrics = new Metrics()
    const ops = await openOps({
      host: '127.0.0.1',
      port: 0,
      metrics: () => {
        traffic(metrics)
        return metrics.text()
      },
      ready: () => ({ ready: true, checks: {} }),
      config: () => ({}),
      workers: () => ({}),
    })
    t.teardown(() => ops.close())
    await collectGarbage(metrics)
    const prometheus = await startPrometheus(t, {
      scrapes: ops.port,
      ruleFiles: [join(process.cwd(), ALERTS)],
    })
    await until(async () => {
      const seen = await prometheus.query('count_over_time(sluice_config_generation[1m]) >= 3')
      return seen.length > 0
    })
    for (const { where, text } of dashboardExpressions()) {
      t.not((await prometheus.query(text)).length, 0, `${where}: ${text}`)
    }
    for (const { text } of alertExpressions()) await prometheus.query(text)
    await until(async () => (await prometheus.rules()).every(({ health }) => health !== 'unknown'))
    const rules = await prometheus.rules()
    t.equal(rules.length, alertExpressions().length)
    for (const { name, health, lastError } of rules)
      t.equal(health, 'ok', `${name} ${lastError ?? ''}`)
    const burning = alertExpressions().filter(({ where }) => /BurnsFast|UpstreamFails/.test(where))
    for (const { where, text } of burning) {
      t.not((await prometheus.query(text)).length, 0, `${where}: half of this traffic fails`)
    }
  },
)
