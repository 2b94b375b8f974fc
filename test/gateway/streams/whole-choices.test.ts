/**
 * Goal: with `n` above 1 the client gets that number of choices also across formats if the model supports it,
 * whole and streamed, each with its own calls, finish and reasoning; missing choices are reported.
 * Method: requests through a gateway to the emulated Gemini, and to an upstream whose replies the test sets.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { WholeChoices, translateReply } from '../../../src/gateway/streams/whole-reply.js'
import { ask, isComplete, question } from '../../faults/scene.js'
import { httpReply, startSocketUpstream } from '../../faults/socket-upstream.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { client, SEED, transcripts, upstream } from '../../properties/transcript-streams.js'

const MODEL = 'gemini-2.5-flash'
const USAGE = { stream_options: { include_usage: true } }

interface SeenChoice {
  text: string
  calls: JsonObject[]
  finish: string
}

/** The choices of chunks, by their index. */
function choicesOf(chunks: readonly JsonObject[]): Map<number, SeenChoice> {
  const choices = new Map<number, SeenChoice>()
  for (const chunk of chunks) {
    for (const choice of arrayOf(chunk.choices).map(objectOf)) {
      const { index } = choice
      if (typeof index !== 'number') continue
      const one = choices.get(index) ?? { text: '', calls: [], finish: '' }
      choices.set(index, one)
      const message = objectOf(choice.delta ?? choice.message)
      one.text += stringOf(message.content) ?? ''
      one.calls.push(...arrayOf(message.tool_calls).map(objectOf))
      one.finish ||= stringOf(choice.finish_reason) ?? ''
    }
  }
  return choices
}

/** A gateway with a Gemini upstream that replies with these candidates. */
async function gatewayFor(t: Test, candidates: readonly object[], events = false): Promise<TestGateway> {
  const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 9 }
  const body = JSON.stringify({ candidates, usageMetadata, modelVersion: MODEL, responseId: 'r' })
  const upstream = await startSocketUpstream(t, ({ socket }) => {
    socket.write(
      events
        ? httpReply(200, ['content-type: text/event-stream'], `data: ${body}\r\n\r\n`)
        : httpReply(200, ['content-type: application/json'], body),
    )
  })
  return startGateway(t, { upstreams: { gemini: upstream.url } })
}

function candidate(index: number, parts: readonly object[], finishReason = 'STOP'): object {
  return { index, content: { role: 'model', parts }, finishReason }
}

const call = (name: string): object => ({
  functionCall: { name, args: { at: name } },
  thoughtSignature: `signed ${name}`,
})

void t.test('Gemini gets a whole request for several choices, and returns them', async (t) => {
  const gateway = await startGateway(t)
  for (const stream of [false, true]) {
    const more = { n: 3, ...(stream ? USAGE : {}) }
    const seen = await ask(gateway, question(MODEL, stream, { ...more }))
    t.equal(seen.status, 200, seen.body)
    t.ok(isComplete(seen))
    const entry = gateway.emulator.ledger.at(-1)
    t.match(entry?.path, /:generateContent$/, 'no stream of several')
    t.equal(objectOf(entry?.body?.generationConfig).candidateCount, 3)
    const choices = choicesOf(seen.data)
    t.same([...choices.keys()], [0, 1, 2])
    for (const { text, finish } of choices.values()) {
      t.match(text, /emulated reply/)
      t.equal(finish, 'stop')
    }
    const counts = seen.data.map(({ usage }) => usage).filter(Boolean)
    t.equal(counts.length, 1, 'counted once')
    t.match(counts[0], { prompt_tokens: Number, completion_tokens: Number })
  }
})

void t.test('each choice is independent', async (t) => {
  const candidates = [
    candidate(1, [call('look'), call('touch')]),
    candidate(0, [{ text: 'Hm.', thought: true }, { text: 'Yes.' }]),
    candidate(2, [{ text: 'Half' }], 'MAX_TOKENS'),
  ]
  for (const [stream, events] of [
    [false, false],
    [true, false],
    [false, true],
    [true, true],
  ]) {
    const gateway = await gatewayFor(t, candidates, events)
    const seen = await ask(gateway, question(MODEL, stream === true, { n: 3 }))
    t.ok(isComplete(seen), seen.body)
    const choices = choicesOf(seen.data)
    t.match(choices.get(0), { text: 'Yes.', finish: 'stop' })
    t.match(choices.get(2), { text: 'Half', finish: 'length' })
    const called = choices.get(1)
    t.match(called, { text: '', finish: 'tool_calls' })
    const names = called?.calls.map((each) => objectOf(each.function).name).filter(Boolean)
    t.same(names, ['look', 'touch'])
  }
})

void t.test(
  'missing choices are reported; if all are missing, the client gets the first error',
  async (t) => {
    const one = [candidate(0, [{ text: 'Yes.' }]), candidate(2, [], 'MALFORMED_FUNCTION_CALL')]
    const gateway = await gatewayFor(t, one)
    for (const stream of [false, true]) {
      const response = await gateway.chat(question(MODEL, stream, { n: 3 }))
      t.equal(response.status, 200)
      t.equal(response.headers.get('x-sluice-lost'), 'reply.choices')
      const text = await response.text()
      t.match(text, /"index":0/)
      t.notMatch(text, /"index":[12]/)
      if (stream) t.match(text, /\[DONE\]/)
    }
    const none = await gatewayFor(t, [candidate(0, [], 'MALFORMED_FUNCTION_CALL')])
    const seen = await none.chat(question(MODEL, false, { n: 2 }))
    t.equal(seen.status, 502)
  },
)

