/**
 * Chunks of a Gemini answer to canonical events; a whole answer is one chunk.
 * Knows no bytes. Absorbs every disorder: missing parts, split texts, late counts, a cut end.
 *
 * Gemini has no terminator: the stream ends with its connection. So `finish` is held until `end()`,
 * and an end without a finish reason is an error.
 */
import type { EventSink } from '../../../chat/event.js'
import { arrayOf, isObject, stringOf, type JsonObject, type JsonValue } from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import type { TokenLogprob } from '../../../chat/reply/logprobs.js'
import type { ErrorKind, WireError } from '../../../errors.js'
import { parseExact, stringifyExact } from '../../../wire/json/exact-numbers.js'
import type { StreamDecoder } from '../../dialect.js'
import { Calls, type ClientCall } from './reply/decode-calls.js'
import { CitationBudget, citationsOf, recitationsOf } from './reply/decode-citations.js'
import { Counts } from '../shared/usage.js'
import { scrub } from '../../../wire/redact-upstream-text.js'
import { Shapes } from '../../../wire/frames/shapes.js'
import { decodeStreamError } from './decode-error.js'
import { finishReason, reasonName } from './reply/map-stop-reason.js'
import { logprobsOf } from './reply/decode-logprobs.js'
import { isPlain, SLOT } from './reply/decode-plain-chunk.js'
import { PROVIDER } from '../shared/names.js'

type Prose = 'text' | 'thinking'

/** The decoder of one answer. */
export class GeminiDecoder implements StreamDecoder {
  private readonly request: ChatRequest
  /** Which of the candidates is read. */
  private readonly place: number
  private readonly sink: EventSink
  private readonly counts = new Counts()
  private started = false
  private ended = false
  private replyId = ''
  private index = -1
  private open: Prose | null = null
  /** The signature of the open block; kept until the next part shows that the block is over. */
  private signature: string | undefined
  /** The open text block's text, which citations point into. */
  private text = ''
  private sawText = false
  private sawCall = false
  private answeredJson = false
  private reason: string | null = null
  private continuationToken: string | undefined
  private blocked: string | null = null
  private message: string | undefined
  private grounding: JsonObject | null = null
  private recited: JsonObject | null = null
  /** Tokens of a text that is about to come. */
  private tokens: TokenLogprob[] = []
  /** Texts that were over before their sources were named. */
  private readonly uncited: { readonly index: number; readonly text: string }[] = []
  private readonly citing = new CitationBudget()
  private calls: Calls | null = null
  private readonly shapes = new Shapes<true>(SLOT)

  constructor(request: ChatRequest, sink: EventSink, place = 0) {
    this.request = request
    this.place = place
    this.sink = sink
  }

  frame(_name: string, data: string): void {
    if (this.ended) return
    const known = this.shapes.read(data)
    if (known !== null) return this.chunk(known)
    let value: unknown
    try {
      value = JSON.parse(data)
      // Only arguments hold integers that a double cannot.
      if (hasCall(value)) value = parseExact(data)
    } catch {
      // Gemini sends no terminator of its own; proxies in between add OpenAI's.
      if (data.trim() !== '[DONE]')
        this.fail('upstream_malformed', 'The upstream sent a chunk that is not JSON.')
      return
    }
    this.take(value)
    if (isPlain(value)) this.shapes.learn(data, true)
  }

  /** One parsed chunk, or an array of them: the form of a stream that was not asked for as SSE. */
  take(value: unknown): void {
    if (Array.isArray(value)) for (const item of value) this.chunk(item)
    else this.chunk(value)
  }

  end(): void {
    if (this.ended) return
    if (this.reason === null && this.blocked === null) {
      this.fail('upstream_truncated', 'The upstream’s reply ended before it was complete.')
      return
    }
    const seen = { call: this.sawCall, text: this.sawText }
    const reason = this.reason === null ? 'filter' : finishReason(this.reason, seen)
    const raw = this.reason ?? this.blocked
    if (reason === null) {
      this.stumble(raw)
      return
    }
    this.close()
    for (const { index, text } of this.uncited) this.cite(index, text)
    if (reason === 'filter' && this.message !== undefined) this.refuse(this.message)
    this.ended = true
    const kinds = this.counts.kinds()
    if (kinds !== null) this.sink.event({ type: 'usage', usage: kinds })
    const { continuationToken } = this
    const { serviceTier } = this.counts
    // Any other reason may carry a token too, for a request with a larger budget than this one had.
    const paused = this.reason === 'CONTINUATION' && continuationToken !== undefined
    const empty = reason === 'stop' && this.index < 0 && !this.counts.saysSomething
    this.sink.event({
      type: 'finish',
      reason,
      raw,
      ...(serviceTier === undefined ? {} : { serviceTier }),
      ...(paused ? { resume: { continuationToken } } : {}),
      ...(empty ? { again: true } : {}),
    })
  }

