/** The same format on both sides: edits of the request's bytes, and what the gateway reads of the reply. */
import type { WireError } from '../../errors.js'
import type { FinishReason } from '../chat/event.js'
import { arrayOf, isObject, stringOf, objectOf, type JsonObject, type JsonValue } from '../../base/json.js'
import { ConversationCalls } from '../chat/conversation-calls.js'
import { longTextOf } from '../chat/long-text.js'
import { NO_OUTPUT } from '../chat/output-size.js'
import { reportsOutput, type Usage } from '../chat/usage.js'
import type { Losses, StreamWatcher, WatchedRequest, ReplyFacts } from '../dialect.js'
import { errorIn as vendorError } from '../wire/error-text.js'
import { FrameShapes, parseLatin1 } from '../wire/frames/frame-shapes.js'
import { stringBytes } from '../wire/frames/sized-text.js'
import type { Edit } from '../wire/json/splice.js'
import { largeEdit } from '../wire/json/write-json.js'
import { isReasoningToken } from '../wire/reasoning-token.js'
import { hasNoArguments } from '../wire/json/no-arguments.js'
import { MALFORMED_REPLY, strayFrame } from '../wire/upstream-errors.js'
import { wireId } from './constants.js'
import { decodeErrorPayload } from './upstream/decode-error.js'
import { SLOT, finishReason, TEXT_DELTAS } from './upstream/decode-reply.js'
import { MessageUsage } from './upstream/decode-usage.js'

/**
 * The edits that set the upstream's model name, remove other providers' reasoning from the history and a
 * choice without tools, and complete calls without arguments.
 */
export function edits(body: JsonObject, modelName: string, losses: Losses): Edit[] {
  const out: Edit[] = []
  if (body.model !== modelName) out.push({ key: 'model', json: JSON.stringify(modelName) })
  // A free choice among tools needs some; any other one is for the upstream to judge.
  const hasTools = [body.tools, body.mcp_servers].some((list) => arrayOf(list).length > 0)
  const choice = objectOf(body.tool_choice).type
  if (!hasTools && (choice === 'auto' || choice === 'none')) out.push({ key: 'tool_choice', json: null })
  const messages = ownMessages(body.messages, losses)
  if (messages !== null) out.push(largeEdit('messages', messages))
  return out
}

/**
 * The messages without reasoning of other models, whose signature is the gateway's token, without empty text
 * of the model, and with call ids that Anthropic accepts: each call has its own. Null if nothing changes. A
 * message of the model without content, which the API refuses, is removed.
 */
function ownMessages(value: JsonValue | undefined, losses: Losses): JsonValue[] | null {
  let out: JsonValue[] | null = null
  const messages = arrayOf(value)
  const calls = new ConversationCalls()
  for (const [at, message] of messages.entries()) {
    const content = isObject(message) ? ownContent(message, { at, calls, losses }) : null
    if (content === null) {
      out?.push(message)
      continue
    }
    out ??= messages.slice(0, at)
    if (isObject(message) && content.length > 0) out.push({ ...message, content })
  }
  return out?.length === 0 ? null : out
}

/** A message of a conversation. */
interface MessageContext {
  readonly at: number
  readonly calls: ConversationCalls
  readonly losses: Losses
}

/** The changed content; empty for a message that is removed; null if nothing changes. */
function ownContent(message: JsonObject, context: MessageContext): JsonValue[] | null {
  const { content: value, role } = message
  const isModel = role === 'assistant'
  if (!Array.isArray(value)) {
    const isEmpty = isModel && longTextOf(message, 'content') === null && (value ?? '') === ''
    return isEmpty ? [] : null
  }
  if (isModel && value.length === 0) return []
  let out: JsonValue[] | null = null
  for (const [at, block] of value.entries()) {
    const own = isObject(block) ? ownBlock(block, context) : block
    const isLeftOut = own === null || (isModel && isEmptyText(own))
    if (own === block && !isLeftOut) {
      out?.push(block)
      continue
    }
    out ??= value.slice(0, at)
    if (own === null) context.losses.drop('messages.thinking', 'no-equivalent')
    else if (!isLeftOut) out.push(own)
  }
  return out
}

