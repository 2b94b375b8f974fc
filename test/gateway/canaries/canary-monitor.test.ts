/**
 * Goal: the monitor adds up the counts of all processes over the window, aborts once at the rate, and starts
 * again with each generation.
 * Method: reports and a clock that the test passes.
 */
import t from 'tap'
import { CanaryMonitor } from '../../../src/gateway/canary/canary-monitor.js'
import { Metrics } from '../../../src/observe/metrics/metrics.js'
import { loadText } from '../../config/sample.js'

const LOADED = loadText(`
upstreams:
  a: { dialect: openai, base_url: https://a.example/v1 }
  b: { dialect: openai, base_url: https://b.example/v1 }
routes:
  - { prefix: x-, upstream: a }
  - prefix: m-
    targets:
      - { upstream: a, weight: 3 }
      - { upstream: b, weight: 1, abort: { error_rate: 0.1, min_requests: 20, window_seconds: 100 } }
`)

function started() {
  if (!LOADED.ok) throw new Error('the configuration is not good')
  const { config } = LOADED
  let nowMs = 1_000_000
  const warnings: string[] = []
  const monitor = new CanaryMonitor({
    log: { warn: (event) => void warnings.push(event) },
    metrics: new Metrics({ processMetrics: false }),
    now: () => nowMs,
  })
  monitor.adopt({ generation: 1, config, fileHash: 'a' })
  const report = (attempts: number, failures: number, generation = 1) =>
    monitor.report({ generation, counts: { '1.1': { attempts, failures } } })
  return { monitor, config, warnings, report, pass: (ms: number) => void (nowMs += ms) }
}

void t.test('reports of several processes are added up', (t) => {
  const { monitor, warnings, report } = started()
  t.equal(report(10, 1), null)
  t.equal(report(9, 1), null, 'nineteen requests')
  t.strictSame(report(1, 0), { generation: 1, aborted: ['1.1'] }, 'two of twenty')
  t.equal(report(5, 5), null, 'it is aborted already')
  t.equal(warnings.length, 1)
  t.match(monitor.states(), [{ id: '1.1', upstream: 'b', percent: 25, attempts: 20, failures: 2 }])
  t.equal(monitor.text, 'm- to b aborted: 2 of 20 requests failed')
  t.end()
})

void t.test('requests that ended before the window are not counted', (t) => {
  const { report, pass, monitor } = started()
  t.equal(report(19, 19), null)
  pass(120_000)
  t.equal(report(19, 1), null, 'nineteen in the window')
  t.equal(report(1, 0), null, 'one of twenty')
  t.match(monitor.states(), [{ attempts: 20, failures: 1, abortedAtMs: null }])
  t.not(report(10, 2), null, 'three of thirty')
  t.end()
})

void t.test('each generation resets the counts, and reports of another one are dropped', (t) => {
  const { monitor, config, report } = started()
  t.not(report(20, 20), null)
  monitor.adopt({ generation: 2, config, fileHash: 'b' })
  t.equal(monitor.text, 'ok')
  t.equal(report(20, 20, 1), null)
  t.match(monitor.states(), [{ attempts: 0, abortedAtMs: null }])
  t.strictSame(report(20, 20, 2), { generation: 2, aborted: ['1.1'] })
  t.end()
})

void t.test('a target that the configuration does not watch is passed over', (t) => {
  const { monitor } = started()
  t.equal(monitor.report({ generation: 1, counts: { '0.0': { attempts: 100, failures: 100 } } }), null)
  t.end()
})
