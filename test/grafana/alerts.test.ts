/**
 * Goal: the rule files and the configuration of Prometheus are valid at their paths, and each alert fires
 * under its condition only.
 * Method: promtool, with the unit tests of `grafana/*.test.yaml`, and with series of a day and a week.
 * SLUICE_LONG=1 evaluates all rules in each unit test, and the short windows over the whole week; otherwise
 * each day has a quarter of the unit tests and one of the four simulations.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import * as z from 'zod'
import { prometheusMissing } from '../helpers/prometheus.js'
import { ALERTS, alerts } from './boards.js'
import { simulatedWeek, STEP, type InputSeries } from './week.js'
import { IS_LONG, isToday, ofToday } from '../helpers/long-suite.js'

const TESTS = ['grafana/alerts.test.yaml', 'grafana/alerts-slow.test.yaml', 'grafana/alerts-times.test.yaml']

const Tests = z.looseObject({
  tests: z.array(
    z.looseObject({
      name: z.string(),
      alert_rule_test: z
        .array(z.looseObject({ alertname: z.string(), exp_alerts: z.array(z.unknown()).default([]) }))
        .default([]),
      promql_expr_test: z.array(z.unknown()).optional(),
    }),
  ),
})

const Rules = z.object({
  groups: z.array(
    z.object({
      name: z.string(),
      rules: z.array(z.looseObject({ alert: z.string(), labels: z.object({ severity: z.string() }) })),
    }),
  ),
})

type RuleGroups = z.infer<typeof Rules>['groups']

function ruleGroups(): RuleGroups {
  return Rules.parse(parse(readFileSync(ALERTS, 'utf8'))).groups
}

function promtool(...args: readonly string[]): { status: number | null; text: string } {
  // Less garbage collection: a fifth of its CPU time.
  const env = { ...process.env, GOGC: '400' }
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8', env })
  return { status, text: `${stdout}${stderr}` }
}

/**
 * The unit tests, each in a file of its own with the rules that it names. promtool evaluates every rule at
 * each step of a test and looks only at the named alerts: the others are nine tenths of the CPU time.
 */
function testsByRule(t: Test): string[] {
  const folder = t.testdir()
  const groups = ruleGroups()
  return TESTS.flatMap((path, at) => {
    const { tests, ...settings } = Tests.parse(parse(readFileSync(path, 'utf8')))
    // Expressions look at the alerts of all rules.
    if (tests.some(({ promql_expr_test: expressions }) => expressions !== undefined)) return path
    return tests.map((test, index) => {
      const named = new Set(test.alert_rule_test.map(({ alertname }) => alertname))
      const own = groups.map(({ name, rules }) => {
        return { name, rules: rules.filter(({ alert }) => named.has(alert)) }
      })
      const ruleFile = `${String(at)}-${String(index)}-rules.json`
      const file = join(folder, `${String(at)}-${String(index)}-test.json`)
      writeFileSync(join(folder, ruleFile), JSON.stringify({ groups: own }))
      writeFileSync(file, JSON.stringify({ ...settings, rule_files: [ruleFile], tests: [test] }))
      return file
    })
  })
}

void t.test('promtool accepts the rules and the configuration', { skip: prometheusMissing() }, (t) => {
  for (const args of [
    ['check', 'rules', ALERTS],
    ['check', 'config', 'grafana/prometheus.yaml'],
    ['test', 'rules', ...(IS_LONG ? TESTS : ofToday(testsByRule(t), 4))],
  ]) {
    const { status, text } = promtool(...args)
    t.equal(status, 0, `promtool ${args.join(' ')}: ${text}`)
    t.notMatch(text, /FAILED|warning/i, args.join(' '))
  }
  t.end()
})

/** The simulations take 20 s of CPU time, and a minute more with SLUICE_LONG=1. */
t.setTimeout(600_000)

void t.test('each alert has a test in which it fires and one in which it does not', (t) => {
  const all = TESTS.flatMap((file) => Tests.parse(parse(readFileSync(file, 'utf8'))).tests).flatMap(
    (test) => test.alert_rule_test,
  )
  for (const { alert } of alerts()) {
    const own = all.filter(({ alertname }) => alertname === alert)
    t.ok(
      own.some(({ exp_alerts: expected }) => expected.length > 0),
      `${alert} fires`,
    )
    t.ok(
      own.some(({ exp_alerts: expected }) => expected.length === 0),
      `${alert} does not fire`,
    )
  }
  const known = new Set(alerts().map(({ alert }) => alert))
  for (const { alertname } of all) t.ok(known.has(alertname), alertname)
  t.end()
})

/** An expression at the end of a simulation, and its samples. */
interface Expected {
  readonly expr: string
  readonly at: string
  readonly values: readonly number[]
}

