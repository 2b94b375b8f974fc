/**
 * Reasoning state in the members that chat clients use for it: encoding for replies, decoding from messages.
 * Signatures are opaque.
 *
 * Sources: OpenRouter, "Reasoning tokens" (`reasoning_details`); LiteLLM, "Thinking" (`thinking_blocks`);
 * Google, "OpenAI compatibility" (`extra_content`), all read 2026-11-20.
 */
import type { ReplyBlock } from '../chat/fold.js'
import { type JsonObject, objectOf, stringOf } from '../../base/json.js'
import type { AssistantPart, ThinkingPart, ToolCall } from '../chat/request.js'
import { array, given, object, string } from '../wire/json/check-fields.js'

/** The `format` of a detail, by the dialect of the reasoning state. */
const FORMATS: Readonly<Record<string, string>> = {
  anthropic: 'anthropic-claude-v1',
  gemini: 'google-gemini-v1',
  'openai-responses': 'openai-responses-v1',
}

/** The reasoning state in a client's message. */
interface ReasoningState {
  thoughts: ThinkingPart[]
  /** Signatures of calls, by the call's id. */
  calls: Map<string, string>
  /** Signatures of the message's text, in order. */
  texts: string[]
}

/** Limit for the details of one message. */
const MAX_DETAILS = 4_096

/** Encodes the `reasoning_details` of one reply, numbered from 0. */
export class Details {
  private readonly origin: string
  private readonly format: string
  private next = 0

  private constructor(origin: string, format: string) {
    this.origin = origin
    this.format = format
  }

  /** `origin` is the dialect of the upstream. Null if its reasoning state has no `format` of its own. */
  static of(origin: string | undefined): Details | null {
    const format = origin === undefined ? undefined : FORMATS[origin]
    return origin === undefined || format === undefined ? null : new Details(origin, format)
  }

  /** The details of a complete block; empty if it has no reasoning state. */
  take(block: ReplyBlock): JsonObject[] {
    switch (block.type) {
      case 'thinking':
        return this.thinking(block.text, block.signature, block.redacted)
      case 'text':
        return block.signature === undefined ? [] : [this.encrypted(block.signature)]
      case 'tool':
        return block.signature === undefined ? [] : [this.encrypted(block.signature, block.id)]
      default:
        return []
    }
  }

  private thinking(text: string, signature: string | undefined, redacted: string | undefined): JsonObject[] {
    if (this.origin === 'openai-responses') {
      const summary = text === '' ? [] : [this.detail({ type: 'reasoning.summary', summary: text })]
      const data = redacted ?? signature
      return data === undefined ? summary : [...summary, this.encrypted(data)]
    }
    if (redacted !== undefined) return [this.encrypted(redacted)]
    const detail = { type: 'reasoning.text', text }
    return [this.detail(signature === undefined ? detail : { ...detail, signature })]
  }

  private encrypted(data: string, id?: string): JsonObject {
    const named = id === undefined ? {} : { id }
    return this.detail({ type: 'reasoning.encrypted', data, ...named })
  }

  private detail(members: JsonObject): JsonObject {
    return { ...members, format: this.format, index: this.next++ }
  }
}

/** The `extra_content` of a call or a text, as Google's OpenAI-compatible endpoint sends it. */
export function signatureOut(signature: string): JsonObject {
  return { google: { thought_signature: signature } }
}

/** `extra_content.google.thought_signature` of a call or a message. */
export function thoughtSignature(item: JsonObject): string | undefined {
  const google = objectOf(objectOf(item['extra_content'])['google'])
  const signature = stringOf(google['thought_signature'])
  return signature === '' ? undefined : signature
}

/**
 * The reasoning state of a message: `reasoning_details`, else `thinking_blocks`, else unsigned text. Google's
 * signatures in `extra_content` are read in addition.
 */
export function decodeReasoning(item: JsonObject, path: string): ReasoningState {
  const state: ReasoningState = { thoughts: [], calls: new Map(), texts: [] }
  if (given(item['reasoning_details'])) decodeDetails(item, `${path}.reasoning_details`, state)
  else if (given(item['thinking_blocks'])) decodeBlocks(item, `${path}.thinking_blocks`, state)
  else state.thoughts = plainThoughts(item, path)
  const own = thoughtSignature(item)
  if (own !== undefined && state.texts.length === 0) state.texts.push(own)
  return state
}

