/**
 * Goal: a turn of the model without content, which a client has from a refused, blocked or empty reply, is
 * accepted in each format, and no upstream gets a turn that it refuses for being empty.
 * Method: each client format with each form of such a turn, through upstreams of each format, to a server
 * that records requests.
 */
import t from 'tap'
import { arrayOf, isObject, objectOf, type JsonObject, type JsonValue } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { startRawUpstream } from '../../helpers/raw-upstream.js'
import { AWS_AUTH, usualReply } from '../platforms/capture.js'

/** Upstreams by the name of their model. */
const UPSTREAMS: Readonly<Record<string, string>> = {
  chat: 'dialect: openai-chat, api_key: k',
  responses: 'dialect: openai-responses, api_key: k',
  anthropic: 'dialect: anthropic, api_key: k',
  gemini: 'dialect: gemini, api_key: k',
  converse: `platform: bedrock, dialect: converse, region: eu-west-1, auth: ${AWS_AUTH}`,
  invoke: `platform: bedrock, dialect: anthropic, region: eu-west-1, auth: ${AWS_AUTH}`,
}

/** The turns between two of the user, by the client's format. */
const TURNS: Readonly<Record<string, readonly JsonValue[]>> = {
  chat: [
    { role: 'assistant' },
    { role: 'assistant', content: null },
    { role: 'assistant', content: '' },
    { role: 'assistant', content: [] },
    { role: 'assistant', content: [{ type: 'text', text: '' }] },
    { role: 'assistant', content: null, tool_calls: [] },
    { role: 'assistant', content: null, tool_calls: null, function_call: null },
    { role: 'assistant', content: null, refusal: null, audio: null, annotations: [] },
    { role: 'assistant', content: '', refusal: '' },
    { role: 'assistant', content: null, reasoning_content: 'They greet.' },
    { role: 'assistant', content: null, reasoning: 'They greet.', reasoning_details: [] },
    { role: 'assistant', content: '', reasoning_content: '' },
  ],
  messages: [
    { role: 'assistant' },
    { role: 'assistant', content: null },
    { role: 'assistant', content: '' },
    { role: 'assistant', content: [] },
    { role: 'assistant', content: [{ type: 'text', text: '' }] },
  ],
  responses: [
    { type: 'message', role: 'assistant', content: [] },
    { type: 'message', role: 'assistant', content: '' },
    { type: 'message', role: 'assistant', content: null },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: '' }] },
    { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: '' }] },
    { type: 'reasoning', summary: [{ type: 'summary_text', text: 'They greet.' }] },
    { type: 'web_search_call', id: 'ws_1', status: 'completed' },
  ],
  gemini: [
    { role: 'model' },
    { role: 'model', parts: null },
    { role: 'model', parts: [] },
    { role: 'model', parts: [{ text: '' }] },
    { role: 'model', parts: [{ text: 'They greet.', thought: true }] },
  ],
}

const upstream = await startRawUpstream(t, usualReply)
const gateway = await startGateway(t)
const names = Object.keys(UPSTREAMS)
const settings = names.map(
  (name) => `  t-${name}: { base_url: "${upstream.origin}", ${UPSTREAMS[name] ?? ''} }\n`,
)
const routes = names.map((name) => `  - { prefix: "to-${name}", upstream: t-${name} }\n`)
gateway.add(settings.join(''), routes.join(''))

function requestOf(format: string, model: string, turn: JsonValue): [path: string, body: JsonObject] {
  const around = (one: JsonValue, other: JsonValue): JsonValue[] => [one, turn, other]
  const [hi, go] = ['Hi', 'Go on'].map((content) => ({ role: 'user', content }))
  const turns = around(hi ?? null, go ?? null)
  switch (format) {
    case 'chat':
      return ['/v1/chat/completions', { model, max_tokens: 9, messages: turns }]
    case 'messages':
      return ['/v1/messages', { model, max_tokens: 9, messages: turns }]
    case 'responses':
      return ['/v1/responses', { model, store: false, max_output_tokens: 99, input: turns }]
    default: {
      const contents = around(
        { role: 'user', parts: [{ text: 'Hi' }] },
        { role: 'user', parts: [{ text: 'Go' }] },
      )
      return [
        `/v1beta/models/${model}:generateContent`,
        { contents, generationConfig: { maxOutputTokens: 9 } },
      ]
    }
  }
}

/** Turns of the model that the upstream would refuse as empty. */
function emptyTurns(body: JsonObject): JsonValue[] {
  const turns = [body['messages'], body['contents'], body['input']].flatMap(arrayOf).map(objectOf)
  return turns.filter(({ role, content, parts, tool_calls: calls }) => {
    if (role !== 'assistant' && role !== 'model') return false
    const inner = content ?? parts ?? []
    const isText = typeof inner === 'string' && inner !== ''
    const blocks = arrayOf(inner).map(objectOf)
    const isEmpty = blocks.every((block) => (block['text'] ?? block['refusal']) === '')
    return !isText && isEmpty && arrayOf(calls).length === 0
  })
}

