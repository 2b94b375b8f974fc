/**
 * Decodes `system` and `messages`, and checks that every call has exactly one result.
 * Consecutive messages of one role are one turn, as in Anthropic's API.
 */
import { type JsonObject, type JsonValue, objectOf } from '../../../../chat/json.js'
import type { Message, ToolCall } from '../../../../chat/request.js'
import { array, given, object, oneOf, refuse } from '../../../../wire/json/check-fields.js'
import {
  assistantContent,
  contentOf,
  systemParts,
  userContent,
  type ToolResult,
} from './decode-content.js'
import type { NativeFields } from './native-fields.js'

type AssistantMessage = Extract<Message, { role: 'assistant' }>
type ToolMessage = Extract<Message, { role: 'tool' }>

/** More messages than fit the context window of any model. */
const MAX_MESSAGES = 10_000
const MAX_CALLS = 1_024

/**
 * The system prompt as the first message, then all messages. The results of a turn have the order of its
 * calls.
 */
export function decodeMessages(body: JsonObject, native: NativeFields): Message[] {
  const { messages } = body
  if (!Array.isArray(messages) || messages.length === 0) {
    refuse('messages', 'must be a non-empty array')
  }
  const decoder = new MessagesDecoder(native)
  if (given(body.system)) decoder.system(body)
  for (const [index, entry] of array(messages, 'messages', MAX_MESSAGES).entries()) {
    decoder.add(entry, index)
  }
  return decoder.done()
}

/** A turn with calls that have no result yet. */
interface OpenTurn {
  readonly message: AssistantMessage
  /** The path of each call in the request, by its id. */
  readonly paths: Map<string, string>
  readonly results: Map<string, ToolMessage>
}

class MessagesDecoder {
  private readonly out: Message[] = []
  private readonly native: NativeFields
  private turn: OpenTurn | null = null
  /** The number of user and assistant messages with content. */
  private nonEmptyCount = 0

  constructor(native: NativeFields) {
    this.native = native
  }

  system(body: JsonObject): void {
    const parts = systemParts(contentOf(body, 'system'), 'system', this.native)
    if (parts.length > 0) this.out.push({ role: 'system', index: 0, parts })
  }

  add(entry: JsonValue, index: number): void {
    const path = `messages[${index}]`
    const item = object(entry, path)
    const role = oneOf(item.role, `${path}.role`, ['user', 'assistant', 'system'])
    switch (role) {
      case 'user':
        return this.addUser(item, path, index)
      case 'assistant':
        return this.addAssistant(item, path, index)
      case 'system': {
        const parts = systemParts(contentOf(item, 'content'), `${path}.content`, this.native)
        this.closeTurn()
        if (parts.length > 0) this.out.push({ role, index, parts })
        return
      }
      default:
        role satisfies never
    }
  }

  done(): Message[] {
    this.closeTurn()
    if (this.nonEmptyCount === 0) refuse('messages', 'must have at least one message with content')
    return this.out
  }

  private addUser(item: JsonObject, path: string, index: number): void {
    const { results, parts } = userContent(item, path, this.native)
    for (const result of results) this.addResult(result, index)
    if (parts.length === 0 && results.length === 0 && isText(item.content)) {
      refuse(`${path}.content`, 'must not be empty')
    }
    this.nonEmptyCount += 1
    this.appendResults()
    if (parts.length === 0) return
    this.closeTurn()
    this.out.push({ role: 'user', index, parts })
  }

  private addResult({ callId, path, parts, isError, cache }: ToolResult, index: number): void {
    const { turn } = this
    if (turn?.paths.has(callId) !== true)
      refuse(path, 'matches no tool_use of the message before it')
    if (turn.results.has(callId)) refuse(path, 'already has a result')
    const message: ToolMessage = { role: 'tool', index, callId, parts }
    if (isError) message.isError = true
    if (cache !== undefined) message.cache = cache
    turn.results.set(callId, message)
  }

  private addAssistant(item: JsonObject, path: string, index: number): void {
    const { parts, calls } = assistantContent(item, path)
    if (calls.length > MAX_CALLS) refuse(`${path}.content`, `must have at most ${MAX_CALLS} calls`)
    if (parts.length === 0 && calls.length === 0) return
    this.nonEmptyCount += 1
    const message = this.assistantMessage(index)
    message.parts.push(...parts)
    if (calls.length === 0) return
    const turn = this.turn ?? { message, paths: new Map<string, string>(), results: new Map() }
    this.turn = turn
    for (const { path: at, call } of calls) this.addCall(turn, at, call)
  }

  private addCall({ message, paths }: OpenTurn, path: string, call: ToolCall): void {
    if (paths.has(call.id)) refuse(`${path}.id`, 'must differ from the ids of the other calls')
    paths.set(call.id, path)
    message.toolCalls.push(call)
  }

  /** The previous assistant message if no user message or result follows it; else a new one. */
  private assistantMessage(index: number): AssistantMessage {
    const last = this.out.at(-1)
    const isAnswered = this.turn !== null && this.turn.results.size > 0
    if (last?.role === 'assistant' && !isAnswered) return last
    this.closeTurn()
    const message: AssistantMessage = { role: 'assistant', index, parts: [], toolCalls: [] }
    this.out.push(message)
    return message
  }

  /** Appends the results of the open turn, in the order of its calls, once it has all of them. */
  private appendResults(): void {
    const { turn } = this
    if (turn === null || turn.results.size < turn.paths.size) return
    for (const { id } of turn.message.toolCalls) {
      const result = turn.results.get(id)
      if (result !== undefined) this.out.push(result)
    }
    this.turn = null
  }

  /** Throws `malformed_request` if a call of the open turn has no result. */
  private closeTurn(): void {
    const { turn } = this
    if (turn === null) return
    for (const [id, path] of turn.paths) {
      if (!turn.results.has(id)) {
        refuse(path, 'must be followed by a user message with a tool_result for it')
      }
    }
  }
}

/** True if all content is text. Blocks that only Anthropic supports count as content. */
function isText(content: JsonValue | undefined): boolean {
  if (!Array.isArray(content)) return true
  return content.every((block) => objectOf(block).type === 'text')
}
