/**
 * Goal: the boards and the rules work with the metrics that a gateway exports: every expression returns data,
 * and the faults of the traffic are visible.
 * Method: a gateway in a process of its own with faulty upstreams, a real Prometheus that scrapes it, all
 * expressions.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { prometheusMissing, startPrometheus, type Prometheus } from '../helpers/prometheus.js'
import { get } from '../process/program.js'
import {
  ALERTS,
  alerts,
  annotationExpressions,
  interpolated,
  operandsOf,
  panelExpressions,
  type Expression,
} from './boards.js'
import { startScene, type Scene } from './scene.js'

/** Panels without a value above 0, because the scene has no such event. */
const QUIET = [
  'Gateway internals: Age of the oldest entry that waits for the archive',
  'Gateway internals: Circuit breakers of guardrails',
  'Gateway internals: Entries that wait for the archive',
  'Gateway internals: Errors of plugins',
  'Gateway internals: Gateways with another configuration',
  'Gateway internals: Ledger entries lost',
  'Gateway internals: Ledger entries waiting or lost',
  'Gateway internals: Metric series dropped',
  'Gateway internals: Processes that enforce limits without the store',
  'Gateway internals: Size of the stored replies',
  'Gateway internals: Stored replies',
  'Gateway internals: Telemetry of programs',
  'Gateway internals: Verdicts of guardrails',
  'Gateway internals: Webhooks',
  'Gateway internals: Workers replaced',
  'Providers: Lines of batches',
  'Providers: Open batches',
  'Providers: Polls of batches',
  'Providers: Replies from the exact cache',
]

/** Panels of durations without a series, because the scene has no such event: they are empty, not 0. */
const EMPTY = [
  'Gateway internals: Duration of guardrails, p95',
  'Gateway internals: Duration of requests to the archive (p95)',
  'Gateway internals: Entries moved to the archive',
  'Gateway internals: Room for entries that wait for the archive',
  'Providers: Cloud credentials expire in',
  'SluiceArchiveWaitingFull',
  'SluiceLedgerMemoryFilling',
]

/** Panels whose values depend on the timing of the machine. */
const EITHER = [
  'Providers: Aborted canaries',
  'Providers: Dropped copies',
  'Providers: Failed refreshes of cloud credentials',
  'Providers: Identities that cannot be refreshed',
  'Gateway internals: Ledger entries leave Redis in',
  'Gateway internals: Log lines lost',
  'Gateway internals: Memory of Redis for ledger entries',
  'Gateway internals: Overload level',
  'Gateway internals: Store errors',
  'Overview: Requests refused because of overload',
  'Providers: Paused API keys of upstreams',
  "Providers: Prompt tokens read from the provider's cache",
  'Providers: Requests in progress',
  'Providers: Requests sent again without earlier reasoning',
  'Providers: Units by kind',
  'Overview: Requests in progress',
  'Streams: Reasoning state by result',
  'Streams: Streams and replies in progress',
  'Streams: Time blocked by slow clients',
  'Streams: Tokens generated after the client left',
]

const INTERVAL = '2m'

