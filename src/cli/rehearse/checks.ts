/** The checks of a rehearsal, in the order of its table. A check fails with a reason. */
import type { Reply, ToolBlock } from '../../formats/chat/fold.js'
import { isObject, type JsonObject } from '../../base/json.js'
import type { ChatRequest, Message, UserPart } from '../../formats/chat/request.js'
import type { ClientError } from './client-format.js'
import { NO_SUCH_MODEL, WITH_WRONG_KEY } from './rehearsal-gateway.js'
import { Mismatch, type RehearsalClient } from './rehearsal-client.js'

/** The outcome of a check that does not fail; `loss`: the upstream works without this feature. */
export interface CheckOutcome {
  readonly result: 'pass' | 'loss' | 'skipped'
  /** Additional information; may be empty. */
  readonly detail: string
}

/** One check. Throws `Mismatch` if the upstream fails it. */
interface Check {
  readonly name: string
  run(client: RehearsalClient): Promise<CheckOutcome>
}

export const PASSED: CheckOutcome = { result: 'pass', detail: '' }
const MAX_TOKENS = 1_024
/** Reasoning tokens count as output. */
const MAX_TOKENS_REASONING = 3_072
const STOP = '|END|'
/** A red PNG image of 32 by 32 pixels, in base64. */
export const PICTURE =
  'iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAKklEQVR42mO4IyJCU8QwasGoBaMWjFowasGoBaMWjFowasGoBaMWDBULAJ3LED19/LmKAAAAAElFTkSuQmCC'
const CITY = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const PARROT: JsonObject = {
  type: 'object',
  properties: { name: { type: 'string' }, size: { type: 'integer' } },
  required: ['name', 'size'],
  additionalProperties: false,
}

/** The conformance checks. */
export const CHECKS: readonly Check[] = [
  { name: 'text', run: (client) => text(client, false) },
  { name: 'stream', run: (client) => text(client, true) },
  { name: 'stop', run: stop },
  { name: 'tools', run: tools },
  { name: 'parallel tools', run: parallelTools },
  { name: 'image', run: image },
  { name: 'JSON schema', run: jsonSchema },
  { name: 'reasoning', run: reasoning },
  { name: 'usage', run: usage },
  { name: 'errors', run: errors },
  { name: 'cancellation', run: cancellation },
]

async function text(client: RehearsalClient, stream: boolean): Promise<CheckOutcome> {
  const reply = await client.request(requestOf(client, 'Say hello in one short sentence.', { stream }))
  expectText(reply)
  expectReason(reply, 'stop')
  return PASSED
}

async function stop(client: RehearsalClient): Promise<CheckOutcome> {
  const prompt = `Repeat this line exactly, without anything else: alpha bravo ${STOP} charlie`
  const reply = await client.request(requestOf(client, prompt, { stop: [STOP] }))
  const text = expectText(reply)
  if (text.includes(STOP) || text.includes('charlie')) {
    throw new Mismatch('the reply continues after the stop sequence')
  }
  expectReason(reply, 'stop')
  return PASSED
}

/** One call, and the reply to its result. */
async function tools(client: RehearsalClient): Promise<CheckOutcome> {
  const prompt = 'What is the weather in Paris? Use the tool get_weather.'
  const request = requestOf(client, prompt, { tools: [WEATHER] })
  const reply = await client.request(request)
  const [call, ...more] = callsOf(reply)
  if (call === undefined) throw new Mismatch('the reply has no tool call')
  if (more.length > 0) throw new Mismatch(`the reply has ${more.length + 1} tool calls instead of one`)
  expectCall(call, 'get_weather')
  expectReason(reply, 'tool-use')
  const secondReply = await client.request({
    ...request,
    messages: [...request.messages, ...turnOf(reply)],
  })
  expectText(secondReply)
  return PASSED
}

const WEATHER = { name: 'get_weather', description: 'The weather in a city', parameters: CITY }
const TIME = { name: 'get_time', description: 'The local time in a city', parameters: CITY }

