/**
 * Goal: known bugs of other gateways in connections do not occur here; each test is one edge case of
 * `docs/reference/test-cases/edge-cases.md`, by its number.
 * Method: real requests to a whole gateway over emulated providers.
 */
import t from 'tap'
import { objectOf } from '../../src/base/json.js'
import { series } from '../faults/scene.js'
import { eventsOf, textUntilEnd } from '../helpers/collect.js'
import { startGateway } from '../helpers/gateway.js'
import { until } from '../helpers/upstream.js'
import { MODELS, upstream } from './drive-codecs.js'

const gateway = await startGateway(t)
const { emulator } = gateway
const LONG = 'talk [[words: 400]] [[pace: 5]]'

function ask(
  model: string,
  content: string,
  { stream, signal }: { stream: boolean; signal?: AbortSignal | undefined },
) {
  const body = { model, stream, messages: [{ role: 'user', content }] }
  return gateway.chat(body, signal === undefined ? {} : { signal })
}

/** The upstreams of the test gateway, by name. */
const UPSTREAMS = [
  { dialect: 'openai-chat', name: 'openai' },
  { dialect: 'openai-responses', name: 'openai' },
  { dialect: 'anthropic', name: 'anthropic' },
  { dialect: 'gemini', name: 'google' },
] as const

for (const { dialect, name } of UPSTREAMS) {
  const model = MODELS[dialect]

  void t.test(`25: a failed stream closed its socket without an error: ${dialect}`, async (t) => {
    // https://github.com/mozilla-ai/any-llm/issues/847; https://github.com/Portkey-AI/gateway/issues/1143
    for (const mode of ['reset', 'eof', 'chunk']) {
      const restore = emulator.script({ fault: { kind: 'cut', event: 8, mode } })
      const events = eventsOf(await textUntilEnd(await ask(model, LONG, { stream: true })))
      restore()
      t.match(JSON.parse(events.at(-1)?.data ?? ''), { error: { kind: /^upstream_/ } }, mode)
      t.ok(events.length > 2, 'after the received output')
      t.notOk(events.some(({ data }) => data === '[DONE]'))
    }
  })

  void t.test(`26: an error in the first event of a 200 was streamed: ${dialect}`, async (t) => {
    // https://github.com/maximhq/bifrost/issues/4970
    const restore = emulator.script({ fault: { kind: 'error', event: 0 } })
    const response = await ask(model, 'hi', { stream: true })
    const body = objectOf(await response.json())
    restore()
    t.ok(response.status >= 429, 'a status, so that another try is possible')
    t.match(body, { error: { kind: /^upstream_/ } })
    t.match(response.headers.get('content-type'), 'application/json')
  })

  void t.test(`27: a retry after output repeated the text: ${dialect}`, async (t) => {
    // A retry is allowed only before the first content.
    const before = emulator.ledger.length
    const restore = emulator.script({ times: 1, fault: { kind: 'cut', event: 8, mode: 'reset' } })
    const text = await textUntilEnd(await ask(model, LONG, { stream: true }))
    restore()
    t.equal(emulator.ledger.length, before + 1, 'no second attempt')
    t.equal(text.split('"role":"assistant"').length, 2, 'one beginning')
  })

  void t.test(`54: the upstream kept generating for a client that had left: ${dialect}`, async (t) => {
    // https://github.com/BerriAI/litellm/issues/13774, /17364, /30245, /31499, /37140
    const phases = [
      { stream: true, content: 'wait [[fault: hang]]' },
      { stream: false, content: 'wait [[fault: hang]]' },
      { stream: true, content: LONG },
    ]
    for (const { stream, content } of phases) {
      const leaving = new AbortController()
      const lines = gateway.lines.length
      const answer = ask(model, content, { stream, signal: leaving.signal })
      const ended = answer.then(textUntilEnd, () => '')
      await until(() => emulator.open() === 1)
      if (content === LONG) await until(() => (emulator.ledger.at(-1)?.bytesSent ?? 0) > 500)
      leaving.abort()
      await ended
      await until(() => emulator.open() === 0)
      t.equal(emulator.ledger.at(-1)?.outcome, 'client_closed', `${String(stream)} ${content}`)
      await until(() => gateway.lines.length > lines)
    }
  })

  void t.test(`55: a client that left counted as a failure of the provider: ${dialect}`, async (t) => {
    // https://github.com/BerriAI/litellm/issues/25776
    const count = (kind: string): Promise<number> =>
      series(gateway, `sluice_attempts_total{upstream="${name}",kind="${kind}"}`)
    const kinds = ['upstream_failed', 'upstream_timeout', 'upstream_truncated', 'upstream_malformed']
    const failures = await Promise.all(kinds.map(count))
    const clientGoneCount = await count('client_gone')
    const lines = gateway.lines.length
    const leaving = new AbortController()
    const answer = ask(model, 'wait [[fault: hang]]', {
      stream: true,
      signal: leaving.signal,
    }).catch(() => null)
    await until(() => emulator.open() === 1)
    leaving.abort()
    await answer
    await until(() => gateway.lines.length > lines)
    t.match(gateway.lines.at(-1), { status: 499, outcome: 'client_gone' })
    t.equal(await count('client_gone'), clientGoneCount + 1, 'counted as its own kind')
    t.same(await Promise.all(kinds.map(count)), failures)
    t.equal((await ask(model, 'hi', { stream: false })).status, 200, 'and the next is served')
  })

  void t.test(`70: a body of many megabytes was encoded again for each use: ${dialect}`, async (t) => {
    // Bodies with base64 images and files have 20 to 100 MB.
    const upstreamCodec = upstream(dialect)
    const real = upstreamCodec.encodeRequest.bind(upstreamCodec)
    let encoded = 0
    t.teardown(() => void Object.assign(upstreamCodec, { encodeRequest: real }))
    Object.assign(upstreamCodec, {
      encodeRequest: (...given: Parameters<typeof real>) => {
        encoded += 1
        return real(...given)
      },
    })
    const data = 'A'.repeat(16 * 1024 * 1024)
    const url = `data:image/png;base64,iVBORw0KGgo${data}`
    const content = [{ type: 'image_url', image_url: { url } }]
    const response = await gateway.chat({ model, messages: [{ role: 'user', content }] })
    t.equal(response.status, 200)
    t.match(await response.text(), 'You sent 1 image')
    t.ok((emulator.ledger.at(-1)?.bodyBytes ?? 0) > data.length, 'it arrived whole')
    t.equal(encoded, dialect === 'openai-chat' ? 0 : 1, 'bytes pass, or are written once')
  })
}
