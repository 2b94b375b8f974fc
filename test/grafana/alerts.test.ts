/**
 * Goal: the rule files and the configuration of Prometheus are valid at their paths, and each alert fires
 * under its condition only.
 * Method: promtool, with the unit tests of `grafana/*.test.yaml`.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { z } from 'zod'
import { prometheusMissing } from '../helpers/prometheus.js'
import { ALERTS, alerts } from './boards.js'

const TESTS = ['grafana/alerts.test.yaml', 'grafana/alerts-slow.test.yaml']

const Tests = z.object({
  tests: z.array(
    z.object({
      name: z.string(),
      alert_rule_test: z.array(
        z.object({ alertname: z.string(), exp_alerts: z.array(z.unknown()).default([]) }),
      ),
    }),
  ),
})

function promtool(...args: readonly string[]): { status: number | null; text: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' })
  return { status, text: `${stdout}${stderr}` }
}

void t.test(
  'promtool accepts the rules and the configuration',
  { skip: prometheusMissing() },
  (t) => {
    for (const args of [
      ['check', 'rules', ALERTS],
      ['check', 'config', 'grafana/prometheus.yaml'],
      ['test', 'rules', ...TESTS],
    ]) {
      const { status, text } = promtool(...args)
      t.equal(status, 0, `promtool ${args.join(' ')}: ${text}`)
      t.notMatch(text, /FAILED|warning/i, args.join(' '))
    }
    t.end()
  },
)

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
