/**
 * Goal: the first values of a label have series, the same ones in all workers, and the rest is `other`; no
 * request is counted twice or lost.
 * Method: the counters of one process and of two that ask a third one, with answers that are late or missing.
 */
import t from 'tap'
import {
  FirstValues,
  LabelMetrics,
  type LabelMessage,
  type LabelQuestion,
  type LabelSetting,
} from '../../src/observe/metrics/key-label-metrics.js'
import { aggregateText, type Collected } from '../../src/observe/metrics/metric-types.js'
import { Metrics } from '../../src/observe/metrics/metrics.js'

const TEAM: LabelSetting = { name: 'team', series: 'team', values: 3 }

function request(metrics: LabelMetrics, team: string, settings = [TEAM], upstream = 'one'): void {
  metrics.count(settings, { team }, { metric: 'labelRequests', labels: [upstream, 'ok'] })
}

/** The count by value of `sluice_label_requests_total`. */
async function counts(...processes: LabelMetrics[]): Promise<Record<string, number>> {
  const sums: Record<string, number> = {}
  for (const each of processes) {
    const [requests] = await Promise.all(each.metrics().map((metric) => metric.get()))
    for (const { labels, value } of requests?.values ?? []) {
      const name = String(labels['team'])
      sums[name] = (sums[name] ?? 0) + value
    }
  }
  return sums
}

void t.test('the first values have series and the rest is other', async (t) => {
  const metrics = new LabelMetrics()
  for (const team of ['a', 'b', 'a', 'c', 'd', 'e', 'b', 'other']) request(metrics, team)
  t.same(await counts(metrics), { a: 2, b: 2, c: 1, other: 3 })
  metrics.count([TEAM], {}, { metric: 'labelRequests', labels: ['one', 'ok'] })
  metrics.count([TEAM], { app: 'x' }, { metric: 'labelRequests', labels: ['one', 'ok'] })
  t.same(await counts(metrics), { a: 2, b: 2, c: 1, other: 3 }, 'keys without the label')
})

void t.test('a series has the label itself, and the page is in the text format', async (t) => {
  const metrics = new Metrics({ processMetrics: false })
  const settings = [TEAM, { name: 'cost-center', series: 'cost_center', values: 1 }]
  const key = { team: 'a"b', 'cost-center': '7' }
  const { labels } = metrics
  labels.count(settings, key, { metric: 'labelRequests', labels: ['one', 'provider'] })
  labels.count(settings, key, { metric: 'labelCost', labels: ['one'], amount: 0.25 })
  labels.count(settings, key, { metric: 'labelCost', labels: ['one'], amount: 0.5 })
  labels.count(settings, key, { metric: 'labelRejections', labels: ['usd_day'] })
  const text = await metrics.text()
  for (const line of [
    'sluice_label_requests_total{label="team",value="a\\"b",team="a\\"b",upstream="one",cause="provider"} 1',
    'sluice_label_requests_total{label="cost-center",value="7",cost_center="7",upstream="one",cause="provider"} 1',
    'sluice_label_cost_usd_total{label="cost-center",value="7",cost_center="7",upstream="one"} 0.75',
    'sluice_label_limit_rejections_total{label="cost-center",value="7",cost_center="7",kind="usd_day"} 1',
  ]) {
    t.ok(text.includes(`${line}\n`), line)
  }
  const [one, two] = [await metrics.collect(), await metrics.collect()] as Collected[][]
  const sum = await aggregateText([one ?? [], two ?? []])
  t.match(sum, /^sluice_label_cost_usd_total\{[^}]*cost_center="7"[^}]*\} 1\.5$/m)
})

void t.test('two workers have the same values, and late answers lose nothing', async (t) => {
  const primary = new FirstValues()
  const waiting: (() => void)[] = []
  const worker = (): LabelMetrics => {
    const metrics = new LabelMetrics()
    metrics.queryWith((firstValue) => {
      const message: LabelMessage = { firstValue }
      return new Promise((resolve) => waiting.push(() => resolve(primary.answer(message))))
    })
    return metrics
  }
  const answerAll = async (): Promise<void> => {
    for (const answer of waiting.splice(0)) answer()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const [one, two] = [worker(), worker()]
  for (const team of ['a', 'b', 'c', 'a']) request(one, team)
  for (const team of ['d', 'e', 'c', 'd']) request(two, team)
  t.same(await counts(one, two), {}, 'nothing before the answers')
  t.equal(waiting.length, 6, 'one question for each value')
  await answerAll()
  t.same(await counts(one, two), { a: 2, b: 1, c: 2, other: 3 })
  request(two, 'a')
  request(two, 'f')
  request(one, 'e')
  t.equal(waiting.length, 0, 'no question when all values are known')
  t.same(await counts(one, two), { a: 3, b: 1, c: 2, other: 5 })
  t.equal(primary.answer({ firstValue: { label: 'team', value: 1 } }), null)
  t.equal(primary.answer({ notice: {} }), null)
})

void t.test('a question without an answer is repeated', async (t) => {
  const metrics = new LabelMetrics()
  const primary = new FirstValues()
  let answers = 0
  metrics.queryWith((question: LabelQuestion) => {
    answers += 1
    return Promise.resolve(answers === 1 ? null : primary.admit(question))
  })
  for (let sent = 0; sent < 3; sent += 1) {
    request(metrics, 'a')
    await new Promise((resolve) => setImmediate(resolve))
  }
  t.equal(answers, 2)
  t.same(await counts(metrics), { a: 3 })
})

void t.test('a reload with more values admits more', async (t) => {
  const metrics = new LabelMetrics()
  for (const team of ['a', 'b', 'c', 'd']) request(metrics, team)
  const more = [{ ...TEAM, values: 4 }]
  for (const team of ['d', 'e', 'a']) request(metrics, team, more)
  t.same(await counts(metrics), { a: 2, b: 1, c: 1, d: 1, other: 2 })
})

void t.test('series and memory are bounded', async (t) => {
  const metrics = new LabelMetrics()
  for (let at = 0; at < 500; at += 1) request(metrics, 'a', [TEAM], `upstream-${at}`)
  const [requests] = await Promise.all(metrics.metrics().map((metric) => metric.get()))
  const shown = requests?.values.filter(({ labels }) => labels['value'] === 'a') ?? []
  t.equal(shown.length, 160, '40 for each value')
  t.equal(
    Object.values(await counts(metrics)).reduce((a, b) => a + b),
    500,
    'all are counted',
  )
  const silent = new LabelMetrics()
  silent.queryWith(() => new Promise(() => undefined))
  for (let at = 0; at < 3_000; at += 1) request(silent, `team-${at}`)
  t.same(await counts(silent), { other: 2_000 }, 'a thousand wait')
})
