/** The same format on both sides: edits of the request's bytes, and what the gateway reads of the reply. */
import type { WireError } from '../../errors.js'
import type { FinishReason } from '../chat/event.js'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { ModelFacts } from '../chat/model-facts.js'
import { NO_OUTPUT, type OutputSize } from '../chat/output-size.js'
import { reportsOutput, type Usage } from '../chat/usage.js'
import type { EncodeContext, StreamWatcher, WatchedRequest, ReplyFacts } from '../dialect.js'
import { FrameShapes } from '../wire/frames/frame-shapes.js'
import { stringifyExact } from '../wire/json/exact-numbers.js'
import type { Edit } from '../wire/json/splice.js'
import { largeEdit } from '../wire/json/write-json.js'
import { isReasoningToken } from '../wire/reasoning-token.js'
import { MALFORMED_REPLY, strayFrame } from '../wire/upstream-errors.js'
import { isThirdGeneration, SKIP_SIGNATURE } from './constants.js'
import {
  errorOfEvent,
  finishReason,
  reasonName,
  isPlain,
  SLOT,
  streamError,
} from './upstream/decode-reply.js'
import { Counts } from './upstream/decode-usage.js'

const COUNTED = ['generateContentRequest', 'generate_content_request']
const SIGNATURES = ['thoughtSignature', 'thought_signature'] as const

/**
 * The edits that remove `model`, which is in the path, and reasoning state of other providers' models, for
 * which Google rejects the whole request.
 */
export function edits(body: JsonObject, modelName: string, { model: facts, losses }: EncodeContext): Edit[] {
  const out: Edit[] = []
  if (body.model !== undefined) out.push({ key: 'model', json: null })
  out.push(...countedEdits(body, modelName), ...choiceEdits(body))
  const given = arrayOf(body.contents)
  const hasTokens = given.some(hasToken)
  if (hasTokens) losses.drop('contents.thoughtSignature', 'no-equivalent')
  if (!hasTokens && !given.some(isEmptyTurn)) return out
  const contents = given.flatMap((content) => (isEmptyTurn(content) ? [] : cleaned(content, facts)))
  if (contents.length > 0) out.push(largeEdit('contents', contents))
  return out
}

/** A free choice among functions needs some, which a cached content may have. Google judges any other. */
function choiceEdits(body: JsonObject): Edit[] {
  const cached = body.cachedContent ?? body.cached_content ?? null
  if (arrayOf(body.tools).length > 0 || cached !== null) return []
  return TOOL_CONFIGS.flatMap((key) => {
    const { functionCallingConfig, function_calling_config, ...rest } = objectOf(body[key])
    const choice = functionCallingConfig ?? function_calling_config
    if (!isObject(choice) || !FREE.has(choice.mode)) return []
    return [Object.keys(rest).length === 0 ? { key, json: null } : largeEdit(key, rest)]
  })
}

const TOOL_CONFIGS = ['toolConfig', 'tool_config']
const FREE: ReadonlySet<unknown> = new Set([undefined, 'AUTO', 'NONE', 'MODE_UNSPECIFIED', 'auto', 'none'])

/** Whether it is a turn of the model without parts, such as a blocked reply; the API refuses it. */
function isEmptyTurn(content: JsonValue): boolean {
  if (!isObject(content) || content.role !== 'model') return false
  return (content.parts ?? null) === null || (Array.isArray(content.parts) && content.parts.length === 0)
}

/** Sets the model's name inside a countTokens request. */
function countedEdits(body: JsonObject, modelName: string): Edit[] {
  return COUNTED.flatMap((key) => {
    const counted = body[key]
    const name = `models/${modelName}`
    if (!isObject(counted) || counted.model === name) return []
    return [largeEdit(key, { ...counted, model: name })]
  })
}

function hasToken(content: JsonValue): boolean {
  return arrayOf(objectOf(content).parts).some((part) => signatureName(objectOf(part)) !== null)
}

