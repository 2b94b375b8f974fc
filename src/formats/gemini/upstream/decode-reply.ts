/**
 * Decodes the chunks of a Gemini reply to canonical events; a whole reply is one chunk.
 *
 * Gemini has no terminator: the stream ends with its connection. So `finish` is emitted by `end()`, and an
 * end without a finish reason is an error.
 */
import type { ErrorKind, WireError } from '../../../errors.js'
import {
  logprobOf,
  type EventSink,
  type FinishReason,
  type Logprob,
  type TokenLogprob,
} from '../../chat/event.js'
import {
  arrayOf,
  isObject,
  stringOf,
  numberOf,
  objectOf,
  type JsonObject,
  type JsonValue,
} from '../../../base/json.js'
import type { ChatRequest } from '../../chat/request.js'
import type { StreamDecoder, ChoicesDecoder } from '../../dialect.js'
import { bodyText, errorIn } from '../../wire/error-text.js'
import { FrameShapes } from '../../wire/frames/frame-shapes.js'
import { parseExact } from '../../wire/json/exact-numbers.js'
import { stopReasonOf } from '../../wire/stop-reasons.js'
import { redactUpstreamText, strayFrame, TRUNCATED_REPLY } from '../../wire/upstream-errors.js'
import { decodeStreamError, payloadOf } from './decode-error.js'
import { PartsDecoder } from './decode-parts.js'
import { Counts } from './decode-usage.js'

/** Decodes one candidate of one reply. */
export class GeminiDecoder implements StreamDecoder {
  private readonly request: ChatRequest
  /** The index of the candidate that is decoded. */
  private readonly candidateIndex: number
  private readonly sink: EventSink
  private readonly parts: PartsDecoder
  private readonly counts = new Counts()
  private started = false
  private ended = false
  private reason: string | null = null
  private continuationToken: string | undefined
  private blockReason: string | null = null
  private message: string | undefined
  private readonly shapes = new FrameShapes<true>(SLOT)

  constructor(request: ChatRequest, sink: EventSink, candidateIndex = 0) {
    this.request = request
    this.candidateIndex = candidateIndex
    this.sink = sink
    this.parts = new PartsDecoder(request, sink, candidateIndex)
  }

  frame(name: string, data: string): void {
    if (this.ended) return
    if (name === 'error') return this.failWith(errorOfEvent(data))
    const known = this.shapes.read(data)
    if (known !== null) return this.chunk(known)
    let value: unknown
    try {
      value = JSON.parse(data)
      // Only arguments hold integers that exceed a double's precision.
      if (hasCall(value)) value = parseExact(data)
    } catch {
      // Gemini sends no terminator; some proxies add OpenAI's.
      if (data.trim() !== '[DONE]') this.failWith(strayFrame(data))
      return
    }
    this.take(value)
    if (isPlain(value)) this.shapes.add(data, true)
  }

  /** Decodes a parsed chunk, or an array of chunks, which is Gemini's stream format without `alt=sse`. */
  take(value: unknown): void {
    if (Array.isArray(value)) for (const item of value) this.chunk(item)
    else this.chunk(value)
  }

  end(): void {
    if (this.ended) return
    if (this.reason === null && this.blockReason === null) {
      this.failWith({ ...TRUNCATED_REPLY })
      return
    }
    const seen = { call: this.parts.hasCall, text: this.parts.hasText }
    const reason = this.reason === null ? 'filter' : finishReason(this.reason, seen)
    const raw = this.reason ?? this.blockReason
    if (reason === null) {
      this.failRepeatably(raw)
      return
    }
    this.parts.end()
    if (reason === 'filter' && this.message !== undefined) this.parts.refuse(this.message)
    this.ended = true
    const kinds = this.counts.kinds()
    if (kinds !== null) this.sink.event({ type: 'usage', usage: kinds })
    const { continuationToken } = this
    const { serviceTier } = this.counts
    // Other reasons may carry a token too, for a client that sends the request again with a larger budget.
    const paused = this.reason === 'CONTINUATION' && continuationToken !== undefined
    const empty = reason === 'stop' && this.parts.index < 0 && !this.counts.hasOutput
    this.sink.event({
      type: 'finish',
      reason,
      raw,
      ...(serviceTier === undefined ? {} : { serviceTier }),
      ...(paused ? { resume: { continuationToken } } : {}),
      ...(empty ? { retrySame: true } : {}),
    })
  }

  /** Ends the reply with a failure of the model, such as a malformed call. A retry usually succeeds. */
  private failRepeatably(raw: string | null): void {
    const why = this.message === undefined ? '' : `: ${this.message}`
    const error = wireError('upstream_failed', `The model's reply failed (${raw ?? ''})${why}`, raw)
    this.ended = true
    this.sink.event({ type: 'error', error, retrySame: true })
  }