  /** Calls that came out malformed and the like: chance, more often than not. */
  private stumble(raw: string | null): void {
    const why = this.message === undefined ? '' : `: ${this.message}`
    const error = wireError(
      'upstream_failed',
      `The model’s answer failed (${raw ?? ''})${why}`,
      raw,
    )
    this.ended = true
    this.sink.event({ type: 'error', error, again: true })
  }

  private chunk(value: unknown): void {
    if (this.ended) return
    if (!isObject(value)) {
      this.fail('upstream_malformed', 'The upstream sent a chunk that is not a JSON object.')
      return
    }
    if (value.error !== undefined && value.error !== null) {
      this.failWith(decodeStreamError(value.error))
      return
    }
    if (!this.started) this.start(value)
    const candidate = candidateOf(value.candidates, this.place)
    if (candidate !== null) this.candidate(candidate)
    // The handling of a candidate may have ended the stream, which the compiler cannot see.
    if (this.hasEnded()) return
    if (isObject(value.promptFeedback)) this.feedback(value.promptFeedback)
    if (isObject(value.usageMetadata)) {
      const usage = this.counts.update(value.usageMetadata)
      if (usage !== null) this.sink.event({ type: 'usage', usage })
    }
  }

  private hasEnded(): boolean {
    return this.ended
  }

  private start(value: JsonObject): void {
    this.started = true
    this.replyId = stringOf(value.responseId) ?? ''
    const model = stringOf(value.modelVersion) ?? this.request.model
    this.sink.event({ type: 'start', id: this.replyId, model })
  }

  private candidate(candidate: JsonObject): void {
    const content = candidate.content
    if (this.request.logprobs === true) {
      const found = logprobsOf(candidate.logprobsResult, this.request.topLogprobs ?? 0)
      for (const token of found) this.tokens.push(token)
    }
    this.sources(candidate)
    if (isObject(content) && Array.isArray(content.parts)) {
      for (const part of content.parts) {
        if (isObject(part)) this.part(part)
        if (this.ended) return
      }
    }
    if (candidate.finishReason !== undefined) {
      this.reason = reasonName(candidate.finishReason) ?? this.reason
    }
    if (typeof candidate.finishMessage === 'string') this.message = scrub(candidate.finishMessage)
    this.continuationToken = stringOf(candidate.continuationToken) ?? this.continuationToken
  }

  /** What the answer rests on. It is of all parts so far, and may come after them. */
  private sources(candidate: JsonObject): void {
    // Chunks that ground nothing carry it too, empty.
    const grounding = candidate.groundingMetadata
    if (isObject(grounding) && Array.isArray(grounding.groundingSupports))
      this.grounding = grounding
    if (isObject(candidate.citationMetadata)) this.recited = candidate.citationMetadata
  }

  private feedback(feedback: JsonObject): void {
    const reason = stringOf(feedback.blockReason)
    if (reason === undefined) return
    this.blocked = reason
    const message = stringOf(feedback.blockReasonMessage)
    if (message !== undefined) this.message = scrub(message)
  }

  private part(part: JsonObject): void {
    const { text, thoughtSignature } = part
    const signature = typeof thoughtSignature === 'string' ? thoughtSignature : undefined
    if (typeof text === 'string') {
      this.prose(part.thought === true ? 'thinking' : 'text', text, signature)
    } else if (isObject(part.functionCall)) {
      this.call(part.functionCall, signature)
    } else if (isBare(part)) {
      this.prose(part.thought === true ? 'thinking' : 'text', '', signature)
    } else {
      this.close()
      this.index += 1
      const { index } = this
      const url = part.thought === true ? null : imageUrl(part.inlineData)
      this.sink.event(
        url === null
          ? { type: 'opaque', index, provider: PROVIDER, block: part }
          : { type: 'image', index, url },
      )
    }
  }

  private prose(kind: Prose, text: string, signature: string | undefined): void {
    if (this.open !== kind || this.signature !== undefined) {
      if (text === '' && signature === undefined) return
      this.close()
      this.index += 1
      this.open = kind
      this.sink.event(
        kind === 'text'
          ? { type: 'text-start', index: this.index }
          : { type: 'thinking-start', index: this.index },
      )
    }
    if (signature !== undefined) this.signature = signature
    if (text === '') return
    if (kind === 'text') {
      this.text += text
      this.sawText = true
      if (this.tokens.length > 0) this.tellTokens()
      this.sink.event({ type: 'text-delta', index: this.index, text })
    } else this.sink.event({ type: 'thinking-delta', index: this.index, text })
  }

