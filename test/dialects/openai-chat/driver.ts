/**
 * Runs the chat-completions codec on wire text, for the tests of this folder.
 * The splitting of frames is the simplest that can work: the real framer has its own tests.
 */
import type { ChatEvent } from '../../../src/chat/event.js'
import { Fold, type Reply } from '../../../src/chat/reply/fold.js'
import { Grammar } from '../../../src/chat/grammar.js'
import { isObject, type JsonObject } from '../../../src/chat/json.js'
import type { ChatRequest } from '../../../src/chat/request.js'
import { openaiChat } from '../../../src/dialects/openai-chat/index.js'
import type { Egress, Ingress, Seed } from '../../../src/dialects/dialect.js'
import { GatewayError, type WireError } from '../../../src/errors.js'

export const ingress: Ingress = side(openaiChat.ingress)
export const egress: Egress = side(openaiChat.egress)

function side<T>(side: T | null): T {
  if (side === null) throw new Error('openai-chat has lost a side')
  return side
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
  return ingress.decodeRequest(body, { operation: 'chat' })
}

/** The data of every event of an SSE text with one `data:` line each. */
export function framesOf(sse: string): string[] {
  return sse
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).replace(/^ /, ''))
}

/** What a decoder made of some frames. */
export interface Outcome {
  events: ChatEvent[]
  /** What broke the grammar, or null. */
  breach: string | null
  reply: Reply | null
  error: WireError | null
}

/** Decodes frames and ends the stream. */
export function decodeFrames(frames: readonly string[], asked: ChatRequest = request()): Outcome {
  const { sink, outcome } = newOutcome()
  const decoder = egress.newDecoder(asked, sink)
  for (const frame of frames) decoder.frame('', frame)
  decoder.end()
  return outcome()
}

/** Decodes a whole reply. */
export function decodeBody(body: JsonObject, asked: ChatRequest = request()): Outcome {
  const { sink, outcome } = newOutcome()
  egress.decodeReply(body, asked, sink)
  return outcome()
}

/** Encodes events as a stream, in one text. */
export function encodeEvents(events: readonly ChatEvent[], asked: ChatRequest): string {
  const encoder = ingress.newEncoder(asked, SEED)
  let out = ''
  for (const event of events) {
    encoder.event(event)
    out += encoder.take()
  }
  return out
}

/** A grammar with a fold and a list behind it. The list holds copies, as sent. */
function newOutcome(): { sink: Grammar; outcome: () => Outcome } {
  const events: ChatEvent[] = []
  const fold = new Fold()
  const grammar = new Grammar({
    event(event) {
      events.push(structuredClone(event))
      fold.event(event)
    },
  })
  return {
    sink: grammar,
    outcome: () => ({ events, breach: grammar.breach, reply: fold.reply(), error: fold.error }),
  }
}

/** The error that a call throws; a throw of anything else is passed on. */
export function refusal(run: () => unknown): WireError {
  try {
    run()
  } catch (error) {
    if (error instanceof GatewayError) return error.wire
    throw error
  }
  throw new Error('was accepted')
}

/** `value` as an object; anything else is a broken test. */
export function must(value: unknown): JsonObject {
  if (!isObject(value)) throw new Error(`not an object: ${JSON.stringify(value)}`)
  return value
}

/** A chunk of a stream as text. */
export function chunk(delta: JsonObject, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  return JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model: 'm', choices })
}

/** The chunk that carries usage alone. */
export function usageChunk(input: number, output: number): string {
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
  return JSON.stringify({ id: 'chatcmpl-1', model: 'm', choices: [], usage })
}
