/**
 * Goal: an empty Gemini reply (a malformed call and similar reasons, STOP without content) is retried once,
 * before the client gets any content; each attempt is counted.
 * Method: an upstream of raw bytes that fails as often as the test sets; its requests are checked.
 */
import t, { type Test } from 'tap'
import { objectOf, type JsonObject } from '../../../src/base/json.js'
import { ask, checkFailed, isComplete, question, series, watchProcess } from '../../faults/scene.js'
import { httpReply, startSocketUpstream } from '../../faults/socket-upstream.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'

const MODEL = 'gemini-3.5-flash'
const USAGE = { stream_options: { include_usage: true } }

/** The reply of the upstream to one attempt. */
interface UpstreamReply {
  readonly reason: string
  readonly parts?: readonly JsonObject[]
  readonly output?: number
}

const EMPTY: UpstreamReply = { reason: 'STOP' }
const MALFORMED: UpstreamReply = { reason: 'MALFORMED_FUNCTION_CALL' }
const GOOD: UpstreamReply = { reason: 'STOP', parts: [{ text: 'Well.' }], output: 3 }

function replyOf({ reason, parts, output }: UpstreamReply, stream: boolean): string {
  const content = parts === undefined ? { role: 'model' } : { role: 'model', parts: [...parts] }
  const usageMetadata = { promptTokenCount: 7, ...(output && { candidatesTokenCount: output }) }
  const candidates = [{ content, finishReason: reason, index: 0 }]
  const body = { candidates, usageMetadata, modelVersion: MODEL, responseId: 'r' }
  const json = JSON.stringify(body)
  return stream
    ? httpReply(200, ['content-type: text/event-stream'], `data: ${json}\r\n\r\n`)
    : httpReply(200, ['content-type: application/json'], json)
}

async function gatewayFor(
  t: Test,
  stream: boolean,
  replies: readonly UpstreamReply[],
): Promise<{ gateway: TestGateway; bodies: string[] }> {
  watchProcess(t)
  const bodies: string[] = []
  const upstream = await startSocketUpstream(t, ({ socket }, request) => {
    bodies.push(request.slice(request.indexOf('\r\n\r\n') + 4))
    socket.write(replyOf(replies[bodies.length - 1] ?? GOOD, stream))
  })
  return { gateway: await startGateway(t, { upstreams: { gemini: upstream.url } }), bodies }
}

function attempts(gateway: TestGateway, kind: string): Promise<number> {
  return series(gateway, `sluice_attempts_total{upstream="google",kind="${kind}"}`)
}

for (const stream of [false, true]) {
  const form = stream ? 'streamed' : 'whole'

  for (const reason of ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'MALFORMED_RESPONSE']) {
    void t.test(`${reason}, ${form}: the same request is retried`, async (t) => {
      const { gateway, bodies } = await gatewayFor(t, stream, [{ reason }, GOOD])
      const seen = await ask(gateway, question(MODEL, stream, { ...(stream ? USAGE : {}) }))
      t.ok(isComplete(seen), seen.body.slice(-300))
      t.equal(seen.text, 'Well.')
      t.equal(bodies.length, 2)
      t.equal(bodies[1], bodies[0], 'byte for byte')
      const usage = objectOf(seen.data.map((each) => each.usage).findLast(Boolean))
      t.equal(usage.prompt_tokens, 14, 'both tries are paid for')
      t.equal(await attempts(gateway, 'upstream_failed'), 1)
      t.equal(await attempts(gateway, 'ok'), 1)
    })
  }

  void t.test(`a second failure is returned to the client, ${form}`, async (t) => {
    const { gateway, bodies } = await gatewayFor(t, stream, [MALFORMED, MALFORMED, GOOD])
    const seen = await ask(gateway, question(MODEL, stream))
    checkFailed(t, seen, { name: form, kinds: ['upstream_failed'] })
    t.equal(seen.status, 502)
    t.equal(bodies.length, 2)
    t.equal(await attempts(gateway, 'upstream_failed'), 2)
  })

  void t.test(`an empty reply, ${form}: retried once, then passed unchanged`, async (t) => {
    const { gateway, bodies } = await gatewayFor(t, stream, [EMPTY, GOOD, EMPTY, EMPTY, GOOD])
    const second = await ask(gateway, question(MODEL, stream))
    t.equal(second.text, 'Well.')
    t.equal(bodies.length, 2)
    const empty = await ask(gateway, question(MODEL, stream))
    t.ok(isComplete(empty), empty.body)
    t.equal(empty.text, '')
    t.equal(empty.finish, 'stop')
    t.equal(bodies.length, 4)
  })

  void t.test(`nothing is requested again after the first content, ${form}`, async (t) => {
    const { gateway, bodies } = await gatewayFor(t, stream, [
      { reason: 'MALFORMED_FUNCTION_CALL', parts: [{ text: 'Let me see.' }], output: 4 },
      { reason: 'STOP', output: 4 },
    ])
    checkFailed(t, await ask(gateway, question(MODEL, stream)), {
      name: form,
      kinds: ['upstream_failed'],
    })
    t.equal(bodies.length, 1)
    t.equal((await ask(gateway, question(MODEL, stream))).finish, 'stop')
    t.equal(bodies.length, 2, 'counted output counts as a reply')
  })
}