/** Series, and the groups of rules that are evaluated over them. */
interface Simulation {
  readonly groups: RegExp
  /** Seconds between two samples. */
  readonly step: number
  /** Seconds between two evaluations. */
  readonly every: number
  readonly series: readonly InputSeries[]
  readonly expected: readonly Expected[]
}

/**
 * Evaluates the rules of the groups that page; returns the message of promtool if a result is not as
 * expected.
 */
function simulate(t: Test, { groups, step, every, series, expected }: Simulation): string {
  const paging = ruleGroups().flatMap(({ name, rules }) => {
    const pages = rules.filter(({ labels }) => labels.severity === 'page')
    return groups.test(name) ? { name, rules: pages } : []
  })
  const folder = t.testdir({ 'alerts.yaml': JSON.stringify({ groups: paging }) })
  const test = {
    interval: `${step}s`,
    input_series: series,
    promql_expr_test: expected.map(({ expr, at, values }) => ({
      expr,
      eval_time: at,
      exp_samples: values.map((value) => ({ labels: '{}', value })),
    })),
  }
  const file = join(folder, 'simulation.test.yaml')
  const run = { rule_files: ['alerts.yaml'], evaluation_interval: `${every}s`, tests: [test] }
  writeFileSync(file, JSON.stringify(run))
  const { status, text } = promtool('test', 'rules', file)
  return status === 0 ? '' : text.slice(0, 2_000)
}

const PAGES = 'ALERTS{severity="page", alertstate="firing"}'

/** No page in the whole time. */
function silent(days: number): Expected {
  return { expr: `count(count_over_time(${PAGES}[${days}d]))`, at: `${days}d`, values: [] }
}

/**
 * Fewer evaluations than in operation, which would take minutes: no condition holds for less than the 45 s of
 * its window, and burn rates have windows of five minutes and more.
 */
const FAST = { groups: /upstreams|store|gateway/, step: STEP, every: 2 * STEP }
/** Of a day and of the week, with the rules of each. */
const SIMULATIONS = 4
const SLOW = { groups: /objectives/, step: 8 * STEP, every: 8 * STEP }

void t.test('one error is silent for a day', { skip: prometheusMissing() }, (t) => {
  for (const [index, { groups, step, every }] of [FAST, SLOW].entries()) {
    if (!isToday(index, SIMULATIONS)) continue
    const once = (series: string, after: number): InputSeries => {
      return { series, values: `0x40 ${after}x5760` }
    }
    const series = [
      { series: 'up{job="sluice",instance="a"}', values: '1x5800' },
      once('sluice_store_errors_total{instance="a",op="find_key"}', 1),
      once('sluice_requests_total{instance="a",status="200",outcome="ok"}', 2),
      once('sluice_requests_total{instance="a",status="502",outcome="upstream_failed"}', 1),
      once('sluice_attempts_total{instance="a",upstream="openai",kind="ok"}', 2),
      once('sluice_attempts_total{instance="a",upstream="openai",kind="upstream_failed"}', 1),
      once('sluice_stream_ends_total{instance="a",upstream="openai",end="complete"}', 2),
      once('sluice_stream_ends_total{instance="a",upstream="openai",end="truncated"}', 1),
    ]
    t.equal(simulate(t, { groups, step, every, series, expected: [silent(1)] }), '')
  }
  t.end()
})

void t.test(
  'a week with deploys, single errors, a failover and a slow hour has no page',
  { skip: prometheusMissing() },
  (t) => {
    const week = simulatedWeek()
    const ofRequests = /^(?:sluice_requests|sluice_stream_ends|gen_ai)/
    const slow = { ...SLOW, series: week.series(ofRequests, 0, 8), expected: [silent(7)] }
    if (isToday(2, SIMULATIONS)) t.equal(simulate(t, slow), '')
    // One provider: its rules do not depend on others, and half of the series take half of the time.
    const ofParts = /^(?:up|sluice_store|sluice_(?:attempts|breaker).*openai)/
    const down = 'ALERTS{alertname="SluiceUpstreamDown", alertstate="firing"}'
    // These rules look back 15 minutes at most: the last day has all that happens in the week.
    const days = IS_LONG ? 7 : 1
    const expected = [
      silent(days),
      // After it a provider fails, so that the silence is that of rules which work on these series.
      { expr: `count(${down})`, at: `${days * 86_400 + 90}s`, values: [1] },
    ]
    const fast = { ...FAST, series: week.series(ofParts, 7 - days, 1), expected }
    if (isToday(3, SIMULATIONS)) t.equal(simulate(t, fast), '')
    t.end()
  },
)
