/**
 * Watches a stream that passes through untouched: usage, reason, failure, first content.
 * Parses only the frames that are unlike those before them; an ordinary delta costs a few comparisons.
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
import type { StreamTap, TapRequest, TapResult } from '../../dialect.js'
import { choiceOf, failure } from '../upstream/decode-stream.js'
import { GAVE_UP, MALFORMED, TRUNCATED } from '../shared/errors.js'
import { finishReason, SLOT, usageOf } from '../shared/names.js'
import { textBytes, replyTextBytes } from './text-bytes.js'

/** A quote inside a JSON string has a backslash before it, so what is found is a member. */
const UNASKED = /,\s*"usage"\s*:\s*null/g

/** What is known of ordinary frames of one shape. */
interface Ordinary {
  /** What of them is not the client's. */
  readonly trim: string
  /** They say how many tokens there were so far. */
  readonly counts: boolean
}

const DELTA = '"delta"'

/**
 * One stream's watcher. `complete` is true after `[DONE]`; until then a reason is not the end,
 * because usage follows it (reliability D-61 leaves an end of file after a reason to the caller).
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
  /** Answers, by their index, and whether each has its reason. */
  private readonly answers = new Map<number, boolean>()
  private readonly shapes = new FrameShapes<Ordinary>(SLOT)
  /** Where the last frame had its delta, and most have theirs: a search takes longer than a look. */
  private deltaAt = -1
  /** A call has begun: the reason of an answer that ends without one. */
  private sawCall = false
  /** The first chunk: a chunk that the upstream left out is like it. */
  private firstChunk: JsonObject | null = null
  private readonly includeUsage: boolean
  private readonly asChat: ((data: string) => string) | null

  /** `asChat` makes a frame of another format one of this; such a stream gets no chunk that its upstream left out. */
  constructor(request: TapRequest, asChat: ((data: string) => string) | null = null) {
    this.includeUsage = request.includeUsage
    this.asChat = asChat
  }

  get isFinished(): boolean {
    if (this.reason === null) return false
    for (const hasReason of this.answers.values()) if (!hasReason) return false
    return true
  }

  frame(_name: string, raw: string): boolean {
    if (this.error !== null || this.isComplete) return false
    const data = this.asChat === null ? raw : this.asChat(raw)
    this.deltaAt = data.startsWith(DELTA, this.deltaAt) ? this.deltaAt : data.indexOf(DELTA)
    this.outputSize.bytes += textBytes(data, this.deltaAt)
    if (this.hasContent) {
      const known = this.shapes.find(data)
      if (known !== null && this.isRead(known, data)) return true
    }
    if (data === '[DONE]' || data.trim() === '[DONE]') return this.endOfStream()
    const chunk = parse(data)
    if (chunk === null) {
      this.error = { ...MALFORMED }
      return false
    }
    this.excess = this.includeUsage ? '' : unasked(data, chunk)
    if (!this.watch(chunk)) return false
    if (isOrdinary(chunk)) this.shapes.add(data, { trim: this.excess, counts: hasCounts(chunk) })
    return true
  }

  /** Of a frame like one before it only the counts are read, where there are any. */
  private isRead({ trim, counts }: Ordinary, data: string): boolean {
    if (counts) {
      const chunk = this.shapes.value(data)
      if (chunk === null) return false
      this.count(chunk)
    }
    this.excess = trim
    return true
  }

  private endOfStream(): boolean {
    if (this.reason !== null) {
      this.isComplete = true
      return true
    }
    // As in the decoder: after content it is an end, before any the reply was cut.
    if (!this.hasContent) {
      this.error = { ...TRUNCATED }
      return false
    }
    this.reason = this.sawCall ? 'tool-use' : 'stop'
    if (this.asChat === null)
      this.missingFrame = this.lastChunk(this.sawCall ? 'tool_calls' : 'stop')
    this.isComplete = true
    return true
  }

  /** The chunk with the reason that the upstream left out, for each of its answers; the bytes read as Latin-1. */
  private lastChunk(reason: string): string {
    const { id = '', created = 0, model = '' } = this.firstChunk ?? {}
    const choices = [...this.answers.keys()].map((index) => {
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
    this.error = failure(chunk) ?? (choices.some(gaveUp) ? { ...GAVE_UP } : null)
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
    this.sawCall ||= arrayOf(delta['tool_calls']).length > 0
    const reason = choice['finish_reason']
    const hasReason = typeof reason === 'string' && reason !== ''
    const index = numberOf(choice['index']) ?? 0
    this.answers.set(index, hasReason || this.answers.get(index) === true)
    if (!hasReason) return
    this.hasContent = true
    this.reason ??= finishReason(reason)
  }
}

function gaveUp(choice: JsonValue): boolean {
  return objectOf(choice)['finish_reason'] === 'error'
}

/** Usage, reason, failure and model of a whole reply. */
export function tapReply(body: JsonObject): TapResult {
  const choice = choiceOf(body)
  const usage = usageOf(body['usage'])
  const reason = stringOf(choice?.['finish_reason'])
  return {
    usage,
    outputSize: reportsOutput(usage)
      ? NO_OUTPUT
      : { bytes: replyTextBytes(body['choices'] ?? null), calls: 0 },
    reason: reason === undefined || reason === '' ? null : finishReason(reason),
    error: failure(body) ?? (choice === null ? { ...MALFORMED } : null),
    model: nameOf(body),
    tier: stringOf(body['service_tier']) ?? null,
  }
}

function nameOf(body: JsonObject): string | null {
  const model = stringOf(body['model'])
  return model === undefined || model === '' ? null : model
}

/** True where a delta says something: anything but a role and empty or null members. */
function hasContent(delta: JsonObject): boolean {
  for (const key of Object.keys(delta)) {
    const value = delta[key]
    if (key === 'role' || value === null || value === '') continue
    if (Array.isArray(value) ? value.length > 0 : value !== undefined) return true
  }
  return false
}

/** True for a chunk without a reason, of those that hold no error. */
function isOrdinary(chunk: JsonObject): boolean {
  return arrayOf(chunk['choices']).every((choice) => {
    const reason = objectOf(choice)['finish_reason']
    return reason === null || reason === undefined
  })
}

function hasCounts(chunk: JsonObject): boolean {
  return isObject(chunk['usage']) || isObject(chunk['x_groq'])
}

/** The empty usage that only the gateway asked for, as it stands in the frame. */
function unasked(data: string, chunk: JsonObject): string {
  if (chunk['usage'] !== null) return ''
  const found = data.match(UNASKED)
  // Where there are more, one of them is inside another member.
  return found?.length === 1 ? found[0] : ''
}

/** The frame is bytes read as Latin-1; what is shown to anyone must be read as UTF-8. */
function parse(data: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(data, 'latin1').toString('utf8'))
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