/** The name of the part's signature if it is the gateway's token; else null. */
function signatureName(part: JsonObject): string | null {
  return SIGNATURES.find((name) => isReasoningToken(stringOf(part[name]) ?? '')) ?? null
}

/** The content without tokens; no content if it has no other parts. */
function cleaned(content: JsonValue, facts: ModelFacts): JsonValue[] {
  if (!isObject(content) || !hasToken(content)) return [content]
  const parts = arrayOf(content.parts).flatMap((part) => cleanedPart(part, facts))
  return parts.length === 0 ? [] : [{ ...content, parts }]
}

function cleanedPart(part: JsonValue, facts: ModelFacts): JsonValue[] {
  if (!isObject(part)) return [part]
  const name = signatureName(part)
  if (name === null) return [part]
  const rest = Object.fromEntries(Object.entries(part).filter(([key]) => key !== name))
  const isCall = part.functionCall !== undefined || part.function_call !== undefined
  if (isCall) return [isThirdGeneration(facts) ? { ...rest, [name]: SKIP_SIGNATURE } : rest]
  return part.thought === true || (part.text ?? '') === '' ? [] : [rest]
}

/** The edit of `generationConfig` that sets `maxOutputTokens`. */
export function outputEdit(body: JsonObject, maxOutputTokens: number): Edit {
  const key = body.generation_config === undefined ? 'generationConfig' : 'generation_config'
  const config = { ...objectOf(body[key]) }
  const own = config.max_output_tokens === undefined ? 'maxOutputTokens' : 'max_output_tokens'
  const value = { ...config, [own]: maxOutputTokens }
  return { key, json: stringifyExact(value), value }
}

/** The state of the stream after the chunks so far. The strings of a chunk are bytes decoded as Latin-1. */
class WatchState {
  readonly counts = new Counts()
  readonly outputSize = { bytes: 0, calls: 0 }
  usage: Usage = {}
  model: string | null = null
  error: WireError | null = null
  hasContent = false
  blocked = false
  private hasCall = false
  private hasText = false
  private readonly onTool: WatchedRequest['onTool']
  /** Finish reasons by candidate index; null for a candidate that has none yet. */
  private readonly reasons = new Map<number, string | null>()

  constructor(onTool: WatchedRequest['onTool']) {
    this.onTool = onTool
  }

  chunk(chunk: JsonObject): void {
    this.error = streamError(chunk)
    if (this.error !== null) {
      this.error = streamError(asUtf8(chunk)) ?? this.error
      return
    }
    this.model ??= stringOf(chunk.modelVersion) ?? null
    this.usage = this.counts.update(chunk) ?? this.usage
    const kinds = this.counts.kinds()
    if (kinds !== null) this.usage = { ...this.usage, ...kinds }
    this.counts.ground(chunk.candidates, this.model ?? '')
    const { calls } = this.counts
    if (calls !== undefined) this.usage = { ...this.usage, calls }
    if (objectOf(chunk.promptFeedback).blockReason !== undefined) this.blocked = true
    for (const candidate of arrayOf(chunk.candidates)) this.candidate(objectOf(candidate))
    if (this.blocked) this.hasContent = true
  }

  get hasReasons(): boolean {
    if (this.blocked) return true
    if (this.reasons.size === 0) return false
    for (const reason of this.reasons.values()) if (reason === null) return false
    return true
  }

  get reason(): FinishReason | null {
    const name = this.reasons.get(0) ?? null
    if (name === null) return this.blocked ? 'filter' : null
    return finishReason(name, { call: this.hasCall, text: this.hasText }) ?? 'other'
  }

  get hasCandidate(): boolean {
    return this.reasons.size > 0 || this.blocked
  }

