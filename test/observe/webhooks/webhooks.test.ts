/**
 * Goal: webhooks are signed, are retried while the receiver fails, and their queue is bounded.
 * Method: a real HTTP receiver that verifies with the official library and fails on purpose.
 */
import t from 'tap'
import type { NotifyConfig } from '../../../src/config/config.js'
import { Webhooks } from '../../../src/observe/webhooks.js'
import type { Notification } from '../../../src/observe/notification.js'
import { openPoster } from '../../../src/gateway/upstreams/webhook-connection.js'
import { until } from '../../helpers/upstream.js'
import { SECRETS, startReceiver } from './receiver.js'

const QUICK = [10, 10, 10]

function noticeOf(upstream: string): Notification {
  return { type: 'breaker.changed', atMs: 1_795_408_821_000, data: { upstream, state: 'open' } }
}

function configOf(url: string, rest: Partial<NotifyConfig> = {}): NotifyConfig {
  const events: NotifyConfig['events'] = ['budget', 'breaker', 'config', 'canary']
  return { url, events, secret: SECRETS.encoded, allowPrivateAddress: true, ...rest }
}

/** Webhooks with counted results and recorded log lines. */
function open(backOffMs: readonly number[] = QUICK) {
  const counts: Record<string, number> = {}
  const lines: { event: string; fields: unknown }[] = []
  const webhooks = new Webhooks({
    open: openPoster,
    metrics: {
      webhook: (event, result) => {
        const key = `${event} ${result}`
        counts[key] = (counts[key] ?? 0) + 1
      },
    },
    log: { warn: (event, fields) => void lines.push({ event, fields }) },
    backOffMs,
  })
  return { webhooks, counts, lines }
}

for (const [form, secret] of Object.entries(SECRETS)) {
  void t.test(`a webhook is signed, secret ${form}`, async (t) => {
    const receiver = await startReceiver(t, secret)
    const { webhooks, counts } = open()
    webhooks.adopt([configOf(receiver.url, { secret })])
    webhooks.send(noticeOf('openai'))
    await receiver.of('breaker.changed', 1)
    const [first] = receiver.tries
    t.ok(first?.isSigned)
    t.match(first?.headers, {
      'webhook-id': /^msg_[\w-]+$/,
      'webhook-timestamp': /^\d{10}$/,
      'content-type': 'application/json',
    })
    t.same(first?.body, {
      type: 'breaker.changed',
      timestamp: '2026-11-23T04:40:21.000Z',
      data: { upstream: 'openai', state: 'open' },
    })
    await webhooks.close()
    t.same(counts, { 'breaker delivered': 1 })
  })
}

void t.test('a failed webhook is retried with the same id', async (t) => {
  const receiver = await startReceiver(t)
  receiver.answer = (attempt) => ({ status: attempt < 3 ? 500 : 200 })
  const { webhooks, counts } = open()
  webhooks.adopt([configOf(receiver.url)])
  webhooks.send(noticeOf('openai'))
  await until(() => counts['breaker delivered'] === 1)
  t.equal(receiver.tries.length, 3)
  t.equal(new Set(receiver.tries.map(({ headers }) => headers['webhook-id'])).size, 1)
  t.ok(receiver.tries.every(({ isSigned }) => isSigned))
  await webhooks.close()
  t.same(counts, { 'breaker retried': 2, 'breaker delivered': 1 })
})

void t.test('delivery ends after the last attempt, with one log line without secrets', async (t) => {
  const receiver = await startReceiver(t)
  receiver.answer = () => ({ status: 302, headers: { location: 'http://127.0.0.1:1/' } })
  const { webhooks, counts, lines } = open()
  webhooks.adopt([configOf(receiver.url)])
  webhooks.send(noticeOf('openai'))
  webhooks.send(noticeOf('anthropic'))
  await until(() => counts['breaker failed'] === 2)
  t.equal(receiver.tries.length, 8, 'redirects are not followed')
  t.equal(lines.length, 1)
  t.match(lines[0], { event: 'webhook not delivered', fields: { reason: 'status 302' } })
  t.notMatch(JSON.stringify(lines), /canary|whsec/)
  await webhooks.close()
})

void t.test('retry-after delays a retry, and 410 ends the webhooks', async (t) => {
  const receiver = await startReceiver(t)
  receiver.answer = (attempt) =>
    attempt === 1 ? { status: 429, headers: { 'retry-after': '1' } } : { status: 410 }
  const { webhooks, counts } = open()
  webhooks.adopt([configOf(receiver.url)])
  webhooks.send(noticeOf('openai'))
  await until(() => receiver.tries.length === 2)
  const [first, second] = receiver.tries
  t.ok((second?.atMs ?? 0) - (first?.atMs ?? 0) >= 900, 'retry-after holds')
  await until(() => counts['breaker dropped'] === 1)
  webhooks.send(noticeOf('anthropic'))
  await webhooks.close()
  t.equal(receiver.tries.length, 2, 'nothing is sent to a receiver that is gone')
  t.equal(counts['breaker dropped'], 2)
})

void t.test('the queue is bounded', async (t) => {
  const receiver = await startReceiver(t)
  receiver.answer = () => 'hang'
  const { webhooks, counts } = open()
  webhooks.adopt([configOf(receiver.url)])
  for (let sent = 0; sent < 1_500; sent += 1) webhooks.send(noticeOf('openai'))
  t.equal(counts['breaker dropped'], 498, '2 are running, 1,000 wait')
  const beganMs = performance.now()
  await webhooks.close()
  t.ok(performance.now() - beganMs < 10_000, 'a receiver that hangs does not hold up the end')
})

void t.test('events are selected, and unchanged endpoints keep their queues', async (t) => {
  const [one, other] = [await startReceiver(t), await startReceiver(t)]
  const { webhooks } = open()
  webhooks.adopt([configOf(one.url, { events: ['budget'] }), configOf(other.url)])
  webhooks.send(noticeOf('openai'))
  await other.of('breaker.changed', 1)
  webhooks.adopt([configOf(one.url)])
  webhooks.send(noticeOf('anthropic'))
  const [first] = await one.of('breaker.changed', 1)
  t.equal(first?.data['upstream'], 'anthropic')
  t.equal(other.tries.length, 1)
  await webhooks.close()
})

void t.test('a private address is refused without permission', async (t) => {
  const receiver = await startReceiver(t)
  const { webhooks, counts, lines } = open([])
  const url = receiver.url.replace('127.0.0.1', 'localhost')
  webhooks.adopt([configOf(url, { allowPrivateAddress: false })])
  webhooks.send(noticeOf('openai'))
  await until(() => counts['breaker failed'] === 1)
  t.same(receiver.tries, [])
  t.equal(lines.length, 1)
  await webhooks.close()
})

void t.test('a drain makes a last attempt for queued webhooks', async (t) => {
  const receiver = await startReceiver(t)
  receiver.answer = (attempt) => ({ status: attempt === 1 ? 503 : 200 })
  const { webhooks, counts } = open([60_000])
  webhooks.adopt([configOf(receiver.url)])
  webhooks.send(noticeOf('openai'))
  await until(() => counts['breaker retried'] === 1)
  await webhooks.close()
  t.equal(counts['breaker delivered'], 1)
})
