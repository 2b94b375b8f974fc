/**
 * Sends costly bodies of one client format to every encoder and checks that each step takes at most 50 ms of
 * processor time.
 */
import t from 'tap'
import type { JsonObject } from '../../src/base/json.js'
import { ofToday } from '../helpers/long-suite.js'
import { ENCODERS, fastest, mostMs, receiveBody, type Client } from './measure-steps.js'

/** One test for each body of this day, by its name. `isTaken`: no encoder may refuse it. */
export function checkBodies(
  client: Client,
  bodies: Readonly<Record<string, JsonObject>>,
  { isTaken }: { readonly isTaken: boolean },
): void {
  t.setTimeout(170_000)
  for (const [name, made] of ofToday(Object.entries(bodies), 3)) {
    void t.test(name, (t) => {
      const body = Buffer.from(JSON.stringify(made))
      const received = fastest(() => receiveBody(body, client))
      const { step, ms } = received.slowest
      t.ok(ms <= mostMs(ms), `receive: ${ms.toFixed(1)} ms in ${step}`)
      for (const encoder of ENCODERS) {
        const { slowest, refusal } = fastest(() => received.encode(encoder))
        const { step, ms } = slowest
        t.ok(ms <= mostMs(ms), `${encoder}: ${ms.toFixed(1)} ms in ${step}`)
        if (isTaken) t.equal(refusal, null, `${encoder} takes it`)
      }
      t.end()
    })
  }
}
