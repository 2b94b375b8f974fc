/**
 * Goal: the emulator accepts reasoning state that clients send back, and refuses invalid state with the
 * providers' messages.
 * Method: a reply of each provider, sent back unchanged, altered, and without the required signature.
 */
import t from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { startEmulator } from '../../src/emulator/server.js'

const emulator = await startEmulator({ models: 'any' })
t.teardown(() => emulator.close())
const { anthropic, gemini, openai } = emulator.baseUrls

async function post(url: string, body: JsonObject, beta = ''): Promise<[number, JsonObject]> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': 'k',
      'x-goog-api-key': 'k',
      authorization: 'Bearer k',
      'anthropic-version': '2026-10-21',
      ...(beta === '' ? {} : { 'anthropic-beta': beta }),
    },
    body: JSON.stringify(body),
  })
  return [response.status, objectOf(await response.json())]
}

function messageOf(reply: JsonObject): string {
  return stringOf(objectOf(reply.error).message) ?? ''
}

const ASKED = 'Use look, please'

void t.test('Anthropic: thinking must be unchanged, and present if required', async (t) => {
  const tools = [{ name: 'look', input_schema: { type: 'object' } }]
  const question = { role: 'user', content: ASKED }
  const budget = { type: 'enabled', budget_tokens: 1_024 }
  const ask = (messages: JsonObject[], more: JsonObject = {}, beta = '') =>
    post(
      `${anthropic}/messages`,
      { model: 'claude-opus-5-5', max_tokens: 4_096, tools, thinking: budget, ...more, messages },
      beta,
    )
  const [, first] = await ask([question])
  const [thinking = {}, call = {}] = arrayOf(first.content).map(objectOf)
  t.match([thinking, call], [{ type: 'thinking' }, { type: 'tool_use' }])
  const result = { type: 'tool_result', tool_use_id: call.id ?? '', content: 'ok' }
  const after = (...content: JsonObject[]): JsonObject[] => [
    question,
    { role: 'assistant', content },
    { role: 'user', content: [result] },
  ]
  t.equal((await ask(after(thinking, call)))[0], 200)
  const wrong: [JsonObject[], JsonObject, RegExp][] = [
    [after({ ...thinking, thinking: 'other' }, call), {}, /Invalid `signature` in `thinking` block$/],
    [after({ ...thinking, signature: 'c2ln' }, call), {}, /Invalid `signature`/],
    [after({ type: 'thinking', thinking: 'x' }, call), {}, /signature: Field required/],
    [after(call), {}, /Expected `thinking` or `redacted_thinking`, but found `tool_use`/],
    [after(thinking, call), { system: 'New.' }, /bound to a different conversation/],
  ]
  for (const [messages, more, why] of wrong) {
    const [status, reply] = await ask(messages, more)
    t.equal(status, 400)
    t.match(messageOf(reply), why)
  }
  const block_binding = { prefix_mismatch_behavior: 'drop_block' }
  const dropping = { system: 'New.', thinking: { ...budget, block_binding } }
  t.equal((await ask(after(thinking, call), dropping))[0], 400, 'only with its beta')
  const beta = 'thinking-binding-controls-2026-08-01'
  t.equal((await ask(after(thinking, call), dropping, beta))[0], 200)
  const older = { model: 'claude-opus-5', system: 'New.' }
  t.equal((await ask(after(thinking, call), older))[0], 200, 'older models do not look')
})

void t.test('Gemini: the first call of the turn needs a signature, and wrong ones are refused', async (t) => {
  const tools = [{ functionDeclarations: [{ name: 'look' }] }]
  const question = { role: 'user', parts: [{ text: ASKED }] }
  const ask = (contents: JsonObject[], model = 'gemini-3.5-flash') =>
    post(`${gemini}/models/${model}:generateContent`, { contents, tools })
  const [, first] = await ask([question])
  const [part = {}] = arrayOf(objectOf(objectOf(arrayOf(first.candidates)[0]).content).parts).map(objectOf)
  const { functionCall = {} } = part
  t.ok(stringOf(part.thoughtSignature))
  const response = { functionResponse: { name: 'look', response: {} } }
  const after = (called: JsonObject): JsonObject[] => [
    question,
    { role: 'model', parts: [called] },
    { role: 'user', parts: [response] },
  ]
  const url = stringOf(part.thoughtSignature)?.replaceAll('+', '-').replaceAll('/', '_') ?? ''
  const stand = 'skip_thought_signature_validator'
  for (const thoughtSignature of [part.thoughtSignature ?? '', url, stand]) {
    t.equal((await ask(after({ functionCall, thoughtSignature })))[0], 200)
  }
  const [status, reply] = await ask(after({ functionCall }))
  t.equal(status, 400)
  t.match(messageOf(reply), /missing a thought_signature in functionCall parts.*`default_api:look`/)
  const [, corrupted] = await ask(after({ functionCall, thoughtSignature: 'c2ln' }))
  t.equal(messageOf(corrupted), 'Corrupted thought signature.')
  t.equal((await ask(after({ functionCall }), 'gemini-2.5-flash'))[0], 200, 'older ones do not ask')
  const later = [...after({ functionCall }), { role: 'model', parts: [{ text: 'ok' }] }, question]
  t.equal((await ask(later))[0], 200, 'nor anyone for turns of the past')
})

void t.test('OpenAI: only its own encrypted reasoning is accepted', async (t) => {
  const include = ['reasoning.encrypted_content']
  const ask = (input: JsonObject[]) =>
    post(`${openai}/responses`, { model: 'gpt-5.6-sol', store: false, include, input })
  const question = { role: 'user', content: 'Hello' }
  const [, first] = await ask([question])
  const [item = {}, outputMessage = {}] = arrayOf(first.output).map(objectOf)
  t.match(item, { type: 'reasoning' })
  const { content } = outputMessage
  const message = { role: 'assistant', content: content ?? [] }
  t.equal((await ask([question, item, message, question]))[0], 200)
  const [status, reply] = await ask([question, { ...item, encrypted_content: 'gAAAwrong' }, message])
  t.equal(status, 400)
  t.match(reply, { error: { code: 'invalid_encrypted_content', message: /could not be verified/ } })
})