function isEmptyText(block: JsonValue): boolean {
  if (!isObject(block) || block.type !== 'text') return false
  return longTextOf(block, 'text') === null && block.text === ''
}

/** The same block if nothing changes; null if it is removed. */
function ownBlock(block: JsonObject, { at, calls }: MessageContext): JsonObject | null {
  switch (block.type) {
    case 'thinking':
      return isReasoningToken(stringOf(block.signature) ?? '') ? null : block
    case 'redacted_thinking':
      return isReasoningToken(stringOf(block.data) ?? '') ? null : block
    case 'tool_use':
      return withInput(withId(block, 'id', calls.add(stringOf(block.id) ?? '', at)))
    case 'tool_result': {
      const id = stringOf(block.tool_use_id) ?? ''
      return withId(block, 'tool_use_id', calls.answer(id) ?? id)
    }
    default:
      return block
  }
}

/** The block with an empty input instead of none; the API refuses any other value than an object. */
function withInput(block: JsonObject): JsonObject {
  const input = block.input ?? ''
  const isNone = typeof input === 'string' && longTextOf(block, 'input') === null && hasNoArguments(input)
  return isNone ? { ...block, input: {} } : block
}

function withId(block: JsonObject, key: 'id' | 'tool_use_id', id: string): JsonObject {
  const own = id === '' ? '' : wireId(id)
  return own === (stringOf(block[key]) ?? '') ? block : { ...block, [key]: own }
}

/** The members of a delta that hold text. */
const TEXT_MEMBERS = /"(?:text|thinking|partial_json)"\s*:\s*"/g
const DELTA = '"delta"'

/**
 * Watches a Messages stream that passes through unchanged, for usage, stop reason, errors and the first
 * content. Parses only frames whose shape differs from that of earlier frames. `isComplete` is true after
 * `message_stop`.
 */
export class MessageWatcher implements StreamWatcher {
  usage: Usage = {}
  reason: FinishReason | null = null
  error: WireError | null = null
  model: string | null = null
  readonly outputSize = { bytes: 0, calls: 0 }
  hasContent = false
  isComplete = false
  readonly excess = ''
  readonly missingFrame = ''
  readonly terminator = 'event: message_stop\ndata: {"type":"message_stop"}\n\n'
  private readonly meter = new MessageUsage()
  private readonly shapes = new FrameShapes<true>(SLOT)
  private hasTool = false
  private readonly onTool: WatchedRequest['onTool']

  constructor(request: WatchedRequest) {
    this.onTool = request.onTool
  }

  get tier(): string | null {
    return this.meter.pricedTier ?? null
  }

  get isFinished(): boolean {
    return this.reason !== null
  }

  frame(name: string, data: string): boolean {
    if (this.error !== null || this.isComplete) return false
    this.outputSize.bytes += stringBytes(data, data.indexOf(DELTA), TEXT_MEMBERS)
    if (this.hasContent && this.shapes.find(data) !== null) return true
    const payload = parseLatin1(data)
    if (payload === null) {
      // Some proxies append OpenAI's terminator.
      if (name !== 'error' && /^\s*(?:\[DONE\]\s*)?$/.test(data)) return true
      const text = Buffer.from(data, 'latin1').toString('utf8')
      this.error = name === 'error' ? decodeErrorPayload({ message: text }) : strayFrame(text)
      return false
    }
    this.error =
      name === 'error' ? decodeErrorPayload(payload) : this.watch(stringOf(payload.type) ?? name, payload)
    if (this.error !== null) return false
    if (isPlainDelta(payload)) this.shapes.add(data, true)
    return true
  }

