// Goal: a shutdown lets requests finish within the drain time, and ends the others with an error (J-145,
// G12).
// Method: streams, whole replies and a half-sent body under a drain of half a second.
import { connect } from 'node:net'
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { eventsOf } from '../helpers/collect.js'
import { stopwatch } from '../helpers/stopwatch.js'
import {
  ask,
  checkFailed,
  eventually,
  isComplete,
  openClient,
  question,
  UPSTREAMS,
  watchProcess,
} from './scene.js'

void t.test('requests in flight when the gateway drains', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  const { emulator } = gateway
  const short = ask(gateway, question('gpt-4o', true, { text: '[[words: 10]] [[pace: 20]]' }))
  const long = UPSTREAMS.map(({ model }) =>
    ask(gateway, question(model, true, { text: '[[words: 500]] [[pace: 30]]' })),
  )
  const whole = ask(gateway, question('gpt-4o', false, { text: '[[fault: hang]]' }))
  const body = connect(gateway.port, '127.0.0.1')
  t.teardown(() => body.destroy())
  let answer = ''
  body.on('error', () => undefined).on('data', (chunk: Buffer) => (answer += chunk.toString()))
  body.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${gateway.secret}\r\n` +
      'content-type: application/json\r\ncontent-length: 100\r\n\r\n{',
  )
  await eventually(() => emulator.open() === 5, 'all are running')
  const began = performance.now()
  const watch = stopwatch()
  const drained = gateway.plane.drain()
  t.ok(isComplete(await short), 'a short stream completes')
  for (const [i, each] of (await Promise.all(long)).entries()) {
    const name = UPSTREAMS[i]?.name ?? ''
    t.not(each.text, '', `${name}: content has arrived`)
    checkFailed(t, each, { name: `${name}: a long stream ends with an error`, kinds: ['draining'] })
    t.equal(each.data.filter(({ error }) => error !== undefined).length, 1, `${name}: once`)
  }
  const refused = await whole
  t.equal(refused.status, 503)
  t.ok(refused.headers['retry-after'])
  checkFailed(t, refused, { name: 'a whole reply that did not come', kinds: ['draining'] })
  await drained
  const tookMs = performance.now() - began
  t.ok(tookMs > 400 && watch() < 1500, `drained after ${tookMs} ms`)
  t.match(answer, /^HTTP\/1\.1 503 /, 'a half-sent body gets a 503')
  await eventually(() => emulator.open() === 0, 'no request is left upstream')
  const outcomes = gateway.lines.map(({ outcome }) => outcome).filter(Boolean)
  t.same(outcomes.sort(), ['draining', 'draining', 'draining', 'draining', 'draining', 'ok'])
})

void t.test('a stream without content yet gets a real status', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  gateway.emulator.script({ times: 1, fault: { kind: 'stall', event: 0 } })
  const client = openClient(t, gateway, { body: question('gpt-4o', true) })
  await eventually(() => gateway.emulator.open() === 1, 'at work')
  await gateway.plane.drain()
  await eventually(() => client.text() !== '', 'an answer')
  t.match(client.text(), /^HTTP\/1\.1 503 /)
  t.match(client.text(), '"kind":"draining"')
  t.same(
    eventsOf(client.text()).filter(({ data }) => data === '[DONE]'),
    [],
  )
})
