/**
 * Decodes `input`: items become turns, and every call must have one result. The items of a model's turn
 * (reasoning, messages, calls) are consecutive. A result may be anywhere after its call; results are moved to
 * the end of the turn, in the order of its calls.
 *
 * Source: OpenAI API reference, "Create a model response", `input`, read 2026-11-20.
 */
import { objectOf, stringOf, type JsonObject, type JsonValue } from '../../chat/json.js'
import type {
  ChatRequest,
  Message,
  ThinkingPart,
  ToolCall,
  TextPart,
  UserPart,
  FilePart,
  ImagePart,
} from '../../chat/request.js'
import { decodeMediaUrl } from '../../wire/inline-media.js'
import { array, given, object, oneOf, refuse, string, text } from '../../wire/json/check-fields.js'
import {
  contentOf,
  decodeParts,
  decodeTextPart,
  decodeUserParts,
  type Content,
} from '../../wire/openai/content-parts.js'
import { toolName } from '../../wire/openai/tools.js'
import { readReasoningToken } from '../../wire/reasoning-token.js'
import { ORIGIN, stateOf } from '../reasoning-state.js'
import { joinedName } from './decode-tools.js'

type AssistantMessage = Extract<Message, { role: 'assistant' }>
type ToolMessage = Extract<Message, { role: 'tool' }>

/** Longer conversations do not fit any model's context window. */
const MAX_ITEMS = 10_000
const MAX_ID = 512
const MAX_TYPE = 64
const ROLES = ['user', 'assistant', 'system', 'developer'] as const

/** Context of the items. */
export interface InputOptions {
  /** Items before those of the client; the paths in errors do not count them. */
  readonly historyItems: number
  /** Part of the conversation is not in these items: a call may lack its result, and a result its call. */
  readonly isPartial: boolean
  /** The tools in a namespace, by their joined name. */
  readonly namespaces: ChatRequest['namespaces']
}

/** One turn of the model and the results of its calls. */
interface Turn {
  readonly message: AssistantMessage
  readonly results: Map<string, ToolMessage>
  /** The path of each call, for the error about a call without a result. */
  readonly paths: Map<string, string>
}

/** All turns, in order. Throws `malformed_request` naming the item that breaks a rule. */
export function decodeInput(value: JsonValue[], options: InputOptions): Message[] {
  array(value, 'input', MAX_ITEMS)
  const conversation = new Conversation(options)
  for (const [at, entry] of value.entries()) conversation.add(entry, at)
  return conversation.messages()
}

class Conversation {
  private readonly options: InputOptions
  private readonly turns: (Message | Turn)[] = []
  /** The model's turn that the next item of the model belongs to. */
  private turn: Turn | null = null
  private readonly calls = new Map<string, { readonly turn: Turn; readonly call: ToolCall }>()
  private index = 0

  constructor(options: InputOptions) {
    this.options = options
  }

  add(value: JsonValue, at: number): void {
    this.index = Math.max(0, at - this.options.historyItems)
    const path = `input[${this.index}]`
    const item = object(value, path)
    const type = given(item['type']) ? text(item['type'], `${path}.type`, MAX_TYPE) : 'message'
    switch (type) {
      case 'message':
        return this.addMessage(item, path)
      case 'reasoning':
        return this.addReasoning(item, path)
      case 'function_call':
      case 'custom_tool_call':
        return this.addCall(item, path, type === 'custom_tool_call')
      case 'function_call_output':
      case 'custom_tool_call_output':
        return this.addResult(item, path)
      case 'item_reference':
        if (this.options.isPartial) return undefined
        return refuse(path, 'refers to an unknown item. Send the whole item')
      default:
        // Items of OpenAI's hosted tools, which only OpenAI accepts.
        this.open().message.parts.push({ type: 'opaque', provider: ORIGIN, block: item })
    }
  }

  messages(): Message[] {
    return this.turns.flatMap((each) => ('role' in each ? [each] : this.messagesOf(each)))
  }

  private messagesOf({ message, results, paths }: Turn): Message[] {
    if (message.parts.length === 0 && message.toolCalls.length === 0) return []
    const toolResults = message.toolCalls.flatMap(({ id }) => {
      const result = results.get(id)
      if (result !== undefined) return [result]
      if (this.options.isPartial) return []
      return refuse(
        paths.get(id) ?? 'input',
        'must be followed by an item of type function_call_output or custom_tool_call_output with its call_id',
      )
    })
    return [message, ...toolResults]
  }

  private addMessage(item: JsonObject, path: string): void {
    const role = oneOf(item['role'], `${path}.role`, ROLES)
    const content = contentOf(item, 'content')
    const at = `${path}.content`
    if (role === 'assistant') {
      this.open().message.parts.push(...assistantParts(content, at))
      return
    }
    this.turn = null
    const { index } = this
    if (role === 'user') {
      const parts = userParts(content, at)
      if (parts.length > 0) this.turns.push({ role, index, parts })
    } else {
      const parts = textParts(content, at)
      if (parts.length > 0) this.turns.push({ role, index, parts })
    }
  }

  private addReasoning(item: JsonObject, path: string): void {
    for (const key of ['summary', 'content'])
      if (given(item[key])) array(item[key], `${path}.${key}`, MAX_ITEMS)
    const summary = textsIn(item['summary'], `${path}.summary`)
    const text = summary === '' ? textsIn(item['content'], `${path}.content`) : summary
    const { encrypted_content: encrypted } = item
    const state = given(encrypted)
      ? readReasoningToken(string(encrypted, `${path}.encrypted_content`))
      : null
    if (state?.of !== undefined) return this.sign(state.of, state.signature)
    const part: ThinkingPart = { type: 'thinking', text, origin: state?.origin ?? ORIGIN }
    const signature = state === null ? stateOf(item) : state.signature
    if (signature !== undefined) part.signature = signature
    if (state?.redacted !== undefined) part.redacted = state.redacted
    if (text === '' && signature === undefined && part.redacted === undefined) return
    this.open().message.parts.push(part)
  }

