/**
 * Runs the Responses codec on wire text, for the tests of this folder.
 * The splitting of frames is the simplest that can work: the real framer has its own tests.
 */
import type { ChatEvent } from '../../../src/chat/event.js'
import { Fold, type Reply } from '../../../src/chat/reply/fold.js'
import { Grammar } from '../../../src/chat/grammar.js'
import type { JsonObject } from '../../../src/chat/json.js'
import type { ModelFacts } from '../../../src/chat/model.js'
import type { ChatRequest, Message } from '../../../src/chat/request.js'
import type { Egress } from '../../../src/dialects/dialect.js'
import { openaiResponses } from '../../../src/dialects/openai-responses/index.js'
import { GatewayError, type WireError } from '../../../src/errors.js'

export const egress: Egress = side(openaiResponses.egress)

function side<T>(side: T | null): T {
  if (side === null) throw new Error('openai-responses has lost its side')
  return side
}

/** A model that thinks, with the efforts of most. */
export const THINKER: ModelFacts = {
  id: 'gpt-test',
  family: 'openai',
  createdAtSeconds: 0,
  reasoning: true,
  systemRole: 'developer',
  reasoningEfforts: ['none', 'low', 'medium', 'high', 'xhigh'],
  samplingParams: 'effort-none-only',
}

/** A model that does not. */
export const SPEAKER: ModelFacts = {
  id: 'gpt-plain',
  family: 'openai',
  createdAtSeconds: 0,
  reasoning: false,
  systemRole: 'system',
  samplingParams: 'always',
}

/** A small request with some members replaced. */
export function request(members: Partial<ChatRequest> = {}): ChatRequest {
  return {
    model: 'gpt-test',
    messages: [userMessage('Hello')],
    stream: false,
    includeUsage: false,
    tools: [],
    rest: {},
    ...members,
  }
}

/** Words of the user. */
export function userMessage(text: string, index = 0): Message {
  return { role: 'user', index, parts: [{ type: 'text', text }] }
}

/** The body for an upstream, and what was lost on the way. */
export function encode(
  members: Partial<ChatRequest>,
  facts: ModelFacts = THINKER,
): { body: JsonObject; lost: string[] } {
  const lost: string[] = []
  const drop = (path: string, why: string): void => void lost.push(`${path}: ${why}`)
  return { body: egress.encodeRequest(request(members), facts, { drop }), lost }
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

/** An event of a stream as the framer hands it over. */
export interface Frame {
  readonly name: string
  readonly data: string
}

/** The events of an SSE text with one `data:` line each. */
export function framesOf(sse: string): Frame[] {
  let name = ''
  return sse.split(/\r?\n/).flatMap((line) => {
    if (line.startsWith('event:')) name = line.slice(6).trim()
    return line.startsWith('data:') ? [{ name, data: line.slice(5).replace(/^ /, '') }] : []
  })
}

/** Events as frames; each is named by its type. */
export function frames(...events: JsonObject[]): Frame[] {
  return events.map((event) => ({
    name: typeof event['type'] === 'string' ? event['type'] : '',
    data: JSON.stringify(event),
  }))
}

/** What a decoder made of something. */
export interface Decoded {
  events: ChatEvent[]
  /** What broke the grammar, or null. */
  breach: string | null
  reply: Reply | null
  error: WireError | null
}

/** Decodes frames and ends the stream. */
export function decodeStream(list: readonly Frame[], asked: ChatRequest = request()): Decoded {
  return runDecoder((sink) => {
    const decoder = egress.newDecoder(asked, sink)
    for (const { name, data } of list) decoder.frame(name, data)
    decoder.end()
  })
}

/** Decodes a whole response. */
export function decodeWhole(body: JsonObject, asked: ChatRequest = request()): Decoded {
  return runDecoder((sink) => egress.decodeReply(body, asked, sink))
}

function runDecoder(run: (sink: Grammar) => void): Decoded {
  const events: ChatEvent[] = []
  const fold = new Fold()
  const grammar = new Grammar({
    event(event) {
      events.push(structuredClone(event))
      fold.event(event)
    },
  })
  run(grammar)
  return { events, breach: grammar.breach, reply: fold.reply(), error: fold.error }
}

/** A string, or a broken test. */
export function str(value: unknown): string {
  if (typeof value !== 'string') throw new Error(`no string: ${JSON.stringify(value)}`)
  return value
}
