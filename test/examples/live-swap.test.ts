/**
 * Goal: the demo of a swap under load works: the plan lists the requests that move, the graph shows both
 * upstreams, the rollback brings the first one back, and no stream fails.
 * Method: the demo itself with short phases, and a real Prometheus; every third day, and in the long suite.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { anotherDay } from '../helpers/long-suite.js'
import { prometheusMissing } from '../helpers/prometheus.js'

const missing = prometheusMissing()
const skip = anotherDay(2, 3) || missing
const options = { timeout: 170_000, skip }

void t.test('a provider is swapped under load and back', options, async (t) => {
  const env = { ...process.env, SLUICE_MAIN: 'dist/main.js', SECONDS_PER_PHASE: '8' }
  const { stdout } = await promisify(execFile)(process.execPath, ['examples/live-swap/demo.mjs'], {
    env,
  })
  t.match(stdout, /claude-sonnet-5-5: anthropic claude-sonnet-5-5 -> openai gpt-5\.4, \d+ requests/)
  t.match(stdout, /^Nothing breaks\.$/m)
  const graphs = stdout.split('Requests per second by upstream').slice(1)
  t.equal(graphs.length, 2)
  for (const graph of graphs) {
    t.match(graph, /^anthropic .*[▁▂▃▄▅▆▇█]/m)
    t.match(graph, /^openai .*[▁▂▃▄▅▆▇█]/m)
  }
  t.match(stdout, 'generation 3 is in force, with the content of generation 1')
  t.match(stdout, /^[1-9]\d* streams complete, 0 failed$/m)
})
