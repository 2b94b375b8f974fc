/**
 * Shared parts of the tests of the official OpenAI client: models of every upstream, tools, and reading
 * streams with the SDK's types.
 */
import OpenAI, { APIError } from 'openai'
import type { TestGateway } from '../../helpers/gateway.js'
import { ROWS } from '../upstream-cases.js'

/** One model behind each upstream dialect. */
export const MODELS = ROWS.map(({ model }) => model)

/** The client as a user creates it, without retries, so that a failure is visible. */
export function clientOf(gateway: TestGateway, apiKey = gateway.secret): OpenAI {
  return new OpenAI({ apiKey, baseURL: gateway.baseUrl, maxRetries: 0 })
}

/** One message of a user. */
export function userMessages(content: string): OpenAI.ChatCompletionMessageParam[] {
  return [{ role: 'user', content }]
}

/** A tool with required and optional arguments. */
export const WEATHER: OpenAI.ChatCompletionFunctionTool = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city',
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string' },
        unit: { type: 'string', enum: ['celsius', 'fahrenheit'] },
      },
      required: ['city', 'unit'],
    },
  },
}

/** A tool without arguments. */
export const TIME: OpenAI.ChatCompletionFunctionTool = {
  type: 'function',
  function: { name: 'get_time', parameters: { type: 'object', properties: {} } },
}

/** One call as a stream or a whole reply shows it. */
export interface Called {
  id: string
  name: string
  json: string
}

/** The content of a stream. */
export interface Streamed {
  text: string
  calls: Called[]
  ids: Set<string>
  models: Set<string>
  /** In order of the chunks; `undefined` for a chunk without a choice. */
  finishes: (string | null | undefined)[]
  roles: string[]
  /** `undefined` if the chunk has no such member. */
  usages: (OpenAI.CompletionUsage | null | undefined)[]
}

/** Reads a stream to its end. Rejects as the SDK's iterator does. */
export async function read(
  stream: AsyncIterable<OpenAI.ChatCompletionChunk>,
  into: Streamed = nothing(),
): Promise<Streamed> {
  for await (const chunk of stream) {
    const [choice] = chunk.choices
    into.ids.add(chunk.id)
    into.models.add(chunk.model)
    into.finishes.push(choice?.finish_reason)
    into.usages.push(chunk.usage)
    into.text += choice?.delta.content ?? ''
    if (choice?.delta.role !== undefined) into.roles.push(choice.delta.role)
    for (const call of choice?.delta.tool_calls ?? []) {
      const known = into.calls[call.index] ?? { id: '', name: '', json: '' }
      known.id += call.id ?? ''
      known.name += call.function?.name ?? ''
      known.json += call.function?.arguments ?? ''
      into.calls[call.index] = known
    }
  }
  return into
}

/** A stream of which nothing has been read yet. */
export function nothing(): Streamed {
  return {
    text: '',
    calls: [],
    ids: new Set(),
    models: new Set(),
    finishes: [],
    roles: [],
    usages: [],
  }
}

/** The calls of a whole reply. */
export function callsOf(reply: OpenAI.ChatCompletion): Called[] {
  return (reply.choices[0]?.message.tool_calls ?? []).flatMap((call) =>
    call.type === 'function'
      ? [{ id: call.id, name: call.function.name, json: call.function.arguments }]
      : [],
  )
}

/** The API error of a call. Throws if the call succeeds or fails otherwise. */
export async function failureOf(call: PromiseLike<unknown>): Promise<APIError> {
  try {
    await call
  } catch (error) {
    if (error instanceof APIError) return error
    throw error
  }
  throw new Error('the call did not fail')
}
