/**
 * Reasoning state in the words of this format: what clients see of it, and what they may send back.
 * Knows no upstream but by the name of its state. Signatures are opaque: nothing here reads one.
 *
 * Sources: OpenRouter, "Reasoning tokens" (`reasoning_details`); LiteLLM, "Thinking" (`thinking_blocks`);
 * Google, "OpenAI compatibility" (`extra_content`), all read 2026-11-20.
 */
import type { ReplyBlock } from '../../../chat/reply/fold.js'
import { type JsonObject, objectOf, stringOf } from '../../../chat/json.js'
import type { AssistantPart, ThinkingPart, ToolCall } from '../../../chat/request.js'
import { array, given, object, string } from '../../../wire/json/check-fields.js'

/** The `format` of a detail, by the dialect whose state it is. */
const FORMATS: Readonly<Record<string, string>> = {
  anthropic: 'anthropic-claude-v1',
  gemini: 'google-gemini-v1',
  'openai-responses': 'openai-responses-v1',
}

/** The state that a message brought back. */
export interface ReasoningState {
  thoughts: ThinkingPart[]
  /** Signatures of calls, by the call's id. */
  calls: Map<string, string>
  /** Signatures of the message's text, in order. */
  texts: string[]
}

/** A message holds no more blocks than this. */
const MAX_DETAILS = 4_096

/** Numbers the details of one answer; null where the upstream's state has no form of its own. */
export class Details {
  private readonly origin: string
  private readonly format: string
  private next = 0

  private constructor(origin: string, format: string) {
    this.origin = origin
    this.format = format
  }

  /** `origin` is the dialect of the upstream. */
  static of(origin: string | undefined): Details | null {
    const format = origin === undefined ? undefined : FORMATS[origin]
    return origin === undefined || format === undefined ? null : new Details(origin, format)
  }

  /** The details of a block that is complete; empty where it has no reasoning state. */
  take(block: ReplyBlock): JsonObject[] {
    switch (block.type) {
      case 'thinking':
        return this.thinking(block.text, block.signature, block.redacted)
      case 'text':
        return block.signature === undefined ? [] : [this.sealed(block.signature)]
      case 'tool':
        return block.signature === undefined ? [] : [this.sealed(block.signature, block.id)]
      default:
        return []
    }
  }

  private thinking(
    text: string,
    signature: string | undefined,
    redacted: string | undefined,
  ): JsonObject[] {
    if (this.origin === 'openai-responses') {
      const summary = text === '' ? [] : [this.detail({ type: 'reasoning.summary', summary: text })]
      const data = redacted ?? signature
      return data === undefined ? summary : [...summary, this.sealed(data)]
    }
    if (redacted !== undefined) return [this.sealed(redacted)]
    const said = { type: 'reasoning.text', text }
    return [this.detail(signature === undefined ? said : { ...said, signature })]
  }

  private sealed(data: string, id?: string): JsonObject {
    const named = id === undefined ? {} : { id }
    return this.detail({ type: 'reasoning.encrypted', data, ...named })
  }

  private detail(members: JsonObject): JsonObject {
    return { ...members, format: this.format, index: this.next++ }
  }
}

/** Where Google's own compatible endpoint puts the state of a call, and of a message's text. */
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
 * What a message brings back: `reasoning_details`, else `thinking_blocks`, else plain text, which is
 * never taken for signed thinking. Google's signatures are beside all of them.
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
 * The summary and the sealed text of one reasoning item are two details, one after the other. Other
 * gateways give the item's id beside them; ours has it in its state.
 */
function addItem(thoughts: ThinkingPart[], detail: JsonObject): void {
  const { signature, text } = thought(detail, '', undefined)
  const id = stringOf(detail['id'])
  const sealed = stringOf(detail['data']) ?? signature
  const data = sealed === undefined || id === undefined ? sealed : `${id}:${sealed}`
  const last = thoughts.at(-1)
  if (data === undefined || last?.origin !== 'openai-responses' || last.signature !== undefined) {
    const part: ThinkingPart = { type: 'thinking', text, origin: 'openai-responses' }
    thoughts.push(data === undefined ? part : { ...part, signature: data })
  } else last.signature = data
}

/** LiteLLM hands out Anthropic's blocks as they are. */
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

/** DeepSeek says `reasoning_content`, Groq `reasoning`. */
function plainThoughts(item: JsonObject, path: string): ThinkingPart[] {
  for (const key of ['reasoning_content', 'reasoning']) {
    if (!given(item[key])) continue
    const said = string(item[key], `${path}.${key}`)
    return said === '' ? [] : [{ type: 'thinking', text: said, origin: 'openai-chat' }]
  }
  return []
}

/** Puts the signatures where they belong. The last one is that of the message's last text, empty or not. */
export function sign(state: ReasoningState, parts: AssistantPart[], calls: ToolCall[]): void {
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

/** A signature that came on an empty text. */
function carrier(signature: string): AssistantPart {
  return { type: 'text', text: '', signature }
}