  /** Attaches the signature of a call or a text, which the gateway's replies carry in an item of its own. */
  private sign(of: { readonly call: string } | 'text', signature: string | undefined): void {
    if (signature === undefined) return
    if (of !== 'text') {
      const known = this.calls.get(of.call)
      if (known !== undefined) known.call.signature = signature
      return
    }
    const parts = this.open().message.parts
    const last = parts.at(-1)
    if (last?.type === 'text') last.signature = signature
    else parts.push({ type: 'text', text: '', signature })
  }

  private addCall(item: JsonObject, path: string, custom: boolean): void {
    const id = text(item['call_id'], `${path}.call_id`, MAX_ID)
    if (this.calls.has(id)) refuse(`${path}.call_id`, 'must differ from the ids of the other calls')
    const key = custom ? 'input' : 'arguments'
    const call: ToolCall = {
      id,
      name: this.nameOf(item, path),
      arguments: string(item[key], `${path}.${key}`),
    }
    if (custom) call.custom = true
    const turn = this.open()
    turn.message.toolCalls.push(call)
    turn.paths.set(id, path)
    this.calls.set(id, { turn, call })
  }

  /** OpenAI also names the namespace of tools from its tool search; those have no namespace in `tools`. */
  private nameOf({ name, namespace }: JsonObject, path: string): string {
    const own = toolName(name, `${path}.name`)
    if (!given(namespace)) return own
    const joined = joinedName(toolName(namespace, `${path}.namespace`), own)
    return this.options.namespaces?.has(joined) === true ? joined : own
  }

  private addResult(item: JsonObject, path: string): void {
    const callId = text(item['call_id'], `${path}.call_id`, MAX_ID)
    const parts = userParts(contentOf(item, 'output'), `${path}.output`)
    const turn = this.calls.get(callId)?.turn
    if (turn === undefined) {
      if (this.options.isPartial) return
      return refuse(`${path}.call_id`, 'matches no call before it')
    }
    if (turn.results.has(callId)) refuse(`${path}.call_id`, 'already has a result')
    turn.results.set(callId, { role: 'tool', index: this.index, callId, parts })
  }

  /** The model's current turn. An item after a tool result begins a new turn. */
  private open(): Turn {
    if (this.turn !== null && this.turn.results.size === 0) return this.turn
    const message: AssistantMessage = {
      role: 'assistant',
      index: this.index,
      parts: [],
      toolCalls: [],
    }
    this.turn = { message, results: new Map(), paths: new Map() }
    this.turns.push(this.turn)
    return this.turn
  }
}

/** The texts of a summary or of reasoning content, joined as paragraphs. */
function textsIn(value: JsonValue | undefined, path: string): string {
  if (!given(value)) return ''
  return array(value, path, MAX_ITEMS)
    .map((part) => stringOf(objectOf(part)['text']) ?? '')
    .filter((paragraph) => paragraph !== '')
    .join('\n\n')
}

/**
 * The text parts of a system or developer message. Empty text is dropped.
 *
 * Decodes the content of an input item: text, images, files and audio. The caller chooses the parts that a
 * role may hold.
 */
function textParts(value: Content, path: string): TextPart[] {
  return decodeParts(value, path, (item, at) => {
    oneOf(item['type'], `${at}.type`, ['input_text'])
    return decodeTextPart(item, 'text', at)
  })
}

/** The parts of a user message or a tool result. Empty text is dropped. */
function userParts(value: Content, path: string): UserPart[] {
  return decodeUserParts(value, path, {
    text: 'input_text',
    image: ['input_image', decodeImage],
    file: ['input_file', decodeFile],
  })
}

/** The parts of an assistant message: text, and refusals (text for the next turn). */
function assistantParts(value: Content, path: string): TextPart[] {
  return decodeParts<TextPart>(value, path, (item, at) => {
    const type = oneOf(item['type'], `${at}.type`, ['output_text', 'refusal', 'input_text', 'text'])
    return decodeTextPart(item, type === 'refusal' ? 'refusal' : 'text', at)
  })
}

/** An `input_image` part. */
function decodeImage(item: JsonObject, path: string): ImagePart {
  const { image_url: url, file_id: id, detail } = item
  if (!given(url) && !given(id)) refuse(path, 'must have image_url or file_id')
  const part: ImagePart = {
    type: 'image',
    source: given(url)
      ? decodeMediaUrl(string(url, `${path}.image_url`), `${path}.image_url`)
      : { kind: 'file-id', id: text(id, `${path}.file_id`, MAX_ID) },
  }
  if (given(detail)) {
    part.detail = oneOf(detail, `${path}.detail`, ['auto', 'low', 'high', 'original'])
  }
  return part
}

/** An `input_file` part. */
function decodeFile(item: JsonObject, path: string): FilePart {
  const part: FilePart = { type: 'file', source: fileSource(item, path) }
  if (given(item['filename'])) part.filename = text(item['filename'], `${path}.filename`, 1_024)
  return part
}

function fileSource(item: JsonObject, path: string): FilePart['source'] {
  const { file_id: id, file_url: url, file_data: data } = item
  if (given(id)) return { kind: 'file-id', id: text(id, `${path}.file_id`, MAX_ID) }
  if (given(url)) return decodeMediaUrl(string(url, `${path}.file_url`), `${path}.file_url`)
  if (!given(data)) refuse(path, 'must have file_data, file_url or file_id')
  return decodeMediaUrl(string(data, `${path}.file_data`), `${path}.file_data`)
}