  private candidate(candidate: JsonObject): void {
    const index = typeof candidate.index === 'number' ? candidate.index : 0
    for (const part of arrayOf(objectOf(candidate.content).parts)) this.part(objectOf(part))
    const reason = reasonName(candidate.finishReason) ?? this.reasons.get(index) ?? null
    this.reasons.set(index, reason)
    if (reason !== null) this.hasContent = true
  }

  private part(part: JsonObject): void {
    const text = stringOf(part.text)
    if (text !== undefined) {
      this.outputSize.bytes += text.length
      if (text === '') return
      this.hasText ||= part.thought !== true
    } else if (isObject(part.functionCall)) {
      const { name, args } = part.functionCall
      this.onTool?.(stringOf(name) ?? '')
      this.hasCall = true
      this.outputSize.calls += 1
      this.outputSize.bytes += (stringOf(name) ?? '').length + JSON.stringify(args ?? {}).length
    }
    this.hasContent = true
  }
}

/**
 * Watches a Gemini stream that passes through unchanged, for usage, finish reasons, errors and the first
 * content. The format has no terminator: a stream is complete if it ends after every candidate has a finish
 * reason.
 */
export class GeminiWatcher implements StreamWatcher {
  readonly isComplete = false
  readonly excess = ''
  readonly missingFrame = ''
  readonly terminator = ''
  private readonly state: WatchState
  private readonly shapes = new FrameShapes<true>(SLOT)

  constructor({ onTool }: WatchedRequest) {
    // The strings of a stream are bytes.
    const named = (name: string): void => onTool?.(Buffer.from(name, 'latin1').toString('utf8'))
    this.state = new WatchState(onTool === undefined ? undefined : named)
  }

  get usage(): Usage {
    return this.state.usage
  }
  get reason(): FinishReason | null {
    return this.state.reason
  }
  get error(): WireError | null {
    return this.state.error
  }
  get model(): string | null {
    return this.state.model
  }
  get tier(): string | null {
    return this.state.counts.serviceTier ?? null
  }
  get outputSize(): OutputSize {
    return this.state.outputSize
  }
  get hasContent(): boolean {
    return this.state.hasContent
  }
  get isFinished(): boolean {
    return this.state.hasReasons
  }

  frame(name: string, data: string): boolean {
    const { state } = this
    if (state.error !== null) return false
    if (name === 'error') {
      state.error = errorOfEvent(Buffer.from(data, 'latin1').toString('utf8'))
      return false
    }
    const known = this.shapes.read(data)
    if (known !== null) {
      state.chunk(known)
      return true
    }
    let chunk: unknown
    try {
      chunk = JSON.parse(data)
    } catch {
      chunk = null
    }
    if (isObject(chunk)) state.chunk(chunk)
    else state.error = errorInArray(chunk) ?? strayFrame(Buffer.from(data, 'latin1').toString('utf8'))
    if (state.error === null && isPlain(chunk)) this.shapes.add(data, true)
    return state.error === null
  }
}

/** The error of a frame that is an array, as errors of streams without `alt=sse` are. */
function errorInArray(value: unknown): WireError | null {
  const [first] = arrayOf(value)
  return isObject(first) ? streamError(asUtf8(first)) : null
}

/** Usage, reason, failure and model of a whole reply. */
export function replyFacts(body: JsonObject, onTool?: WatchedRequest['onTool']): ReplyFacts {
  const state = new WatchState(onTool)
  state.chunk(body)
  const { usage, outputSize, reason, model, counts } = state
  return {
    usage,
    reason,
    error: state.error ?? (state.hasCandidate ? null : { ...MALFORMED_REPLY }),
    model,
    tier: counts.serviceTier ?? null,
    outputSize: reportsOutput(usage) ? NO_OUTPUT : outputSize,
  }
}

/** The value with its strings decoded as UTF-8 instead of Latin-1. */
function asUtf8(value: JsonObject): JsonObject {
  return objectOf(JSON.parse(Buffer.from(JSON.stringify(value), 'latin1').toString('utf8')))
}