  /** Returns the error that the frame reports; null if it reports none. */
  private watch(type: string, payload: JsonObject): WireError | null {
    if (type !== 'message_start') this.count(payload)
    switch (type) {
      case 'message_start':
        return this.start(objectOf(payload.message))
      case 'content_block_start':
        this.blockStart(objectOf(payload.content_block))
        return null
      case 'content_block_delta':
        this.hasContent ||= hasContent(objectOf(payload.delta))
        return null
      case 'message_delta':
        this.stop(objectOf(payload.delta))
        return null
      case 'message_stop':
        this.reason ??= 'other'
        this.hasContent = true
        this.isComplete = true
        return null
      default:
        return vendorError(payload) === null ? null : decodeErrorPayload(payload)
    }
  }

  /** A proxy that replays a stream restarts its counts. A second start after content is an error. */
  private start(message: JsonObject): WireError | null {
    if (this.hasContent) return { ...MALFORMED_REPLY }
    this.meter.reset()
    this.model ??= nameOf(message)
    this.count(message)
    return null
  }

  private blockStart(block: JsonObject): void {
    const { type } = block
    if (type === 'text' || type === 'thinking') {
      this.hasContent ||= hasContent(block)
      return
    }
    this.hasContent = true
    if (this.onTool !== undefined && isToolUse(type)) {
      this.onTool(Buffer.from(stringOf(block.name) ?? '', 'latin1').toString('utf8'))
    }
    if (type !== 'tool_use') return
    this.hasTool = true
    this.outputSize.calls += 1
    this.outputSize.bytes += stringOf(block.name)?.length ?? 0
  }

  private stop({ stop_reason }: JsonObject): void {
    if (typeof stop_reason !== 'string') return
    this.hasContent = true
    this.reason = finishReason(stop_reason, this.hasTool, false)
  }

  private count(event: JsonObject): void {
    if (this.meter.take(event)) this.usage = this.meter.usage()
  }
}

/** Usage, reason, failure and model of a whole reply. */
export function replyFacts(body: JsonObject, onTool?: WatchedRequest['onTool']): ReplyFacts {
  const meter = new MessageUsage()
  meter.take(body)
  const usage = meter.usage()
  const content = arrayOf(body.content)
  const hasTool = content.some((block) => objectOf(block).type === 'tool_use')
  if (onTool !== undefined) {
    for (const { type, name } of content.map(objectOf)) if (isToolUse(type)) onTool(stringOf(name) ?? '')
  }
  const raw = stringOf(body.stop_reason) ?? null
  return {
    usage,
    outputSize: reportsOutput(usage) ? NO_OUTPUT : { bytes: bytesIn(content), calls: 0 },
    reason: raw === null ? null : finishReason(raw, hasTool, false),
    error: errorIn(body),
    model: nameOf(body),
    tier: meter.pricedTier ?? null,
  }
}

/** Also tools that the provider runs, and those of MCP servers. */
function isToolUse(type: JsonValue | undefined): boolean {
  return type === 'tool_use' || type === 'server_tool_use' || type === 'mcp_tool_use'
}

function errorIn(body: JsonObject): WireError | null {
  if (isObject(body.error)) return decodeErrorPayload(body)
  if (Array.isArray(body.content)) return null
  return vendorError(body) === null ? { ...MALFORMED_REPLY } : decodeErrorPayload(body)
}

function bytesIn(content: JsonObject[string]): number {
  return stringBytes(Buffer.from(JSON.stringify(content)).toString('latin1'), 0, TEXT_MEMBERS)
}

function nameOf({ model }: JsonObject): string | null {
  return typeof model === 'string' && model !== '' ? model : null
}

/** True for a delta or block with text. */
function hasContent(delta: JsonObject): boolean {
  return ['text', 'thinking', 'partial_json'].some((member) => (stringOf(delta[member]) ?? '') !== '')
}

function isPlainDelta({ type, delta }: JsonObject): boolean {
  return type === 'content_block_delta' && TEXT_DELTAS.has(objectOf(delta).type)
}