void t.test('if all choices are empty, the request is retried', async (t) => {
  const empty = candidate(1, [])
  const malformed = candidate(0, [], 'MALFORMED_FUNCTION_CALL')
  const good = [candidate(0, [{ text: 'Yes.' }]), candidate(1, [{ text: 'No.' }])]
  for (const stream of [false, true]) {
    const tries = [[malformed, empty], good, [malformed, empty], [malformed]]
    const bodies: string[] = []
    const upstream = await startSocketUpstream(t, ({ socket }, request) => {
      const candidates = tries[bodies.length] ?? good
      const counts = candidates === good ? { candidatesTokenCount: 4 } : {}
      const usageMetadata = { promptTokenCount: 5, ...counts }
      const body = { candidates, usageMetadata, modelVersion: MODEL }
      bodies.push(request.slice(request.indexOf('\r\n\r\n')))
      socket.write(httpReply(200, ['content-type: application/json'], JSON.stringify(body)))
    })
    const gateway = await startGateway(t, { upstreams: { gemini: upstream.url } })
    const more = { n: 2, ...(stream ? USAGE : {}) }
    const seen = await ask(gateway, question(MODEL, stream, { ...more }))
    t.ok(isComplete(seen), seen.body)
    t.same(
      [...choicesOf(seen.data).values()].map(({ text }) => text),
      ['Yes.', 'No.'],
    )
    const usage = seen.data.map((each) => each.usage).findLast(Boolean)
    t.match(usage, { prompt_tokens: 10, completion_tokens: 4 }, 'both tries are paid for')
    t.equal(bodies.length, 2)
    t.equal(bodies[1], bodies[0], 'byte for byte')
    const failed = await gateway.chat(question(MODEL, stream, { ...more }))
    t.equal(failed.status, 502, 'a second failure is the answer')
    t.equal(bodies.length, 4)
  }
})

void t.test('the request is not sent again if one choice has content', async (t) => {
  let requests = 0
  const one = [candidate(0, [], 'MALFORMED_FUNCTION_CALL'), candidate(1, [{ text: 'No.' }])]
  const upstream = await startSocketUpstream(t, ({ socket }) => {
    requests += 1
    const body = JSON.stringify({ candidates: one, modelVersion: MODEL })
    socket.write(httpReply(200, ['content-type: application/json'], body))
  })
  const gateway = await startGateway(t, { upstreams: { gemini: upstream.url } })
  const response = await gateway.chat(question(MODEL, false, { n: 2 }))
  t.equal(response.headers.get('x-sluice-lost'), 'reply.choices')
  t.match(await response.json(), { choices: [{ index: 1, message: { content: 'No.' } }] })
  t.equal(requests, 1)
})

void t.test('calls of several choices have different ids, and each keeps its signature', async (t) => {
  const gateway = await gatewayFor(t, [candidate(0, [call('a')]), candidate(1, [call('b')])])
  const seen = await ask(gateway, question(MODEL, false, { n: 2 }))
  const calls = [...choicesOf(seen.data).values()].flatMap((choices) => choices.calls)
  t.equal(new Set(calls.map(({ id }) => id)).size, 2)
  t.match(calls, [
    { extra_content: { google: { thought_signature: 'signed a' } } },
    { extra_content: { google: { thought_signature: 'signed b' } } },
  ])
})

void t.test('n is refused for a model with a single choice', async (t) => {
  const gateway = await startGateway(t)
  for (const [model, n] of [
    ['gemini-3.5-flash', 2],
    ['claude-haiku-4-5', 2],
    ['gpt-5-pro', 2],
  ] as const) {
    const response = await gateway.chat(question(model, false, { n }))
    t.equal(response.status, 400, model)
    t.match(await response.json(), { error: { param: 'n', message: /^n: / } })
  }
})

void t.test("OpenAI's own choices pass unchanged", async (t) => {
  const gateway = await startGateway(t)
  const seen = await ask(gateway, question('gpt-4o', true, { n: 2, ...USAGE }))
  t.ok(isComplete(seen))
  const order = seen.data.flatMap(({ choices }) => arrayOf(choices).map((it) => objectOf(it).index))
  t.same(order.slice(0, 4), [0, 1, 0, 1])
  const choices = choicesOf(seen.data)
  t.equal(choices.get(0)?.text, choices.get(1)?.text)
})

void t.test('each of several choices is the same as alone', (t) => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'q' }] }
  const one = client.decodeRequest(body, { operation: 'chat' })
  const two = { ...one, candidates: 2 }
  const formats = { upstreamCodec: upstream('gemini'), clientCodec: client, seed: SEED }
  let compared = 0
  for (const { dialect, name } of transcripts) {
    const file = join(process.cwd(), 'test/transcripts', `${name}.reply.json`)
    if (dialect !== 'gemini' || !existsSync(file)) continue
    const body = objectOf(JSON.parse(readFileSync(file, 'utf8')))
    const [only] = arrayOf(body.candidates).map(objectOf)
    const alone = translateReply(body, { ...formats, request: one })
    if (only === undefined || alone.outcome !== 'complete') continue
    compared += 1
    const candidates = [{ ...only, index: 1 }, only]
    const several = WholeChoices.open({ ...formats, request: two })
    several?.read({ ...body, candidates })
    const { body: written = '' } = several?.encode() ?? {}
    // A call of the second choice has its own id.
    const choices = arrayOf(objectOf(JSON.parse(written)).choices).map((it) => JSON.stringify(it))
    const [choice] = arrayOf(objectOf(JSON.parse(alone.body)).choices)
    t.equal(choices[0], JSON.stringify(choice), name)
    const second = choices[1]?.replace('"index":1', '"index":0').replaceAll(/(call_\w+)_1_/g, '$1_')
    t.equal(second, JSON.stringify(choice), name)
  }
  t.ok(compared > 10, `${compared} answers`)
  t.end()
})
