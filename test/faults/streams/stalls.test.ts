// Goal: a request to an upstream that stops sending ends after the timeout of its phase, with a 504 or an
//   error event, and its connection is closed (D-65).
// Method: stalls before the head, before the first event, between events and after the last content, with
//   timeouts of 300 ms.
import t from 'tap'
import { startGateway } from '../../helpers/gateway.js'
import { ask, checkAfter, checkFailed, eventually, question, UPSTREAMS, watchProcess } from '../scene.js'

const TIMEOUTS = 'timeouts: { connect_ms: 1000, first_byte_ms: 300, idle_ms: 300 }'

for (const { name, model } of UPSTREAMS) {
  void t.test(`D-65: ${name}`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t, { upstreamOptions: TIMEOUTS })
    const content = name === 'anthropic' ? 5 : 2
    const cases = [
      { where: 'before the head', stream: true, fault: { kind: 'hang' }, status: 504 },
      {
        where: 'before the first event',
        stream: true,
        fault: { kind: 'stall', event: 0 },
        status: 504,
      },
      {
        where: 'between events',
        stream: true,
        fault: { kind: 'stall', event: content },
        status: 200,
      },
      { where: 'inside an event', stream: true, fault: { kind: 'stall', bytes: 900 }, status: 200 },
      {
        where: 'before the head of a whole reply',
        stream: false,
        fault: { kind: 'hang' },
        status: 504,
      },
      {
        where: 'in a whole reply',
        stream: false,
        fault: { kind: 'stall', bytes: 30 },
        status: 504,
      },
    ] as const
    for (const { where, stream, fault, status } of cases) {
      gateway.emulator.script({ times: 1, fault })
      const seen = await ask(gateway, question(model, stream))
      if (where !== 'inside an event') t.equal(seen.status, status, where)
      checkFailed(t, seen, { name: where, kinds: ['upstream_timeout'] })
      t.match(
        seen.body,
        /The upstream '\w+' (?:did not begin to reply in time|sent nothing for too long)\./,
        where,
      )
      t.ok(seen.tookMs >= 290 && seen.ownMs < 1200, `${where}: ${seen.tookMs} ms`)
      t.ok((await eventually(() => gateway.emulator.open() === 0, 'upstream closed')) < 300)
    }
    await checkAfter(t, gateway)
  })
}

void t.test('D-65: a whole reply has its own timeout for the first byte', async (t) => {
  watchProcess(t)
  const upstreamOptions = 'timeouts: { first_byte_ms: 300, first_byte_whole_ms: 10000 }'
  const gateway = await startGateway(t, { upstreamOptions })
  for (const { model } of UPSTREAMS) {
    gateway.emulator.script({ times: 2, fault: { kind: 'delay', ms: 700, mode: 'headers' } })
    const more = { max_tokens: 100 }
    const whole = await ask(gateway, question(model, false, { ...more }))
    t.equal(whole.status, 200, `${model}: whole`)
    const stream = await ask(gateway, question(model, true, { ...more }))
    t.equal(stream.status, 504, `${model}: streamed`)
  }
  await checkAfter(t, gateway)
})

void t.test('D-65: after the last content', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t, { upstreamOptions: TIMEOUTS })
  gateway.emulator.script({ times: 1, fault: [{ kind: 'unterminated' }, { kind: 'open' }] })
  const seen = await ask(gateway, question('claude-sonnet-4-5', true))
  checkFailed(t, seen, { name: 'no stop reason', kinds: ['upstream_timeout'] })
  await checkAfter(t, gateway)
})

void t.test('D-65: a stream that never ends is truncated after total_ms', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t, {
    upstreamOptions: 'timeouts: { idle_ms: 650, total_ms: 700 }',
  })
  const seen = await ask(gateway, question('gpt-4o', true, { text: '[[words: 1000]] [[pace: 20]]' }))
  checkFailed(t, seen, { name: 'too long', kinds: ['upstream_timeout'] })
  t.match(seen.body, /The upstream '\w+' took too long\./)
  t.not(seen.text, '')
  t.ok(seen.tookMs >= 690 && seen.ownMs < 1500, `${seen.tookMs} ms`)
  await checkAfter(t, gateway)
})

void t.test('D-65: a slow stream does not time out', async (t) => {
  watchProcess(t)
  // Longer than any time limit in all, and each pause a fifth of it.
  const upstreamOptions = 'timeouts: { connect_ms: 3000, first_byte_ms: 2000, idle_ms: 2000 }'
  const gateway = await startGateway(t, { upstreamOptions })
  const seen = await ask(gateway, question('gpt-4o', true, { text: '[[words: 8]] [[pace: 400]]' }))
  t.equal(seen.finish, 'stop')
  t.ok(seen.done && seen.whole)
})
