/**
 * Goal: the gateway's reasoning token works in every client format with a field for it: an intact token
 * brings the state back to its upstream, and no other token, nor any text of one, reaches a provider.
 * Method: a call and its result through a whole gateway over emulated providers, which refuse wrong state
 * like the real ones; the client sends its history intact, with damaged tokens, and to models of other
 * formats.
 */
import t, { type Test } from 'tap'
import { arrayOf, objectOf, type JsonObject, type JsonValue } from '../../../src/base/json.js'
import { NestedJson } from '../../../src/formats/wire/json/nested-json.js'
import { readReasoningToken, writeReasoningToken } from '../../../src/formats/wire/reasoning-token.js'
import { startGateway } from '../../helpers/gateway.js'

/** Models that send state, one for each format. */
const MODELS = {
  anthropic: 'claude-haiku-4-5',
  gemini: 'gemini-3.5-flash',
  'openai-responses': 'gpt-5.6-sol',
} as const

type Format = keyof typeof MODELS

const FORMATS = Object.keys(MODELS) as Format[]
const TOKEN = /c2x1aWNl[\w+/=-]*/g
const STATE = /"(?:signature|thoughtSignature|encrypted_content)":"[\w+/=]{40,}"/g

const gateway = await startGateway(t, { more: 'escrow: { enabled: false }' })

/** A client format: the body of a request, and the turns that a reply and a call's result add. */
interface ClientFormat {
  readonly path: (model: string) => string
  readonly body: (model: string, history: readonly JsonValue[]) => JsonObject
  readonly question: JsonValue
  readonly turns: (reply: JsonObject) => JsonValue[]
}

const QUESTION = 'Use get_weather for Rome'
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const NAMED = { name: 'get_weather', description: 'The weather of a city' }

const CLIENTS: Readonly<Record<Format, ClientFormat>> = {
  anthropic: {
    path: () => '/v1/messages',
    body: (model, messages) => ({
      model,
      max_tokens: 4_000,
      // Anthropic requires its own thinking before a call, which a history from another model lacks.
      ...(model === MODELS.anthropic ? {} : { thinking: { type: 'enabled', budget_tokens: 2_000 } }),
      tools: [{ ...NAMED, input_schema: SCHEMA }],
      messages: [...messages],
    }),
    question: { role: 'user', content: QUESTION },
    turns: ({ content = [] }) => {
      const results = arrayOf(content)
        .map(objectOf)
        .filter(({ type }) => type === 'tool_use')
        .map(({ id = '' }) => ({ type: 'tool_result', tool_use_id: id, content: 'sunny' }))
      return [
        { role: 'assistant', content },
        { role: 'user', content: results },
      ]
    },
  },
  gemini: {
    path: (model) => `/v1beta/models/${model}:generateContent`,
    body: (_model, contents) => ({
      contents: [...contents],
      tools: [{ functionDeclarations: [{ ...NAMED, parametersJsonSchema: SCHEMA }] }],
      generationConfig: { thinkingConfig: { thinkingLevel: 'HIGH', includeThoughts: true } },
    }),
    question: { role: 'user', parts: [{ text: QUESTION }] },
    turns: ({ candidates }) => {
      const content = objectOf(objectOf(arrayOf(candidates)[0])['content'])
      const results = arrayOf(content['parts']).flatMap((part) => {
        const { id = '', name = '' } = objectOf(objectOf(part)['functionCall'])
        const functionResponse = { id, name, response: { output: 'sunny' } }
        return name === '' ? [] : [{ functionResponse }]
      })
      return [content, { role: 'user', parts: results }]
    },
  },
  'openai-responses': {
    path: () => '/v1/responses',
    body: (model, input) => ({
      model,
      store: false,
      include: ['reasoning.encrypted_content'],
      reasoning: { effort: 'high' },
      tools: [{ type: 'function', ...NAMED, parameters: SCHEMA }],
      input: [...input],
    }),
    question: { role: 'user', content: QUESTION },
    turns: ({ output }) => [
      ...arrayOf(output),
      ...arrayOf(output)
        .map(objectOf)
        .filter(({ type }) => type === 'function_call')
        .map(({ call_id = '' }) => ({ type: 'function_call_output', call_id, output: 'sunny' })),
    ],
  },
}

async function send(
  { path, body }: ClientFormat,
  model: string,
  history: readonly JsonValue[],
): Promise<{ reply: JsonObject; sent: string }> {
  const response = await fetch(gateway.origin + path(model), {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body(model, history)),
  })
  const text = await response.text()
  if (response.status !== 200) throw new Error(text)
  const sent = JSON.stringify(gateway.emulator.ledger.at(-1)?.body)
  return { reply: objectOf(JSON.parse(text)), sent }
}

/** What a client, or something between, does to a token. */
const CHANGES: Readonly<Record<string, (token: string) => string>> = {
  'changed in the middle': (token) => {
    const at = Math.floor(token.length / 2)
    return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
  },
  'changed at the end': (token) => token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A'),
  'cut in half': (token) => token.slice(0, token.length / 2),
  'cut to its first word': (token) => token.slice(0, 8),
  'of another version': (token) => {
    const text = Buffer.from(token, 'base64').toString('latin1')
    return Buffer.from(text.replace('sluice:1:', 'sluice:2:'), 'latin1').toString('base64')
  },
  'of another origin': (token) => {
    const state = readReasoningToken(token, new NestedJson())
    return writeReasoningToken({ thoughts: [], ...state, origin: 'other' })
  },
}

function changed(history: readonly JsonValue[], change: (token: string) => string): JsonValue[] {
  return JSON.parse(JSON.stringify(history).replace(TOKEN, change)) as JsonValue[]
}

function checkSent(t: Test, sent: string, states: number, name: string): void {
  t.equal((sent.match(STATE) ?? []).length, states, name)
  t.notMatch(sent, TOKEN, `${name}: no token`)
}

for (const format of FORMATS) {
  const client = CLIENTS[format]
  for (const origin of FORMATS.filter((other) => other !== format)) {
    void t.test(`a ${format} client and a model of ${origin}`, async (t) => {
      const { reply } = await send(client, MODELS[origin], [client.question])
      const history = [client.question, ...client.turns(reply)]
      t.match(JSON.stringify(history), TOKEN, 'the client has a token')
      const { sent } = await send(client, MODELS[origin], history)
      // Google signs the call, and calls of the Messages format have no field for it.
      const states = format === 'anthropic' && origin === 'gemini' ? 0 : 1
      checkSent(t, sent, states, 'the state comes back')
      const other = changed(history, (token) => Buffer.from(token, 'base64').toString('base64url'))
      t.same((await send(client, MODELS[origin], other)).sent, sent, 'in the other alphabet too')
      for (const [name, change] of Object.entries(CHANGES)) {
        const damaged = changed(history, change)
        for (const target of FORMATS) {
          const { sent } = await send(client, MODELS[target], damaged)
          checkSent(t, sent, 0, `${name}, sent to ${target}`)
        }
      }
      for (const target of FORMATS.filter((other) => other !== origin)) {
        const { sent } = await send(client, MODELS[target], history)
        checkSent(t, sent, 0, `intact, sent to ${target}`)
      }
    })
  }
}
