/**
 * Watches a stream that passes through unchanged: usage, finish reason, error, first content. Only frames
 * that differ in shape from earlier ones are parsed; an ordinary delta costs a few comparisons.
 */
import type { FinishReason } from '../../../chat/event.js'
import {
  arrayOf,
  isObject,
  type JsonObject,
  type JsonValue,
  numberOf,
  objectOf,
  stringOf,
} from '../../../chat/json.js'
import { NO_OUTPUT } from '../../../chat/reply/output-size.js'
import { mergeUsage, reportsOutput, type Usage } from '../../../chat/usage.js'
import type { WireError } from '../../../errors.js'
import { FrameShapes } from '../../../wire/frames/frame-shapes.js'
import { parseLatin1 } from '../../../wire/frames/parse-latin1.js'
import { MALFORMED_REPLY, TRUNCATED_REPLY } from '../../../wire/reply-faults.js'
import type { StreamTap, TapRequest, TapResult } from '../../dialect.js'
import { errorIn, STOPPED_WITH_ERROR } from '../upstream/decode-error.js'
import { choiceOf } from '../upstream/decode-stream.js'
import { citesPages, ONE_SEARCH, usageOf } from '../upstream/reply/decode-usage.js'
import { finishReason } from '../upstream/reply/map-stop-reason.js'
import { FRAME_SLOTS } from '../shared/constants.js'
import { textBytes, replyTextBytes } from './text-bytes.js'

/** A quote inside a JSON string has a backslash before it, so every match is a member. */
const NULL_USAGE = /,\s*"usage"\s*:\s*null/g

/** Facts of ordinary frames of one shape. */
interface OrdinaryFrame {
  /** The part of the frame that only the gateway requested. */
  readonly excess: string
  /** The frames contain usage so far. */
  readonly hasUsage: boolean
}

const DELTA = '"delta"'

/**
 * Watches one stream. `isComplete` is true after `[DONE]`. A finish reason alone is not the end, because
 * usage follows it; the caller decides about an end of file after a reason (reliability D-61).
 */
export class ChunkTap implements StreamTap {
  usage: Usage = {}
  reason: FinishReason | null = null
  error: WireError | null = null
  model: string | null = null
  tier: string | null = null
  readonly outputSize = { bytes: 0, calls: 0 }
  hasContent = false
  isComplete = false
  excess = ''
  missingFrame = ''
  readonly terminator = 'data: [DONE]\n\n'
  /** Whether each choice has a finish reason, by the index of the choice. */
  private readonly choices = new Map<number, boolean>()
  private readonly shapes = new FrameShapes<OrdinaryFrame>(FRAME_SLOTS)
  /** The offset of the delta in the last frame, at which most frames have theirs. */
  private deltaAt = -1
  /** A call has begun; it implies the finish reason of a stream that ends without one. */
  private hasCall = false
  /** The first chunk, from which a chunk that the upstream omitted is built. */
  private firstChunk: JsonObject | null = null
  private readonly includeUsage: boolean
  private readonly asChat: ((data: string) => string) | null

  /** `asChat` converts a frame of another format; such a stream gets no chunk that its upstream omitted. */
  constructor(request: TapRequest, asChat: ((data: string) => string) | null = null) {
    this.includeUsage = request.includeUsage
    this.asChat = asChat
  }

  get isFinished(): boolean {
    if (this.reason === null) return false
    for (const hasReason of this.choices.values()) if (!hasReason) return false
    return true
  }

  frame(_name: string, raw: string): boolean {
    if (this.error !== null || this.isComplete) return false
    const data = this.asChat === null ? raw : this.asChat(raw)
    this.deltaAt = data.startsWith(DELTA, this.deltaAt) ? this.deltaAt : data.indexOf(DELTA)
    this.outputSize.bytes += textBytes(data, this.deltaAt)
    if (this.hasContent) {
      const known = this.shapes.find(data)
      if (known !== null && this.takeKnown(known, data)) return true
    }
    if (data === '[DONE]' || data.trim() === '[DONE]') return this.endOfStream()
    const chunk = parseLatin1(data)
    if (chunk === null) {
      this.error = { ...MALFORMED_REPLY }
      return false
    }
    this.excess = this.includeUsage ? '' : nullUsageIn(data, chunk)
    if (!this.watch(chunk)) return false
    if (isOrdinary(chunk)) {
      this.shapes.add(data, { excess: this.excess, hasUsage: hasUsage(chunk) })
    }
    return true
  }

  /** Reads the usage of a frame with a known shape, if it has any. False if the frame must be parsed. */
  private takeKnown(frame: OrdinaryFrame, data: string): boolean {
    if (frame.hasUsage) {
      const chunk = this.shapes.value(data)
      if (chunk === null) return false
      this.count(chunk)
    }
    this.excess = frame.excess
    return true
  }

