/** Inputs of the codec suite: transcripts, models, requests and the events of a reply. */
import type { ChatEvent } from '../../src/formats/chat/event.js'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import type { ModelFacts } from '../../src/formats/chat/model-facts.js'
import type { DialectName, Endpoint } from '../../src/formats/dialect.js'
import { MODELS } from '../load/sample-traffic.js'

/** A dialect, its transcript, and which frames are text. */
export interface Source {
  readonly dialect: DialectName
  readonly transcript: string
  readonly isText: (data: JsonObject) => boolean
}

/** The frames of one measured stream: a reply of about 600 tokens. */
export const TEXT_FRAMES = 200
/** One transcript per upstream dialect. */
export const SOURCES: readonly Source[] = [
  {
    dialect: 'anthropic',
    transcript: 'anthropic/text',
    isText: (data) => data.type === 'content_block_delta',
  },
  {
    dialect: 'gemini',
    transcript: 'gemini/text',
    isText: (data) => objectOf(arrayOf(data.candidates)[0]).finishReason === undefined,
  },
  {
    dialect: 'openai-chat',
    transcript: 'openai-chat/plain-text',
    isText: (data) => {
      const { content } = objectOf(objectOf(arrayOf(data.choices)[0]).delta)
      return (stringOf(content) ?? '') !== ''
    },
  },
  {
    dialect: 'openai-responses',
    transcript: 'openai-responses/text',
    isText: (data) => data.type === 'response.output_text.delta',
  },
]
/** A model of each dialect. */
export const FACTS: Readonly<Partial<Record<DialectName, ModelFacts>>> = {
  anthropic: {
    id: MODELS.anthropic,
    family: 'anthropic',
    createdAtSeconds: 0,
    maxOutputTokens: 64_000,
  },
  gemini: { id: 'gemini-3.5-flash', family: 'google', createdAtSeconds: 0 },
  'openai-chat': { id: MODELS.openai, family: 'openai', createdAtSeconds: 0 },
  'openai-responses': { id: 'gpt-5-pro', family: 'openai', createdAtSeconds: 0 },
}
/** Id, time and model of every reply. */
export const SEED = { id: 'chatcmpl-bench', createdAtSeconds: 1_700_000_000, model: 'measured' }
/** The client formats, with a request for a stream. */
export const ENCODERS: readonly { dialect: DialectName; body: JsonObject; endpoint: Endpoint }[] = [
  {
    dialect: 'openai-chat',
    body: { model: 'measured', stream: true, messages: [{ role: 'user', content: 'Hello' }] },
    endpoint: { operation: 'chat' },
  },
  {
    dialect: 'openai-responses',
    body: { model: 'measured', stream: true, input: 'Hello' },
    endpoint: { operation: 'chat' },
  },
  {
    dialect: 'anthropic',
    body: {
      model: 'measured',
      stream: true,
      max_tokens: 256,
      messages: [{ role: 'user', content: 'Hello' }],
    },
    endpoint: { operation: 'chat' },
  },
  {
    dialect: 'gemini',
    body: { contents: [{ parts: [{ text: 'Hello' }] }] },
    endpoint: { operation: 'chat', model: SEED.model, stream: true },
  },
]
/** Fragments of a reply, as many as a real one has. */
export const EVENTS: readonly ChatEvent[] = [
  { type: 'start', id: 'up', model: 'measured' },
  { type: 'text-start', index: 0 },
  ...Array.from({ length: TEXT_FRAMES }, (_, at): ChatEvent => {
    return { type: 'text-delta', index: 0, text: at % 7 === 0 ? ' "lamp",' : ' harbour' }
  }),
  { type: 'text-end', index: 0 },
  { type: 'usage', usage: { input: 10, output: TEXT_FRAMES } },
  { type: 'finish', reason: 'stop', raw: 'stop' },
]