async function parallelTools(client: RehearsalClient): Promise<CheckOutcome> {
  const prompt = 'Call get_weather for Paris and get_time for Paris in parallel, in one turn.'
  const request = requestOf(client, prompt, { tools: [WEATHER, TIME], stream: true })
  const calls = callsOf(await client.request(request))
  if (calls.length !== 2) throw new Mismatch(`the reply has ${calls.length} tool calls instead of two`)
  for (const name of ['get_weather', 'get_time']) {
    const call = calls.find((each) => each.name === name)
    if (call === undefined) throw new Mismatch(`the tool ${name} is not called`)
    expectCall(call, name)
  }
  if (new Set(calls.map(({ id }) => id)).size !== 2) throw new Mismatch('both calls have the same id')
  return PASSED
}

async function image(client: RehearsalClient): Promise<CheckOutcome> {
  if (client.facts.vision === false) return skipped('the catalogue has no images for this model')
  const picture: UserPart = {
    type: 'image',
    source: { kind: 'base64', mediaType: 'image/png', data: PICTURE },
  }
  const question: UserPart = { type: 'text', text: 'Which colour fills it? One word.' }
  const request = requestOf(client, '')
  const messages: Message[] = [{ role: 'user', index: 0, parts: [picture, question] }]
  const text = expectText(await client.request({ ...request, messages }))
  // The emulator does not decode images: it reports their number.
  if (/\bred\b/i.test(text) || text.includes('1 image (image/png)')) return PASSED
  throw new Mismatch('the reply does not name the colour of the picture')
}

async function jsonSchema(client: RehearsalClient): Promise<CheckOutcome> {
  const request = requestOf(client, 'Describe a parrot: its name, and its size in centimetres.')
  const format = { type: 'json-schema', name: 'parrot', schema: PARROT, strict: true } as const
  const text = expectText(await client.request({ ...request, responseFormat: format }))
  const value = jsonIn(text)
  const matches = typeof value['name'] === 'string' && Number.isInteger(value['size'])
  if (!matches || Object.keys(value).length !== 2) {
    throw new Mismatch('the reply does not match the schema')
  }
  return PASSED
}

async function reasoning(client: RehearsalClient): Promise<CheckOutcome> {
  if (client.facts.reasoning === false) return skipped('the catalogue has no reasoning for this model')
  const request = requestOf(client, 'How many Sundays has March 2026?', { stream: true })
  const reply = await client.request({
    ...request,
    reasoningEffort: 'low',
    maxOutputTokens: MAX_TOKENS_REASONING,
  })
  expectText(reply)
  const hasReasoning = reply.blocks.some(({ type }) => type === 'thinking')
  if (hasReasoning || (reply.usage.reasoning ?? 0) > 0) return PASSED
  if (client.facts.reasoning === true) {
    throw new Mismatch('the catalogue lists reasoning for the model, but the reply contains none')
  }
  return {
    result: 'loss',
    detail: 'the reply contains neither reasoning text nor reasoning tokens',
  }
}

/** For a whole reply and a stream: in the client's format, and reported by the upstream itself. */
async function usage(client: RehearsalClient): Promise<CheckOutcome> {
  for (const stream of [false, true]) {
    const what = stream ? 'the stream' : 'the whole reply'
    const { usage: counts, entry } = await client.request(
      requestOf(client, 'Say goodbye in one short sentence.', { stream, includeUsage: true }),
    )
    const { input = 0, output = 0 } = counts
    if (input < 1 || output < 1) throw new Mismatch(`${what} has no token counts`)
    if (entry === null) throw new Mismatch(`${what} has no ledger entry`)
    if (entry.source !== 'reported') {
      throw new Mismatch(`the upstream reports no token counts for ${what}, so the gateway estimates them`)
    }
  }
  return PASSED
}

