/**
 * Goal: no request holds the event loop for more than 50 ms, for any content and any upstream.
 * Method: requests of maximum cost at the accepted limits are processed from their bytes to the request for
 * the upstream. The longest turn of the event loop is measured in processor time, the minimum of several
 * runs, so that other work on the machine is excluded. The limit is higher on a machine that needs longer for
 * JSON.parse of the body alone.
 */
import t from 'tap'
import { HOSTILE } from './costly-bodies.js'
import { ENCODERS, fastest, MOST_MS, processBody, receiveBody } from './measure-steps.js'

/**
 * JSON.parse of the largest body takes 35 ms on the reference machine; work on other cores slows down both.
 */
const MOST_TO_PARSE = 1.5
/** A test file may take three minutes; this one takes a quarter of that on a busy machine. */
t.setTimeout(170_000)

void t.test('warm-up', (t) => {
  const messages = Array.from({ length: 300 }, () => ({ role: 'user', content: 'x'.repeat(100) }))
  const body = Buffer.from(JSON.stringify({ model: 'm', messages }))
  for (let round = 0; round < 5; round += 1)
    for (const each of ENCODERS) t.ok(processBody(body, each))
  t.end()
})

/** The processor time for decoding and parsing the body, the minimum of three runs. */
function parseMs(body: Buffer): number {
  const times = [1, 2, 3].map(() => {
    const before = process.cpuUsage()
    try {
      JSON.parse(body.toString())
    } catch {
      // For a body that is not JSON, the time until the error.
    }
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  })
  return Math.min(...times)
}

for (const { name, make } of HOSTILE) {
  void t.test(name, (t) => {
    const body = Buffer.from(make())
    const check = (what: string, { step, ms }: { step: string; ms: number }): void => {
      const mostMs = ms <= MOST_MS ? MOST_MS : Math.max(MOST_MS, MOST_TO_PARSE * parseMs(body))
      t.ok(ms <= mostMs, `${what}: ${ms.toFixed(1)} ms in ${step}`)
    }
    // Received once for all upstreams, as for the attempts of one request.
    const received = fastest(() => receiveBody(body))
    check('receive', received.slowest)
    if (received.refusal === null) {
      for (const encoder of ENCODERS) {
        check(encoder, fastest(() => received.encode(encoder)).slowest)
      }
    }
    t.end()
  })
}