function decodeDetails(item: JsonObject, path: string, state: ReasoningState): void {
  const details = array(item['reasoning_details'], path, MAX_DETAILS)
  for (const [at, value] of details.entries()) {
    const detail = object(value, `${path}[${at}]`)
    const origin = originOf(stringOf(detail['format']))
    const data = stringOf(detail['data'])
    const id = stringOf(detail['id'])
    if (origin === 'gemini' && data !== undefined) {
      if (id === undefined) state.texts.push(data)
      else state.calls.set(id, data)
    } else if (origin === 'openai-responses') addItem(state.thoughts, detail)
    else state.thoughts.push(thought(detail, origin, data))
  }
}

function originOf(format: string | undefined): string {
  return Object.keys(FORMATS).find((origin) => FORMATS[origin] === format) ?? format ?? 'unknown'
}

function thought(detail: JsonObject, origin: string, data: string | undefined): ThinkingPart {
  const text = stringOf(detail['text']) ?? stringOf(detail['summary']) ?? ''
  const part: ThinkingPart = { type: 'thinking', text, origin }
  const signature = stringOf(detail['signature'])
  if (data !== undefined) part.redacted = data
  else if (signature !== undefined) part.signature = signature
  return part
}

/**
 * Adds a detail of a Responses reasoning item, whose summary and encrypted content are two details in
 * sequence. Other gateways send the item's id as a member; this gateway has it in the state.
 */
function addItem(thoughts: ThinkingPart[], detail: JsonObject): void {
  const { signature, text } = thought(detail, '', undefined)
  const id = stringOf(detail['id'])
  const encrypted = stringOf(detail['data']) ?? signature
  const data = encrypted === undefined || id === undefined ? encrypted : `${id}:${encrypted}`
  const last = thoughts.at(-1)
  if (data === undefined || last?.origin !== 'openai-responses' || last.signature !== undefined) {
    const part: ThinkingPart = { type: 'thinking', text, origin: 'openai-responses' }
    thoughts.push(data === undefined ? part : { ...part, signature: data })
  } else last.signature = data
}

/** Anthropic's thinking blocks, which LiteLLM passes to clients unchanged. */
function decodeBlocks(item: JsonObject, path: string, state: ReasoningState): void {
  const origin = 'anthropic'
  for (const [at, value] of array(item['thinking_blocks'], path, MAX_DETAILS).entries()) {
    const block = object(value, `${path}[${at}]`)
    const redacted = stringOf(block['data'])
    const signature = stringOf(block['signature'])
    const text = stringOf(block['thinking']) ?? ''
    const part: ThinkingPart = { type: 'thinking', text, origin }
    if (redacted !== undefined) state.thoughts.push({ ...part, redacted })
    else state.thoughts.push(signature === undefined ? part : { ...part, signature })
  }
}

/** Unsigned reasoning: `reasoning_content` (DeepSeek) or `reasoning` (Groq). */
function plainThoughts(item: JsonObject, path: string): ThinkingPart[] {
  for (const key of ['reasoning_content', 'reasoning']) {
    if (!given(item[key])) continue
    const text = string(item[key], `${path}.${key}`)
    return text === '' ? [] : [{ type: 'thinking', text, origin: 'openai-chat' }]
  }
  return []
}

/**
 * Attaches the signatures to calls and parts. The last text signature belongs to the last text part; the
 * others get empty text parts before it.
 */
export function attachSignatures(state: ReasoningState, parts: AssistantPart[], calls: ToolCall[]): void {
  for (const call of calls) {
    const signature = state.calls.get(call.id)
    if (signature !== undefined) call.signature = signature
  }
  const last = state.texts.pop()
  if (last === undefined) return
  const at = parts.findLastIndex((part) => part.type === 'text')
  const text = at < 0 ? undefined : parts[at]
  const carriers = state.texts.map((signature): AssistantPart => carrier(signature))
  if (text?.type === 'text') {
    text.signature = last
    parts.splice(at, 0, ...carriers)
  } else parts.push(...carriers, carrier(last))
}

/** An empty text with a signature. */
function carrier(signature: string): AssistantPart {
  return { type: 'text', text: '', signature }
}