  private chunk(value: unknown): void {
    if (this.ended) return
    if (!isObject(value)) {
      this.fail('upstream_malformed', 'The upstream sent a chunk that is not a JSON object.')
      return
    }
    const error = streamError(value)
    if (error !== null) {
      this.failWith(error)
      return
    }
    if (!this.started) this.start(value)
    const candidate = candidateOf(value.candidates, this.candidateIndex)
    if (candidate !== null && !this.candidate(candidate)) return
    this.ground(value)
    if (isObject(value.promptFeedback)) this.feedback(value.promptFeedback)
    const usage = this.counts.update(value)
    if (usage !== null) this.sink.event({ type: 'usage', usage })
  }

  /** Emits the calls of Google's tools at once, so that a truncated reply is charged too. */
  private ground({ candidates, modelVersion }: JsonObject): void {
    const { counts } = this
    if (!counts.ground(candidates, stringOf(modelVersion) ?? this.request.model)) return
    const { calls } = counts
    if (calls !== undefined) this.sink.event({ type: 'usage', usage: { calls } })
  }

  private start(value: JsonObject): void {
    this.started = true
    const id = stringOf(value.responseId) ?? ''
    this.parts.start(id)
    const model = stringOf(value.modelVersion) ?? this.request.model
    this.sink.event({ type: 'start', id, model })
  }

  /** Returns false if a part was malformed, which ends the reply. */
  private candidate(candidate: JsonObject): boolean {
    const content = candidate.content
    if (this.request.logprobs === true) {
      const { topLogprobs = 0 } = this.request
      this.parts.addLogprobs(logprobsOf(candidate.logprobsResult, topLogprobs))
    }
    this.parts.addSources(candidate)
    if (isObject(content) && Array.isArray(content.parts)) {
      for (const part of content.parts) {
        const fault = isObject(part) ? this.parts.part(part) : null
        if (fault === null) continue
        this.fail('upstream_malformed', fault)
        return false
      }
    }
    if (candidate.finishReason !== undefined) {
      this.reason = reasonName(candidate.finishReason) ?? this.reason
    }
    if (typeof candidate.finishMessage === 'string')
      this.message = redactUpstreamText(candidate.finishMessage)
    this.continuationToken = stringOf(candidate.continuationToken) ?? this.continuationToken
    return true
  }

  private feedback(feedback: JsonObject): void {
    const reason = stringOf(feedback.blockReason)
    if (reason === undefined) return
    this.blockReason = reason
    const message = stringOf(feedback.blockReasonMessage)
    if (message !== undefined) this.message = redactUpstreamText(message)
  }

  private fail(kind: ErrorKind, message: string): void {
    this.failWith({ kind, message })
  }

  private failWith(error: WireError): void {
    this.ended = true
    this.sink.event({ type: 'error', error })
  }
}

function wireError(kind: ErrorKind, message: string, raw: string | null): WireError {
  return raw === null
    ? { kind, message }
    : { kind, message, upstreamCode: redactUpstreamText(raw).slice(0, 100) }
}

/** The error that a chunk has, or is; null for a chunk of a reply. */
export function streamError(chunk: JsonObject): WireError | null {
  const { error } = chunk
  if (isObject(error) || Array.isArray(error)) return decodeStreamError(error)
  const isChunk = MEMBERS.some((name) => chunk[name] !== undefined)
  if (isChunk && (error === undefined || error === null)) return null
  const failure = errorIn(chunk)
  return failure === null ? null : decodeStreamError(failure)
}

/** Members of which a chunk of a reply has at least one. */
const MEMBERS = ['candidates', 'usageMetadata', 'promptFeedback', 'modelVersion', 'responseId']

/** The error of an event that is named `error`, in any form. */
export function errorOfEvent(data: string): WireError {
  return decodeStreamError({ message: bodyText(data), ...payloadOf(data) })
}

/** The candidate with this index; null if the chunk has none. */
function candidateOf(candidates: JsonValue | undefined, index: number): JsonObject | null {
  for (const candidate of arrayOf(candidates)) {
    if (isObject(candidate) && (candidate.index ?? 0) === index) return candidate
  }
  return null
}

/** True if a chunk, or one of an array of chunks, holds a function call. */
function hasCall(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasCall)
  if (!isObject(value) || !Array.isArray(value.candidates)) return false
  for (const candidate of value.candidates) {
    const content = isObject(candidate) ? candidate.content : undefined
    if (!isObject(content) || !Array.isArray(content.parts)) continue
    for (const part of content.parts) {
      if (isObject(part) && part.functionCall !== undefined) return true
    }
  }
  return false
}

