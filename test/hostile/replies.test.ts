/**
 * Goal: no reply of an upstream holds the event loop for more than 50 ms of processor time, at the limits and
 * far beyond them. Beyond them, the bytes pass if client and upstream use the same format, and are counted;
 * otherwise the reply is refused with the limit that it exceeds.
 * Method: the gateway in this process; the upstream and the client in another one. A callback in each turn of
 * the event loop measures the processor time of the turn before it, the minimum of several runs.
 */
import t from 'tap'
import { rowsOf } from '../helpers/ledger.js'
import { COSTLY_REPLIES } from '../../bench/hostile/costly-replies.js'
import { ofToday } from '../helpers/long-suite.js'
import type { ClientReply } from './replies-child.js'
import { mostMs } from './measure-steps.js'
import { openReplyStage } from './reply-stage.js'
import { TurnWatch } from './turn-watch.js'

const MOST_MS = 50
/** A slow run is repeated, because other work on the machine may have slowed it down. */
const TRIES = 6
t.setTimeout(170_000)

void t.test('costly replies', async (t) => {
  const { gateway, reply } = await openReplyStage(t)
  for (const { name, expected, output, headers } of ofToday(COSTLY_REPLIES, 6)) {
    let slowestMs = Infinity
    let seen: ClientReply | null = null
    for (let tries = 0; tries < TRIES && slowestMs > MOST_MS; tries += 1) {
      const watch = new TurnWatch()
      seen = await reply(name)
      slowestMs = Math.min(slowestMs, watch.end())
    }
    t.ok(slowestMs <= mostMs(slowestMs), `${name}: ${slowestMs.toFixed(1)} ms`)
    if (seen === null) continue
    const isStream = headers['content-type'] === 'text/event-stream'
    const refusal = `${seen.head}${seen.tail}`
    if (expected === 'refused') {
      t.equal(seen.status, isStream ? 200 : 502, `${name}: status`)
      t.match(refusal, /too complex to be translated: it has more than [\d]+ /, `${name}: the limit`)
    } else {
      t.equal(seen.status, 200, `${name}: ${refusal.slice(0, 300)}`)
      t.equal(seen.isSame, expected === 'passed', `${name}: whether the bytes are the same`)
    }
    const entry = (await rowsOf(gateway)).at(-1)
    if (output !== null) t.equal(entry?.usage.output, output, `${name}: output`)
  }
})