/** An unknown model is the client's error. Some upstreams serve any name; they must refuse a wrong key. */
async function errors(client: RehearsalClient): Promise<CheckOutcome> {
  const request = requestOf(client, 'Hello.')
  const { status, error } = await client.send({ ...request, model: NO_SUCH_MODEL })
  if (status !== 200) {
    expectError(error, status)
    if (status < 400 || status > 499) {
      throw new Mismatch(`status ${status} for a model that does not exist instead of 4xx`)
    }
    return PASSED
  }
  if (!client.hasKey) {
    return { result: 'loss', detail: 'the upstream serves any model name, and needs no key' }
  }
  const withWrongKey = await client.send({ ...request, model: WITH_WRONG_KEY })
  if (withWrongKey.status === 200) {
    throw new Mismatch('the upstream replies for a model that does not exist, and to a wrong key')
  }
  expectError(withWrongKey.error, withWrongKey.status)
  return PASSED
}

function expectError(error: ClientError | null, status: number): void {
  if (error !== null && error.kind !== '') return
  throw new Mismatch(`status ${status} without an error in the client's format`)
}

async function cancellation(client: RehearsalClient): Promise<CheckOutcome> {
  // Models ignore the last words of the prompt; they make the emulator reply slowly.
  const prompt = 'Count from 1 to 200, one number per line. [[words: 200]] [[pace: 20]]'
  const { failure, error, status, entry } = await client.disconnect(
    requestOf(client, prompt, { stream: true }),
  )
  if (error !== null) throw new Mismatch(`${status} ${error.kind}: ${error.message}`)
  if (failure !== null) throw new Mismatch(failure)
  if (entry === null) throw new Mismatch('the gateway does not notice that the client has disconnected')
  if (entry.outcome === 'ok') {
    return { result: 'loss', detail: 'the reply was complete before it could be cancelled' }
  }
  if (entry.outcome !== 'client_gone') throw new Mismatch(`the request ended as ${entry.outcome}`)
  return PASSED
}

function skipped(detail: string): CheckOutcome {
  return { result: 'skipped', detail }
}

function requestOf({ facts }: RehearsalClient, prompt: string, more: Partial<ChatRequest> = {}): ChatRequest {
  return {
    model: facts.id,
    messages: [{ role: 'user', index: 0, parts: [{ type: 'text', text: prompt }] }],
    stream: false,
    includeUsage: more.stream === true,
    tools: [],
    maxOutputTokens: MAX_TOKENS,
    rest: {},
    ...more,
  }
}

/** The model's turn with its call, and the result. */
function turnOf(reply: Reply): Message[] {
  const calls = callsOf(reply)
  const thoughts = reply.blocks.flatMap((block) => (block.type === 'thinking' ? [block] : []))
  return [
    {
      role: 'assistant',
      index: 1,
      parts: thoughts,
      toolCalls: calls.map(({ id, name, json, signature }) => {
        return { id, name, arguments: json, ...(signature === undefined ? {} : { signature }) }
      }),
    },
    ...calls.map(({ id }, at): Message => {
      const parts: UserPart[] = [{ type: 'text', text: '{"temperature_celsius": 21}' }]
      return { role: 'tool', index: at + 2, callId: id, parts }
    }),
  ]
}

function callsOf({ blocks }: Reply): ToolBlock[] {
  return blocks.flatMap((block) => (block.type === 'tool' ? [block] : []))
}

function expectText({ blocks }: Reply): string {
  const text = blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
  if (text.trim() === '') throw new Mismatch('the reply has no text')
  return text
}

function expectReason({ reason, raw }: Reply, expected: Reply['reason']): void {
  if (reason !== expected) throw new Mismatch(`the reply ends with ${raw ?? reason}, not with ${expected}`)
}

function expectCall({ name, json, id }: ToolBlock, expected: string): void {
  if (name !== expected) throw new Mismatch(`the tool ${name} is called, not ${expected}`)
  if (id === '') throw new Mismatch('the call has no id')
  if (typeof jsonIn(json)['city'] !== 'string') {
    throw new Mismatch(`the arguments of ${name} do not match its schema`)
  }
}

function jsonIn(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return value
  } catch {
    // Reported below.
  }
  throw new Mismatch('the reply is not a JSON object')
}
