/**
 * Goal: the boards and the rules tell whether users' requests fail: neither a provider's 429 nor cut streams
 * look like success, and refusals by limits and clients' errors fire no alert. The price of a token is that
 * of the catalogue in each phase.
 * Method: for each of four phases, two of them each day, a gateway in a process of its own and a real
 * Prometheus that scrapes it.
 */
import t, { type Test } from 'tap'
import { CAUSES, isKind, outcomesOf } from '../../src/errors.js'
import { ofToday } from '../helpers/long-suite.js'
import { prometheusMissing, startPrometheus, type Prometheus } from '../helpers/prometheus.js'
import { alerts, interpolated, panelExpressions } from './boards.js'
import { startScene, type Phase } from './scene.js'

t.setTimeout(600_000)

/** More than the rules need of failures in their windows. */
const REQUESTS = 80
/** At least one of each kind of a phase. */
const FIRST_REQUESTS = 12
/** Maximum price of a million tokens of the models in use, in US dollars. */
const HIGHEST_PRICE = 15

/** The value of an expression with one sample; NaN without samples. */
async function valueOf(prometheus: Prometheus, expression: string): Promise<number> {
  const [sample] = await prometheus.query(interpolated(expression, '2m'))
  return sample === undefined ? Number.NaN : Number((sample as { value: [number, string] }).value[1])
}

async function until(met: () => Promise<boolean>, what: string): Promise<void> {
  const giveUpAt = Date.now() + 120_000
  while (!(await met())) {
    if (Date.now() > giveUpAt) throw new Error(`not within 2 minutes: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

/**
 * Plays a phase until Prometheus has scraped it. Each kind of request is sent before the first scrape, too:
 * the rate of a series that begins later may be 0.
 */
async function played(t: Test, phase: Phase): Promise<Prometheus> {
  const scene = await startScene(t)
  await scene.play(phase, FIRST_REQUESTS)
  const prometheus = await startPrometheus(t, { scrapes: scene.opsPort, ruleFiles: [] })
  await until(async () => (await prometheus.query('sluice_requests_total')).length > 0, 'a first scrape')
  await scene.play(phase, REQUESTS)
  const end = Math.ceil(Date.now() / 1000)
  await until(async () => {
    const seen = await prometheus.query(`min(timestamp(sluice_requests_total)) > ${end + 3}`)
    return seen.length > 0
  }, 'scrapes after the traffic')
  return prometheus
}

function expressionOf(title: string): string {
  return panelExpressions().find(({ where }) => where.endsWith(title))?.text ?? ''
}

/** The alerts for pages and tickets whose condition holds; `for` is a matter of time. */
async function firing(prometheus: Prometheus): Promise<string[]> {
  const names: string[] = []
  for (const { alert, expr } of alerts()) {
    // These tell of the refusals themselves, of the machine, and of the scene's certificate, which ends soon.
    if (/Limit|Overhead|FirstToken|Certificate/.test(alert)) continue
    if ((await prometheus.query(expr)).length > 0) names.push(alert)
  }
  return names
}

const PHASES: Readonly<
  Record<Phase, { readonly success: readonly [number, number]; readonly burns: boolean }>
> = {
  healthy: { success: [1, 1], burns: false },
  'provider 429': { success: [0, 0.2], burns: true },
  'cut streams': { success: [0, 0.2], burns: true },
  limits: { success: [1, 1], burns: false },
}

const CASES = Object.entries(PHASES) as [Phase, (typeof PHASES)[Phase]][]

for (const [phase, { success, burns }] of ofToday(CASES, 4)) {
  void t.test(phase, { skip: prometheusMissing() }, async (t) => {
    const prometheus = await played(t, phase)
    const rate = await valueOf(prometheus, expressionOf('Overview: Success rate'))
    t.ok(rate >= success[0] && rate <= success[1], `the success rate is ${rate}`)
    const fired = await firing(prometheus)
    if (burns) t.ok(fired.includes('SluiceAvailabilityBurnFast'), `fired: ${fired.join(', ')}`)
    else t.same(fired, [], 'no alert')
    const prices = await prometheus.query(interpolated(PRICE, '2m'))
    for (const sample of prices) {
      const price = Number((sample as { value: [number, string] }).value[1])
      t.ok(Number.isNaN(price) || price <= HIGHEST_PRICE, `a million tokens cost ${price}`)
    }
  })
}

const PRICE = panelExpressions().find(({ text }) => text.includes('sluice_priced_tokens_total'))?.text ?? ''

void t.test('the outcomes that count as failures are those of providers and of the gateway', (t) => {
  const expr = alerts().find(({ alert }) => alert === 'SluiceAvailabilityBurnFast')?.expr ?? ''
  const [, failed = ''] = /outcome=~"(?!ok)([^"]+)"/.exec(expr) ?? []
  t.match(expr, `outcome=~"ok|${failed}"`)
  t.match(expressionOf('Overview: Success rate'), failed)
  const compared = panelExpressions().filter(({ where }) => where.endsWith('Upstreams side by side'))
  t.ok(
    compared.some(({ text }) => text.includes(`kind=~"${failed}"`)),
    'the same kinds make an upstream red',
  )
  const isFailed = new RegExp(`^(?:${failed})$`)
  for (const cause of CAUSES) {
    // Metrics count requests by kind of error; `lost` and the outcomes of batches are those of entries alone.
    for (const outcome of outcomesOf(cause).filter(isKind)) {
      t.equal(isFailed.test(outcome), cause === 'provider' || cause === 'gateway', `${outcome}: ${cause}`)
    }
  }
  t.notOk(isFailed.test('ok'))
  t.end()
})
