/**
 * Watches a Gemini stream that passes through untouched: usage, reasons, failure, first content.
 * The format has no terminator: a stream is complete if it ends after every candidate has its reason.
 */
import type { FinishReason } from '../../../chat/event.js'
import { arrayOf, isObject, type JsonObject, objectOf, stringOf } from '../../../chat/json.js'
import { NO_OUTPUT, type OutputSize } from '../../../chat/reply/output-size.js'
import { reportsOutput, type Usage } from '../../../chat/usage.js'
import type { WireError } from '../../../errors.js'
import { FrameShapes } from '../../../wire/frames/frame-shapes.js'
import type { StreamTap, TapResult } from '../../dialect.js'
import { Counts } from '../shared/usage.js'
import { decodeStreamError } from '../upstream/decode-error.js'
import { finishReason, reasonName } from '../upstream/reply/map-stop-reason.js'
import { isPlain, SLOT } from '../upstream/reply/decode-plain-chunk.js'

const MALFORMED: WireError = {
  kind: 'upstream_malformed',
  message: 'The upstream’s reply broke its own format.',
}

/** What the chunks so far amount to. Strings of a chunk are its bytes, read as Latin-1. */
class Watched {
  readonly counts = new Counts()
  readonly said = { bytes: 0, calls: 0 }
  usage: Usage = {}
  model: string | null = null
  error: WireError | null = null
  content = false
  blocked = false
  private sawCall = false
  private sawText = false
  /** The reasons of the candidates, by their index; null for one that has none yet. */
  private readonly reasons = new Map<number, string | null>()

  chunk(chunk: JsonObject): void {
    if (chunk.error !== undefined && chunk.error !== null) {
      this.error = decodeStreamError(asUtf8(chunk.error))
      return
    }
    this.model ??= stringOf(chunk.modelVersion) ?? null
    if (isObject(chunk.usageMetadata)) {
      this.usage = this.counts.update(chunk.usageMetadata) ?? this.usage
    }
    if (objectOf(chunk.promptFeedback).blockReason !== undefined) this.blocked = true
    for (const candidate of arrayOf(chunk.candidates)) this.candidate(objectOf(candidate))
    if (this.blocked) this.content = true
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
    return finishReason(name, { call: this.sawCall, text: this.sawText }) ?? 'other'
  }

  get hasAnswer(): boolean {
    return this.reasons.size > 0 || this.blocked
  }

  private candidate(candidate: JsonObject): void {
    const index = typeof candidate.index === 'number' ? candidate.index : 0
    for (const part of arrayOf(objectOf(candidate.content).parts)) this.part(objectOf(part))
    const reason = reasonName(candidate.finishReason) ?? this.reasons.get(index) ?? null
    this.reasons.set(index, reason)
    if (reason !== null) this.content = true
  }

  private part(part: JsonObject): void {
    const text = stringOf(part.text)
    if (text !== undefined) {
      this.said.bytes += text.length
      if (text === '') return
      this.sawText ||= part.thought !== true
    } else if (isObject(part.functionCall)) {
      const { name, args } = part.functionCall
      this.sawCall = true
      this.said.calls += 1
      this.said.bytes += (stringOf(name) ?? '').length + JSON.stringify(args ?? {}).length
    }
    this.content = true
  }
}

/** One stream's watcher. */
export class GeminiTap implements StreamTap {
  readonly isComplete = false
  readonly excess = ''
  readonly missingFrame = ''
  readonly terminator = ''
  private readonly watched = new Watched()
  private readonly shapes = new FrameShapes<true>(SLOT)

  get usage(): Usage {
    return this.watched.usage
  }
  get reason(): FinishReason | null {
    return this.watched.reason
  }
  get error(): WireError | null {
    return this.watched.error
  }
  get model(): string | null {
    return this.watched.model
  }
  get tier(): string | null {
    return this.watched.counts.serviceTier ?? null
  }
  get outputSize(): OutputSize {
    return this.watched.said
  }
  get hasContent(): boolean {
    return this.watched.content
  }
  get isFinished(): boolean {
    return this.watched.hasReasons
  }

  frame(_name: string, data: string): boolean {
    const { watched } = this
    if (watched.error !== null) return false
    const known = this.shapes.read(data)
    if (known !== null) {
      watched.chunk(known)
      return true
    }
    let chunk: unknown
    try {
      chunk = JSON.parse(data)
    } catch {
      chunk = null
    }
    if (isObject(chunk)) watched.chunk(chunk)
    else watched.error = { ...MALFORMED }
    if (watched.error === null && isPlain(chunk)) this.shapes.add(data, true)
    return watched.error === null
  }
}

/** Usage, reason, failure and model of a whole reply. */
export function tapReply(body: JsonObject): TapResult {
  const watched = new Watched()
  watched.chunk(body)
  const { usage, said, reason, model, counts } = watched
  return {
    usage,
    reason,
    error: watched.error ?? (watched.hasAnswer ? null : { ...MALFORMED }),
    model,
    tier: counts.serviceTier ?? null,
    outputSize: reportsOutput(usage) ? NO_OUTPUT : said,
  }
}

/** The value with its strings as they were meant; what is shown to anyone must be read as UTF-8. */
function asUtf8(value: unknown): unknown {
  return JSON.parse(Buffer.from(JSON.stringify(value), 'latin1').toString('utf8'))
}
