/**
 * What the tests of this dialect share: requests and facts to start from, frames in, events out.
 * Every decoder here runs behind the production grammar; a breach of it fails the test that saw it.
 */
import type { ChatEvent } from '../../../src/chat/event.js'
import { Fold, type Reply } from '../../../src/chat/reply/fold.js'
import { Grammar } from '../../../src/chat/grammar.js'
import type { JsonObject } from '../../../src/chat/json.js'
import type { ModelFacts } from '../../../src/chat/model.js'
import type { ChatRequest, Message } from '../../../src/chat/request.js'
import { anthropic } from '../../../src/dialects/anthropic/index.js'
import type { Egress } from '../../../src/dialects/dialect.js'
import type { WireError } from '../../../src/errors.js'

if (anthropic.egress === null) throw new Error('the dialect has an egress')

export const egress: Egress = anthropic.egress

export interface Frame {
  name: string
  data: string
}

/** What came out of a decoder, and what the grammar said to it. */
export interface Heard {
  events: ChatEvent[]
  reply: Reply | null
  error: WireError | null
  breach: string | null
}

export function request(over: Partial<ChatRequest> = {}): ChatRequest {
  return {
    model: 'claude-test',
    messages: [{ role: 'user', index: 0, parts: [{ type: 'text', text: 'Hello' }] }],
    stream: false,
    includeUsage: false,
    tools: [],
    rest: {},
    ...over,
  }
}

/** A model of the newest generation unless told otherwise. */
export function facts(over: Partial<ModelFacts> = {}): ModelFacts {
  return { id: 'claude-test', family: 'anthropic', createdAtSeconds: 0, ...over }
}

/** A model that takes sampling, forced tools, budgets and prefill, like the 4.5 generation. */
export const OLDER: Partial<ModelFacts> = {
  maxOutputTokens: 64_000,
  thinkingTypes: ['enabled', 'disabled'],
  thinkingDefault: 'off',
  forcedToolChoice: true,
  samplingParams: 'when-thinking-off',
  assistantPrefill: true,
  midConversationSystem: false,
}

export interface Encoded {
  body: JsonObject
  lost: string[]
}

/** The body for a request, and what was reported as lost: `path: why`. */
export function encode(over: Partial<ChatRequest>, model: Partial<ModelFacts> = {}): Encoded {
  const lost: string[] = []
  const body = egress.encodeRequest(request(over), facts(model), {
    drop: (path, why) => lost.push(`${path}: ${why}`),
  })
  return { body, lost }
}

export function user(index: number, text: string): Message {
  return { role: 'user', index, parts: [{ type: 'text', text }] }
}

/** An assistant turn with text and calls `id:name:arguments`. */
export function assistant(index: number, text: string, ...calls: string[]): Message {
  const toolCalls = calls.map((call) => {
    const [id = '', name = '', ...args] = call.split(':')
    return { id, name, arguments: args.join(':') }
  })
  return { role: 'assistant', index, parts: [{ type: 'text', text }], toolCalls }
}

export function result(index: number, callId: string, text: string): Message {
  return { role: 'tool', index, callId, parts: [{ type: 'text', text }] }
}

/** Frames of a stream of named events with LF framing, as Anthropic sends them. */
export function framesOf(sse: string): Frame[] {
  const frames: Frame[] = []
  for (const block of sse.replaceAll('\r\n', '\n').split('\n\n')) {
    let name = ''
    const data: string[] = []
    for (const line of block.split('\n')) {
      if (line.startsWith('event:')) name = line.slice(6).trim()
      if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
    }
    if (data.length > 0) frames.push({ name, data: data.join('\n') })
  }
  return frames
}

export function frame(payload: JsonObject): Frame {
  return { name: str(payload.type), data: JSON.stringify(payload) }
}

/** Runs frames through a new decoder behind the grammar, then ends it. */
export function hearStream(frames: readonly Frame[], over: Partial<ChatRequest> = {}): Heard {
  return hear((sink) => {
    const decoder = egress.newDecoder(request(over), sink)
    for (const { name, data } of frames) decoder.frame(name, data)
    decoder.end()
  })
}

export function hearReply(body: JsonObject, over: Partial<ChatRequest> = {}): Heard {
  return hear((sink) => egress.decodeReply(body, request(over), sink))
}

/** The text of all blocks of a kind, joined. */
export function textOf(
  reply: Reply | null,
  kind: 'text' | 'thinking' | 'refusal' = 'text',
): string {
  return (reply?.blocks ?? []).map((block) => (block.type === kind ? block.text : '')).join('')
}

function hear(run: (sink: { event(event: ChatEvent): void }) => void): Heard {
  const events: ChatEvent[] = []
  const fold = new Fold()
  const grammar = new Grammar({
    event: (event) => {
      events.push(event)
      fold.event(event)
    },
  })
  run(grammar)
  return { events, reply: fold.reply(), error: fold.error, breach: grammar.breach }
}

/** A string as it is, anything else as nothing. */
export function str(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
