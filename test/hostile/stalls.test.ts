/**
 * Goal: no request holds the event loop for more than 50 ms, for any content and any upstream.
 * Method: requests of maximum cost at the accepted limits are processed from their bytes to the request for
 * the upstream. The longest turn of the event loop is measured in processor time, the minimum of several
 * runs, so that other work on the machine is excluded. Each day has a quarter of them, for another
 * upstream each, the long suite all.
 */
import t from 'tap'
import { isToday } from '../helpers/long-suite.js'
import { HOSTILE } from './costly-bodies.js'
import { ENCODERS, fastest, mostMs, processBody, receiveBody } from './measure-steps.js'

/** A test file may take three minutes; this one takes a quarter of that on a busy machine. */
t.setTimeout(170_000)

void t.test('warm-up', (t) => {
  const messages = Array.from({ length: 300 }, () => ({ role: 'user', content: 'x'.repeat(100) }))
  const body = Buffer.from(JSON.stringify({ model: 'm', messages }))
  for (let round = 0; round < 5; round += 1) for (const each of ENCODERS) t.ok(processBody(body, each))
  t.end()
})

for (const [number, { name, make }] of HOSTILE.entries()) {
  if (!isToday(number, 4)) continue
  void t.test(name, (t) => {
    const body = Buffer.from(make())
    const check = (what: string, { step, ms }: { step: string; ms: number }): void => {
      t.ok(ms <= mostMs(ms), `${what}: ${ms.toFixed(1)} ms in ${step}`)
    }
    // Received once for all upstreams, as for the attempts of one request.
    const received = fastest(() => receiveBody(body))
    check('receive', received.slowest)
    if (received.refusal === null) {
      for (const [index, encoder] of ENCODERS.entries()) {
        if (!isToday(4 * index + number, 4 * ENCODERS.length)) continue
        check(encoder, fastest(() => received.encode(encoder)).slowest)
      }
    }
    t.end()
  })
}