  private endOfStream(): boolean {
    if (this.reason !== null) {
      this.isComplete = true
      return true
    }
    // As in the decoder: `[DONE]` ends a reply with content, and truncates one without.
    if (!this.hasContent) {
      this.error = { ...TRUNCATED_REPLY }
      return false
    }
    this.reason = this.hasCall ? 'tool-use' : 'stop'
    if (this.asChat === null)
      this.missingFrame = this.lastChunk(this.hasCall ? 'tool_calls' : 'stop')
    this.isComplete = true
    return true
  }

  /** The chunk with the finish reasons that the upstream omitted, as bytes read as Latin-1. */
  private lastChunk(reason: string): string {
    const { id = '', created = 0, model = '' } = this.firstChunk ?? {}
    const choices = [...this.choices.keys()].map((index) => {
      return { index, delta: {}, finish_reason: reason }
    })
    const chunk = { id, object: 'chat.completion.chunk', created, model, choices }
    return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`).toString('latin1')
  }

  private watch(chunk: JsonObject): boolean {
    this.firstChunk ??= chunk
    this.model ??= nameOf(chunk)
    this.tier ??= stringOf(chunk['service_tier']) ?? null
    this.count(chunk)
    const choices = arrayOf(chunk['choices'])
    this.error = errorIn(chunk) ?? (choices.some(hasErrorReason) ? { ...STOPPED_WITH_ERROR } : null)
    if (this.error !== null) return false
    for (const choice of choices) this.choice(objectOf(choice))
    return this.includeUsage || choices.length > 0 || !isObject(chunk['usage'])
  }

  private count(chunk: JsonObject): void {
    const usage = chunk['usage'] ?? objectOf(chunk['x_groq'])['usage']
    if (isObject(usage)) this.usage = mergeUsage(this.usage, usageOf(usage))
  }

  private choice(choice: JsonObject): void {
    const delta = objectOf(choice['delta'])
    this.hasContent ||= hasContent(delta)
    if (this.usage.calls === undefined && citesPages(delta)) {
      this.usage = { ...this.usage, calls: ONE_SEARCH }
    }
    this.hasCall ||= arrayOf(delta['tool_calls']).length > 0
    const reason = choice['finish_reason']
    const hasReason = typeof reason === 'string' && reason !== ''
    const index = numberOf(choice['index']) ?? 0
    this.choices.set(index, hasReason || this.choices.get(index) === true)
    if (!hasReason) return
    this.hasContent = true
    this.reason ??= finishReason(reason)
  }
}

function hasErrorReason(choice: JsonValue): boolean {
  return objectOf(choice)['finish_reason'] === 'error'
}

/** Usage, finish reason, error and model of a whole reply. */
export function tapReply(body: JsonObject): TapResult {
  const choice = choiceOf(body)
  const usage = usageOf(body['usage'])
  if (usage.calls === undefined && arrayOf(body['choices']).some(hasCitedPages)) {
    usage.calls = ONE_SEARCH
  }
  const reason = stringOf(choice?.['finish_reason'])
  return {
    usage,
    outputSize: reportsOutput(usage)
      ? NO_OUTPUT
      : { bytes: replyTextBytes(body['choices'] ?? null), calls: 0 },
    reason: reason === undefined || reason === '' ? null : finishReason(reason),
    error: errorIn(body) ?? (choice === null ? { ...MALFORMED_REPLY } : null),
    model: nameOf(body),
    tier: stringOf(body['service_tier']) ?? null,
  }
}

function hasCitedPages(choice: JsonValue): boolean {
  return citesPages(objectOf(objectOf(choice)['message']))
}

function nameOf(body: JsonObject): string | null {
  const model = stringOf(body['model'])
  return model === undefined || model === '' ? null : model
}

/** Whether a delta has a member beside the role that is neither empty nor null. */
function hasContent(delta: JsonObject): boolean {
  for (const key of Object.keys(delta)) {
    const value = delta[key]
    if (key === 'role' || value === null || value === '') continue
    if (Array.isArray(value) ? value.length > 0 : value !== undefined) return true
  }
  return false
}

/** Whether a chunk without an error has no finish reason. */
function isOrdinary(chunk: JsonObject): boolean {
  return arrayOf(chunk['choices']).every((choice) => {
    const reason = objectOf(choice)['finish_reason']
    return reason === null || reason === undefined
  })
}

function hasUsage(chunk: JsonObject): boolean {
  return isObject(chunk['usage']) || isObject(chunk['x_groq'])
}

/** The text of `"usage":null`, which only the gateway requested; empty if there is none. */
function nullUsageIn(data: string, chunk: JsonObject): string {
  if (chunk['usage'] !== null) return ''
  const found = data.match(NULL_USAGE)
  // Of several matches, some are inside another member.
  return found?.length === 1 ? found[0] : ''
}
