/**
 * Goal: own rules hold the event loop for no more than 50 ms, for any rules and texts: in requests, replies,
 * streams, calls and citations, whether they block or mask.
 * Method: a gateway alone on this thread, its client and provider on another one, rules and texts that take
 * long. The longest turn is measured in processor time, the minimum of several runs, with the allowance for
 * a slower machine that the other measurements of steps have.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { isToday } from '../helpers/long-suite.js'
import { mostMs } from '../hostile/measure-steps.js'
import { TurnWatch } from '../hostile/turn-watch.js'
import type { JsonObject } from '../../src/base/json.js'
import type { Answered, Exchange } from './hostile-peers.js'

t.setTimeout(300_000)

const RUNS = 8
/** Rules, and the text that they take long for. */
const HOSTILE: readonly (readonly [name: string, patterns: string, text: string, units?: number])[] = [
  ['many instructions', "'(?:a?){400}b'", 'aaaaab'],
  ['long candidates', "'[A-Za-z0-9+/]{40,200}={0,2}\\.corp'", 'QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo'],
  ['nested', "'(a+)+$', '(?:a|aa)*c', '(?:[ab]?){200}[cd]'", 'aab'],
  ['many matches', "'a'", 'a'],
  ['large texts', "'secret'", 'plain words, and a secret among them; ', 3_000_000],
]
const HI = [{ role: 'user', content: 'hi' }]
const CALL = [
  { role: 'user', content: 'hi' },
  { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'f', input: { a: '(long)' } }] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'x' }] },
]
const TOOLS = [{ name: 'f', description: 'd', input_schema: { type: 'object' } }]

const PLACES: readonly (readonly [name: string, reply: Exchange['reply'], body: JsonObject])[] = [
  ['request', 'small', { messages: [{ role: 'user', content: '(long)' }] }],
  ['arguments in a request', 'small', { messages: CALL, tools: TOOLS }],
  ['reply', 'whole', { messages: HI }],
  ['arguments in a reply', 'call', { messages: HI, tools: TOOLS }],
  ['citation', 'citation', { messages: HI }],
  ['stream', 'stream', { messages: HI, stream: true }],
]

async function startPeers(t: Test): Promise<{ port: number; ask: (of: Exchange) => Promise<Answered> }> {
  const worker = new Worker(new URL('./hostile-peers.js', import.meta.url))
  t.teardown(() => worker.terminate())
  const [{ port }] = (await once(worker, 'message')) as [{ port: number }]
  const ask = async (of: Exchange): Promise<Answered> => {
    worker.postMessage(of)
    const [answered] = (await once(worker, 'message')) as [Answered]
    return answered
  }
  return { port, ask }
}

for (const action of ['block', 'mask'] as const) {
  for (const [at, [name, patterns, text, units = 900_000]] of HOSTILE.entries()) {
    if (!isToday(at + (action === 'mask' ? 2 : 0), HOSTILE.length)) continue
    void t.test(`${action}: ${name}`, async (t) => {
      const { port, ask } = await startPeers(t)
      const rules = `patterns: [${patterns}], action: ${action}, timeout_ms: 1000`
      const gateway = await startGateway(t, {
        upstreams: { anthropic: `http://127.0.0.1:${port}/v1` },
        more: `guardrails:\n  own: { ${rules}, apply_to: { all: true } }`,
      })
      for (const [place, reply, body] of PLACES) {
        const request = { model: 'claude-opus-5', max_tokens: 1000, ...body }
        const url = `${gateway.origin}/v1/messages`
        let slowest = Infinity
        for (let run = 0; run < RUNS && slowest > 50; run += 1) {
          const watch = new TurnWatch()
          const answered = await ask({ url, secret: gateway.secret, body: request, reply, text, units })
          slowest = Math.min(slowest, watch.end())
          // Of whole replies, 502 is one that is too large.
          t.ok([200, 400, 413, 502, 503].includes(answered.status), `${place}: ${answered.status}`)
        }
        t.ok(slowest <= mostMs(slowest), `${place}: ${slowest.toFixed(0)} ms`)
      }
    })
  }
}