  private tellTokens(): void {
    const { index, tokens } = this
    this.tokens = []
    this.sink.event({ type: 'logprobs', index, tokens })
  }

  private call(functionCall: JsonObject, signature: string | undefined): void {
    const name = functionCall.name
    const partial = functionCall.partialArgs !== undefined || functionCall.willContinue === true
    if (typeof name !== 'string' || name === '' || partial) {
      this.fail('upstream_malformed', 'The upstream sent a function call that is not whole.')
      return
    }
    // Candidates count their calls each from the start.
    this.calls ??= new Calls(this.request, this.placed(this.replyId))
    if (this.calls.isJsonAnswer(name)) {
      this.jsonAnswer(functionCall.args, signature)
      return
    }
    let call: ClientCall
    try {
      call = this.calls.next(name, functionCall.id, functionCall.args)
    } catch {
      this.fail('upstream_malformed', 'The upstream sent arguments that nest too deep.')
      return
    }
    this.close()
    this.sawCall = true
    this.emitCall(call, signature)
  }

  private placed(id: string): string {
    return this.place === 0 ? id : `${id}_${this.place}`
  }

  private emitCall(call: ClientCall, signature: string | undefined): void {
    this.index += 1
    const { index } = this
    const { id, name, json, custom } = call
    const signed = signature === undefined ? {} : { signature }
    const form = custom ? { custom } : {}
    this.sink.event({ type: 'tool-start', index, id, name, ...form, ...signed })
    if (json !== '') this.sink.event({ type: 'tool-delta', index, json })
    this.sink.event({ type: 'tool-end', index, ...signed })
  }

  /** The synthetic tool's arguments are the answer; a second one would make two JSON texts of it. */
  private jsonAnswer(args: JsonValue | undefined, signature: string | undefined): void {
    if (this.answeredJson) return
    this.answeredJson = true
    let json: string
    try {
      json = stringifyExact(args ?? {})
    } catch {
      this.fail('upstream_malformed', 'The upstream sent arguments that nest too deep.')
      return
    }
    this.close()
    this.prose('text', json, signature)
  }

  private refuse(text: string): void {
    this.index += 1
    const { index } = this
    this.sink.event({ type: 'refusal-start', index })
    if (text !== '') this.sink.event({ type: 'refusal-delta', index, text })
    this.sink.event({ type: 'refusal-end', index })
  }

  private close(): void {
    if (this.open === null) return
    const { index, signature } = this
    if (this.open === 'text') {
      if (this.tokens.length > 0) this.tellTokens()
      if (this.grounding === null && this.recited === null) {
        this.uncited.push({ index, text: this.text })
      } else this.cite(index, this.text)
    }
    const type = this.open === 'text' ? 'text-end' : 'thinking-end'
    this.sink.event(signature === undefined ? { type, index } : { type, index, signature })
    this.open = null
    this.signature = undefined
    this.text = ''
  }

  private cite(index: number, text: string): void {
    const { grounding, recited } = this
    if (grounding !== null) {
      for (const citation of citationsOf(grounding, text, this.citing)) {
        this.sink.event({ type: 'citation', index, citation })
      }
    }
    if (recited === null) return
    for (const citation of recitationsOf(recited, text, this.citing)) {
      this.sink.event({ type: 'citation', index, citation })
    }
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
    : { kind, message, upstreamCode: scrub(raw).slice(0, 100) }
}

/** The candidate at a place: one decoder reads one, and the others are not its own. */
function candidateOf(candidates: JsonValue | undefined, place: number): JsonObject | null {
  for (const candidate of arrayOf(candidates)) {
    if (isObject(candidate) && (candidate.index ?? 0) === place) return candidate
  }
  return null
}

/** Whether a chunk, or one of an array of them, holds a call. */
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

/** The picture that a part holds as a `data:` URL; drafts among the thoughts are none. */
function imageUrl(inlineData: JsonValue | undefined): string | null {
  if (!isObject(inlineData)) return null
  const { mimeType, data } = inlineData
  if (typeof mimeType !== 'string' || typeof data !== 'string') return null
  return /^image\/[a-z0-9.+-]+$/i.test(mimeType) ? `data:${mimeType};base64,${data}` : null
}

/** A part that carries nothing but marks. */
function isBare(part: JsonObject): boolean {
  for (const key in part) if (key !== 'thought' && key !== 'thoughtSignature') return false
  return true
}
