/**
 * Goal: a high error rate is reported once when it begins and once when it ends, and single errors are not.
 * Method: readings of metrics of a minute and more; a change in between.
 */
import t from 'tap'
import { ErrorRateWatch } from '../../src/process/error-rate-watch.js'
import type { Notification } from '../../src/observe/notification.js'
import type { NotifyGroup } from '../../src/observe/notification.js'

/** A watch, and what it has sent. */
function watched(events: NotifyGroup[] = ['error_rate']) {
  const counts = { ok: 0, failed: 0, other: 0 }
  const sent: Notification[] = []
  const target = { url: 'https://a.example', events, secret: 's', allowPrivateAddress: false }
  const watch = new ErrorRateWatch({
    source: { current: () => ({ config: { notify: [target] } }) },
    notify: (notification) => void sent.push(notification),
    metrics: () =>
      Promise.resolve(
        [
          '# TYPE sluice_requests_total counter',
          `sluice_requests_total{ingress="chat",route="r",upstream="openai",status="200",outcome="ok"} ${counts.ok}`,
          `sluice_requests_total{ingress="chat",route="r",upstream="openai",status="502",outcome="upstream_failed"} ${counts.failed}`,
          `sluice_requests_total{ingress="chat",route="r",upstream="google",status="429",outcome="rate_limited"} ${counts.other}`,
        ].join('\n'),
      ),
  })
  const read = async (more: Partial<typeof counts>): Promise<number> => {
    counts.ok += more.ok ?? 0
    counts.failed += more.failed ?? 0
    counts.other += more.other ?? 0
    await watch.read()
    return sent.length
  }
  return { read, sent }
}

void t.test('high and normal are reported once each', async (t) => {
  const { read, sent } = watched()
  t.equal(await read({ ok: 150 }), 0)
  t.equal(await read({ ok: 140, failed: 9 }), 0, 'fewer than ten')
  t.equal(await read({ ok: 100, failed: 20, other: 50 }), 1)
  t.match(sent[0], {
    type: 'error_rate.changed',
    data: { state: 'high', failed: 29, requests: 469, percent: 6.2, upstream: 'openai' },
  })
  for (let more = 0; more < 5; more += 1) t.equal(await read({ ok: 100, failed: 5 }), 1)
  for (let more = 0; more < 6; more += 1) await read({ ok: 200 })
  t.equal(sent.length, 2)
  t.match(sent[1]?.data, { state: 'normal', upstream: null })
})

void t.test('single errors, refusals and silence are not reported', async (t) => {
  const { read } = watched()
  await read({})
  for (let more = 0; more < 20; more += 1) {
    t.equal(await read({ ok: 300, failed: 2, other: 500 }), 0)
  }
  for (let more = 0; more < 7; more += 1) t.equal(await read({ failed: 1 }), 0)
})

void t.test('without a receiver nothing is read', async (t) => {
  const { read } = watched(['budget'])
  await read({})
  t.equal(await read({ failed: 1_000 }), 0)
})