async function until(met: () => Promise<boolean>, what: string, ms = 120_000): Promise<void> {
  const giveUpAt = Date.now() + ms
  while (!(await met())) {
    if (Date.now() > giveUpAt) throw new Error(`not within ${ms} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

/** Sends traffic until Prometheus has scraped it at least four times. */
async function play(scene: Scene, prometheus: Prometheus): Promise<void> {
  await until(async () => {
    return (await prometheus.query('sluice_config_generation')).length > 0
  }, 'a first scrape')
  await scene.round()
  await scene.reload()
  for (let round = 0; round < 5; round += 1) await scene.round()
  const end = Math.ceil(Date.now() / 1000)
  await until(async () => {
    await scene.round()
    await new Promise((resolve) => setTimeout(resolve, 500))
    const seen = await prometheus.query(`min(timestamp(sluice_requests_total)) > ${end + 3}`)
    return seen.length > 0
  }, 'scrapes after the traffic')
}

function titleOf(where: string): string {
  return where.replace(/^Sluice \/ /, '')
}

/** Whether any sample of a query is a number other than 0. */
function isLoud(samples: readonly unknown[]): boolean {
  return samples.some((sample) => {
    const { value } = sample as { value: [number, string] }
    return Number.isFinite(Number(value[1])) && Number(value[1]) !== 0
  })
}

async function asked(
  t: Test,
  prometheus: Prometheus,
  expressions: readonly Expression[],
): Promise<Map<string, boolean>> {
  const loud = new Map<string, boolean>()
  for (const { where, text } of expressions) {
    const samples = await prometheus.query(interpolated(text, INTERVAL))
    const isEmpty = EMPTY.includes(titleOf(where))
    t.equal(samples.length === 0, isEmpty, `${where}: ${text}`)
    if (isEmpty) continue
    loud.set(titleOf(where), isLoud(samples) || loud.get(titleOf(where)) === true)
  }
  return loud
}

void t.test('boards and rules on live data', { skip: prometheusMissing() }, async (t) => {
  const scene = await startScene(t)
  const prometheus = await startPrometheus(t, {
    scrapes: scene.opsPort,
    ruleFiles: [join(process.cwd(), ALERTS)],
  })
  await play(scene, prometheus)

  await t.test('every panel returns data and shows the faults', async (t) => {
    const loud = await asked(t, prometheus, panelExpressions())
    const quiet = [...loud].flatMap(([title, is]) => (is || EITHER.includes(title) ? [] : [title]))
    t.same(quiet.sort(), QUIET)
  })

  await t.test('every annotation returns data', async (t) => {
    // Reloads are shown for a minute only; here they count at any time.
    for (const { where, text } of annotationExpressions()) {
      const wide = interpolated(text, INTERVAL).replaceAll('[1m]', '[1h]')
      t.not((await prometheus.query(wide)).length, 0, `${where}: ${wide}`)
    }
  })

  await t.test('every rule is healthy, and its expressions return data', async (t) => {
    await asked(
      t,
      prometheus,
      alerts()
        .flatMap(operandsOf)
        .filter(({ text }) => !text.startsWith('absent')),
    )
    const isEvaluated = async (): Promise<boolean> =>
      (await prometheus.rules()).every(({ health }) => health !== 'unknown')
    await until(isEvaluated, 'all rules evaluated')
    const rules = await prometheus.rules()
    t.equal(rules.length, alerts().length)
    for (const { name, health, lastError } of rules) {
      t.equal(health, 'ok', `${name} ${lastError ?? ''}`)
    }
    for (const name of ['SluiceAvailabilityBurnFast', 'SluiceUpstreamDown', 'SluiceReloadFailing']) {
      const expr = alerts().find(({ alert }) => alert === name)?.expr ?? ''
      t.not((await prometheus.query(expr)).length, 0, `${name}: this traffic is bad enough`)
    }
  })

  await t.test('exemplars lead to exported traces', async (t) => {
    for (const metric of [
      'gen_ai_server_request_duration_seconds_bucket',
      'gen_ai_server_time_to_first_token_seconds_bucket',
      'sluice_overhead_seconds_bucket',
    ]) {
      const ids = await prometheus.traceIds(metric)
      t.ok(ids.length > 0, metric)
      const isExported = (): boolean =>
        ids.some((id) => scene.traces.spans.some(({ traceId }) => traceId === id))
      await until(() => Promise.resolve(isExported()), `a trace of ${metric}`)
    }
  })

  await t.test('promtool finds nothing in the exported metrics', async (t) => {
    const { text } = await get(`http://127.0.0.1:${scene.opsPort}/metrics`)
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input: text,
      encoding: 'utf8',
    })
    t.equal(status, 0, `${stdout}${stderr}`)
    t.equal(`${stdout}${stderr}`.trim(), '')
  })
})
