/**
 * Sends costly bodies of one client format to every encoder and checks that each step takes at most 50 ms of
 * processor time.
 */
import t from 'tap'
import type { JsonObject } from '../../src/formats/chat/json.js'
import { ENCODERS, processBody, type Client } from './measure-steps.js'

const MOST_MS = 50
/** A slow step is repeated, because other work on the machine may have slowed it down. */
const TRIES = 10

/** One test for each body, by its name. `isTaken`: no encoder may refuse it. */
export function checkBodies(
  client: Client,
  bodies: Readonly<Record<string, JsonObject>>,
  { isTaken }: { readonly isTaken: boolean },
): void {
  t.setTimeout(170_000)
  for (const [name, made] of Object.entries(bodies)) {
    void t.test(name, (t) => {
      const body = Buffer.from(JSON.stringify(made))
      for (const encoder of ENCODERS) {
        let best = processBody(body, encoder, client)
        for (let tries = 1; tries < TRIES && best.slowest.ms > MOST_MS; tries += 1) {
          const again = processBody(body, encoder, client)
          if (again.slowest.ms < best.slowest.ms) best = again
        }
        const { step, ms } = best.slowest
        t.ok(ms <= MOST_MS, `${encoder}: ${ms.toFixed(1)} ms in ${step}`)
        if (isTaken) t.equal(best.refusal, null, `${encoder} takes it`)
      }
      t.end()
    })
  }
}
