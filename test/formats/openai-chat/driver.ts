/**
 * Runs the chat-completions codec on wire text, for the tests of this folder. Frames are split by a simple
 * rule; the framer of the gateway has its own tests.
 */
import type { ChatEvent } from '../../../src/formats/chat/event.js'
import { isObject, type JsonObject } from '../../../src/base/json.js'
import type { ChatRequest } from '../../../src/formats/chat/request.js'
import { upstreamCodecOf } from '../../../src/formats/index.js'
import { openaiChat } from '../../../src/formats/openai-chat/index.js'
import type { UpstreamCodec, ClientCodec, Seed } from '../../../src/formats/dialect.js'
import { collectEvents, type Decoded } from '../collect-events.js'

export { refusalOf, type Decoded } from '../collect-events.js'

export const clientCodec: ClientCodec = present(openaiChat.clientCodec)
export const upstreamCodec: UpstreamCodec = present(upstreamCodecOf('openai-chat'))

function present<T>(codec: T | null): T {
  if (codec === null) throw new Error('openai-chat has no codec')
  return codec
}

export const SEED: Seed = {
  id: 'chatcmpl-test',
  createdAtSeconds: 1_700_000_000,
  model: 'gpt-test',
}

/** A small valid request with some members replaced. */
export function requestBody(members: JsonObject = {}): JsonObject {
  return { model: 'gpt-test', messages: [{ role: 'user', content: 'Hello' }], ...members }
}

/** Decodes a small valid request with some members replaced. */
export function request(members: JsonObject = {}): ChatRequest {
  return decode(requestBody(members))
}

export function decode(body: JsonObject): ChatRequest {
  return clientCodec.decodeRequest(body, { operation: 'chat' })
}

/** The data of every event of an SSE text with one `data:` line each. */
export function framesOf(sse: string): string[] {
  return sse
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).replace(/^ /, ''))
}

/** Decodes frames and ends the stream. */
export function decodeFrames(frames: readonly string[], chatRequest: ChatRequest = request()): Decoded {
  return collectEvents((sink) => {
    const decoder = upstreamCodec.newDecoder(chatRequest, sink)
    for (const frame of frames) decoder.frame('', frame)
    decoder.end()
  })
}

/** Decodes a whole reply. */
export function decodeBody(body: JsonObject, chatRequest: ChatRequest = request()): Decoded {
  return collectEvents((sink) => upstreamCodec.decodeReply(body, chatRequest, sink))
}

/** Encodes events as a stream, in one text. */
export function encodeEvents(events: readonly ChatEvent[], chatRequest: ChatRequest): string {
  const encoder = clientCodec.newEncoder(chatRequest, SEED)
  let out = ''
  for (const event of events) {
    encoder.event(event)
    out += encoder.take()
  }
  return out
}

/** The value as an object. Throws for any other value. */
export function expectObject(value: unknown): JsonObject {
  if (!isObject(value)) throw new Error(`not an object: ${JSON.stringify(value)}`)
  return value
}

/** A chunk of a stream as text. */
export function chunk(delta: JsonObject, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  return JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model: 'm', choices })
}

/** A chunk with usage and no choices. */
export function usageChunk(input: number, output: number): string {
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
  return JSON.stringify({ id: 'chatcmpl-1', model: 'm', choices: [], usage })
}