for (const [format, turns] of Object.entries(TURNS)) {
  for (const name of names) {
    void t.test(`${format} to ${name}`, async (t) => {
      for (const turn of turns) {
        const [path, body] = requestOf(format, `to-${name}`, turn)
        upstream.requests.length = 0
        const response = await fetch(gateway.origin + path, {
          method: 'POST',
          headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
        const about = `${JSON.stringify(turn)} ${await response.text()}`
        t.equal(response.status, 200, about)
        const sent = objectOf(JSON.parse(upstream.requests[0]?.body.toString() ?? '{}') as JsonValue)
        // The provider takes what it has sent: Gemini a blank text, OpenAI all of its own format.
        const isOwn = format === name && (format === 'responses' || about.includes('"text":""'))
        if (!isOwn) t.same(emptyTurns(sent), [], about)
      }
    })
  }
}

void t.test('a refusal is the content for upstreams that do not know the member', async (t) => {
  const turn = { role: 'assistant', content: null, refusal: 'I cannot help with that.' }
  for (const name of names) {
    const [path, body] = requestOf('chat', `to-${name}`, turn)
    upstream.requests.length = 0
    const response = await fetch(gateway.origin + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    t.equal(response.status, 200, await response.text())
    const sent = objectOf(JSON.parse(upstream.requests[0]?.body.toString() ?? '{}') as JsonValue)
    t.match(JSON.stringify(sent), turn.refusal, name)
    t.same(emptyTurns(sent), [], name)
  }
})

/** The request that the upstream gets for a chat with the turn. */
async function sentFor(name: string, turn: JsonValue, after: readonly JsonValue[] = []): Promise<string> {
  const [path, body] = requestOf('chat', `to-${name}`, turn)
  body['messages'] = [...arrayOf(body['messages']).slice(0, 2), ...after, { role: 'user', content: 'Go on' }]
  upstream.requests.length = 0
  const response = await fetch(gateway.origin + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const reply = await response.text()
  if (response.status !== 200) throw new Error(`${name}: ${reply}`)
  return upstream.requests[0]?.body.toString() ?? ''
}

void t.test('turns of sound are sent to other models as their transcript, or left out', async (t) => {
  const audio = { id: 'audio_1', expires_at: 1, data: 'UklGRg==', transcript: 'The tide is high.' }
  for (const name of names) {
    // An upstream of OpenAI has the sound itself.
    if (name === 'chat' || name === 'responses') continue
    const turn = { role: 'assistant', content: null, audio }
    t.match(await sentFor(name, turn), audio.transcript, name)
    const bare = await sentFor(name, { role: 'assistant', content: null, audio: { id: 'audio_1' } })
    t.same(emptyTurns(objectOf(JSON.parse(bare))), [], name)
  }
})

void t.test('an empty turn to be continued is reported where it is dropped', async (t) => {
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: '', prefix: true },
  ]
  for (const name of names) {
    const response = await gateway.chat({ model: `to-${name}`, max_tokens: 99, messages })
    t.equal(response.status, 200, await response.text())
    const isOwn = name === 'chat'
    t.equal(response.headers.get('x-sluice-lost'), isOwn ? null : 'messages.prefix', name)
  }
})

void t.test(
  'a turn to be continued reaches upstreams that continue it, and is reported elsewhere',
  async (t) => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Once upon', prefix: true },
    ]
    for (const name of names) {
      const response = await gateway.chat({ model: `to-${name}`, max_tokens: 99, messages })
      const text = await response.text()
      const lost = response.headers.get('x-sluice-lost')
      if (name === 'responses' || name === 'gemini') t.equal(lost, 'messages.prefix', `${name}: ${text}`)
      else t.notMatch(lost ?? '', /prefix/, `${name}: ${text}`)
    }
  },
)

void t.test('arguments that are null, empty or an object are an object', async (t) => {
  for (const name of names) {
    for (const given of [null, '', 'null', {}]) {
      // The vendor judges an empty text of its own format.
      if (name === 'chat' && (given === '' || isObject(given))) continue
      const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: given } }
      const result = { role: 'tool', tool_call_id: 'call_1', content: 'ok' }
      const turn = { role: 'assistant', content: null, tool_calls: [call] }
      const sent = await sentFor(name, turn, [result])
      t.match(sent, /"(?:arguments|input|args)": ?(?:"\{\}"|\{\})/, `${name}: ${sent}`)
    }
  }
})