/**
 * Emits a grammatical stream for any body. Never throws, except errors of the sink. An array is decoded as
 * the chunks of a stream, which is Gemini's stream format without `alt=sse`.
 */
export function decodeReply(body: JsonValue, request: ChatRequest, sink: EventSink): void {
  const decoder = new GeminiDecoder(request, sink)
  decoder.take(body)
  decoder.end()
}

/**
 * Decodes each candidate into its own sink. All sinks receive the usage, which is that of all candidates
 * together.
 */
export class CandidatesDecoder implements ChoicesDecoder {
  private readonly decoders: readonly GeminiDecoder[]

  constructor(request: ChatRequest, sinks: readonly EventSink[]) {
    this.decoders = sinks.map((sink, index) => new GeminiDecoder(request, sink, index))
  }

  take(body: JsonValue): void {
    for (const decoder of this.decoders) decoder.take(body)
  }

  frame(name: string, data: string): void {
    for (const decoder of this.decoders) decoder.frame(name, data)
  }

  end(): void {
    for (const decoder of this.decoders) decoder.end()
  }
}

/** The variable parts of a plain chunk: the text and the counts. */
export const SLOT = /"(?:text"\s*:\s*"|(?:prompt|candidates|thoughts|total)TokenCount"\s*:\s*(?=[-\d]))/g
/** Members of a plain chunk. */
const PLAIN = new Set(['candidates', 'createTime', 'modelVersion', 'responseId', 'usageMetadata'])
const PLAIN_CANDIDATE = new Set(['content', 'index'])
const PLAIN_PART = new Set(['text', 'thought'])

/** True if a chunk has only text and counts, so that chunks of its shape need no full decoding. */
export function isPlain(value: unknown): boolean {
  if (!isObject(value) || !hasOnly(value, PLAIN)) return false
  return arrayOf(value.candidates).every((candidate) => {
    if (!isObject(candidate) || !hasOnly(candidate, PLAIN_CANDIDATE)) return false
    const parts = isObject(candidate.content) ? arrayOf(candidate.content.parts) : []
    return parts.every((part) => isObject(part) && hasOnly(part, PLAIN_PART))
  })
}

function hasOnly(value: JsonObject, names: ReadonlySet<string>): boolean {
  for (const name in value) if (!names.has(name)) return false
  return true
}

/** The kinds of content that a reply had when it ended. */
interface ContentKinds {
  call: boolean
  text: boolean
}

/** Enum numbers that both of Google's APIs share, for proxies that send numbers for names. */
const NUMBERS: Readonly<Record<number, string>> = {
  0: 'FINISH_REASON_UNSPECIFIED',
  1: 'STOP',
  2: 'MAX_TOKENS',
  3: 'SAFETY',
  4: 'RECITATION',
}

const FAILURES = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
])

/** The reason's name; null if the value is not a reason. */
export function reasonName(value: unknown): string | null {
  if (typeof value === 'number') return NUMBERS[value] ?? `FINISH_REASON_${value}`
  return typeof value === 'string' && value !== '' ? value : null
}

/** Words that no client gets: the gateway joins the parts of a reply that continues. */
const INTERNAL: ReadonlyMap<string, FinishReason> = new Map([
  ['CONTINUATION', 'length'],
  ['FINISH_REASON_UNSPECIFIED', 'stop'],
])

/**
 * The canonical reason; null if the reply failed and must end in an error. Gemini has no reason for calls:
 * they end with STOP. A reply with content and an unknown reason is complete.
 */
export function finishReason(name: string, content: ContentKinds): FinishReason | null {
  if (FAILURES.has(name)) return null
  const reason = stopReasonOf('gemini', name, INTERNAL.get(name))
  if (reason === 'length' || reason === 'filter') return reason
  if (content.call) return 'tool-use'
  return content.text || reason === 'stop' ? 'stop' : null
}

/** The log probabilities of the chosen tokens, each with the `top` most likely ones. */
function logprobsOf(value: JsonValue | undefined, top: number): TokenLogprob[] {
  const result = objectOf(value)
  const others = arrayOf(result.topCandidates)
  return arrayOf(result.chosenCandidates).flatMap((chosen, at) => {
    return likelyOf(chosen).map((token) => {
      const likely = top === 0 ? [] : arrayOf(objectOf(others[at]).candidates)
      return { ...token, top: likely.slice(0, top).flatMap(likelyOf) }
    })
  })
}

function likelyOf(value: JsonValue): Logprob[] {
  const { token, logProbability } = objectOf(value)
  const text = stringOf(token)
  const logprob = numberOf(logProbability)
  return text === undefined || logprob === undefined ? [] : [logprobOf(text, logprob)]
}
