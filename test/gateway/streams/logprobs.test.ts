/**
 * Goal: log probabilities of Gemini and Responses are returned in the form of OpenAI's chat, whole and
 * streamed, with their text; if a model reports none, a loss is reported.
 * Method: requests through a gateway to the emulated providers, and decoders with the contents of recordings.
 */
import t from 'tap'
import { Fold } from '../../../src/formats/chat/fold.js'
import { arrayOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../../../src/base/json.js'
import { ask, isComplete, question } from '../../faults/scene.js'
import { startGateway } from '../../helpers/gateway.js'
import { client, upstream } from '../../properties/transcript-streams.js'

/** The text and the tokens of all choices with index 0. */
function tokensOf(data: readonly JsonObject[]): { text: string; tokens: JsonObject[] } {
  let text = ''
  const tokens: JsonObject[] = []
  for (const chunk of data) {
    for (const choice of arrayOf(chunk.choices).map(objectOf)) {
      text += stringOf(objectOf(choice.delta ?? choice.message).content) ?? ''
      tokens.push(...arrayOf(objectOf(choice.logprobs).content).map(objectOf))
    }
  }
  return { text, tokens }
}

for (const [name, model] of [
  ['Gemini', 'gemini-2.5-flash'],
  ['Responses', 'gpt-4.1'],
] as const) {
  void t.test(`${name}: the tokens of the text, with their alternatives`, async (t) => {
    const gateway = await startGateway(t)
    const found: JsonValue[] = []
    for (const stream of [false, true]) {
      for (const top of [undefined, 2]) {
        const more = { logprobs: true, ...(top === undefined ? {} : { top_logprobs: top }) }
        const seen = await ask(gateway, question(model, stream, { text: 'Hellö', ...more }))
        t.equal(seen.status, 200, seen.body)
        t.ok(isComplete(seen))
        const { text, tokens } = tokensOf(seen.data)
        t.equal(tokens.map(({ token }) => stringOf(token)).join(''), text)
        for (const { token, logprob, bytes, top_logprobs: rivals } of tokens) {
          t.type(logprob, 'number')
          t.same(bytes, [...Buffer.from(stringOf(token) ?? '')])
          t.equal(arrayOf(rivals).length, top ?? 0)
        }
        if (top !== undefined) found.push(tokens)
      }
    }
    t.same(found[0], found[1], 'a stream tells the same')
    const plain = await ask(gateway, question(model, false))
    t.match(arrayOf(plain.data[0]?.choices)[0], { logprobs: null })
  })
}

void t.test('a model without log probabilities is reported as a loss', async (t) => {
  const gateway = await startGateway(t)
  const refused = async (model: string): Promise<void> => {
    const response = await gateway.chat(question(model, false, { logprobs: true }))
    t.equal(response.status, 400, model)
    t.match(await response.json(), { error: { param: 'logprobs' } })
  }
  await refused('gemini-3.5-flash')
  await refused('claude-haiku-4-5')
})

/** The reply for these bodies or events. */
function translated(
  dialect: 'gemini' | 'openai-responses',
  frames: readonly JsonObject[],
): ReturnType<Fold['reply']> {
  const body = { model: 'm', messages: [{ role: 'user', content: 'q' }], logprobs: true }
  const request = client.decodeRequest({ ...body, top_logprobs: 1 }, { operation: 'chat' })
  const fold = new Fold()
  const decoder = upstream(dialect).newDecoder(request, fold)
  for (const frame of frames) decoder.frame('', JSON.stringify(frame))
  decoder.end()
  return fold.reply()
}

const token = (text: string, logprob: number): JsonObject => ({ token: text, logprob })

void t.test('Gemini: each text has its own tokens, and the requested number of alternatives', (t) => {
  const geminiChunk = (text: string, chosen: string): JsonObject => ({
    candidates: [
      {
        content: { role: 'model', parts: text === '' ? [] : [{ text }] },
        logprobsResult: {
          chosenCandidates: [{ token: chosen, tokenId: 7, logProbability: -0.5 }],
          topCandidates: [{ candidates: ['x', 'y'].map((it) => ({ token: it, logProbability: -0.25 })) }],
        },
        ...(text === '' ? { finishReason: 'STOP' } : {}),
      },
    ],
  })
  const reply = translated('gemini', [
    geminiChunk('Hi', 'Hi'),
    geminiChunk(' all', ' all'),
    geminiChunk('', '.'),
  ])
  const rival = { token: 'x', logprob: -0.25, bytes: [120] }
  t.same(reply?.blocks, [
    {
      type: 'text',
      text: 'Hi all',
      citations: [],
      logprobs: ['Hi', ' all', '.'].map((it) => {
        return { token: it, logprob: -0.5, bytes: [...Buffer.from(it)], top: [rival] }
      }),
    },
  ])
  t.end()
})

void t.test('Responses: log probabilities of the last event are neither lost nor repeated', (t) => {
  const place = { output_index: 0, content_index: 0 }
  const textDelta = (text: string, ...logprobs: JsonObject[]): JsonObject => {
    return { type: 'response.output_text.delta', ...place, delta: text, logprobs }
  }
  const whole = [token('a', -1), token('b', -2), { ...token('bytes:\\xf0', -3), top_logprobs: [] }]
  const part = { type: 'output_text', text: 'abc', annotations: [], logprobs: whole }
  const item = { type: 'message', id: 'msg_1', role: 'assistant', content: [part] }
  const output = [item]
  const reply = translated('openai-responses', [
    { type: 'response.created', response: { id: 'resp_1', model: 'm' } },
    { type: 'response.output_item.added', ...place, item: { ...item, content: [] } },
    textDelta('a', token('a', -1)),
    textDelta('b', token('b', -2)),
    { type: 'response.output_text.done', ...place, text: 'abc' },
    { type: 'response.output_item.done', ...place, item },
    { type: 'response.completed', response: { id: 'resp_1', status: 'completed', output } },
  ])
  const [block] = reply?.blocks ?? []
  t.match(block, { type: 'text', text: 'abc' })
  const tokens = block?.type === 'text' ? (block.logprobs ?? []) : []
  t.same(
    tokens.map(({ token, logprob, bytes }) => [token, logprob, bytes]),
    [
      ['a', -1, [97]],
      ['b', -2, [98]],
      ['bytes:\\xf0', -3, null],
    ],
  )
  t.end()
})
