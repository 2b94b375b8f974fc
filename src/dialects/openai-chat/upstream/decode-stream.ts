/**
 * Reads what an upstream answers, whole or in chunks, whatever disorder it is in.
 * Emits a grammatical stream for any input; knows no client dialect.
 *
 * Rules: finish waits for `[DONE]` or the end, because usage comes after `finish_reason`; an end after
 * `finish_reason` is complete without `[DONE]`, and so is `[DONE]` after content without a `finish_reason`
 * (OpenRouter's streams from Novita). An end without either is a truncated reply. Only the first choice is read.
 */
import type { Citation, EventSink, FinishReason } from '../../../chat/event.js'
import {
  arrayOf,
  isObject,
  type JsonObject,
  type JsonValue,
  numberOf,
  objectOf,
  stringOf,
} from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import type { WireError } from '../../../errors.js'
import { decodeErrorPayload } from '../../../wire/openai/decode-error.js'
import { clientNames } from '../../../wire/openai/names.js'
import { FrameShapes } from '../../../wire/frames/frame-shapes.js'
import type { StreamDecoder } from '../../dialect.js'
import { Blocks } from './reply/decode-blocks.js'
import { GAVE_UP, MALFORMED, TRUNCATED } from '../shared/errors.js'
import { thoughtSignature } from '../shared/reasoning.js'
import { finishReason, SLOT, usageOf } from '../shared/names.js'

/** What a delta or message may hold that is read here, or says nothing to a client (Groq's `channel`). */
const READ = new Set([
  'annotations',
  'channel',
  'content',
  'function_call',
  'images',
  'prefix',
  'reasoning',
  'reasoning_content',
  'refusal',
  'role',
  'tool_calls',
])

/** More kinds of members that nobody here knows than any vendor has. */
const MAX_STRANGERS = 16

/** Decodes one stream. */
export class ChunkDecoder implements StreamDecoder {
  private readonly sink: EventSink
  private readonly blocks: Blocks
  private id = ''
  private model = ''
  private started = false
  private ended = false
  private raw: string | null = null
  /** The answer ended without a reason. */
  private isUnnamed = false
  private usage: JsonValue | undefined
  private tier: string | undefined
  /** Members with something in them that the canon has no place for. */
  private strangers: Set<string> | null = null
  private readonly shapes = new FrameShapes<true>(SLOT)

  constructor(request: ChatRequest, sink: EventSink) {
    this.sink = sink
    this.blocks = new Blocks(sink, clientNames(request.tools), () => this.id)
  }

  frame(_name: string, data: string): void {
    if (this.ended) return
    const known = this.shapes.read(data)
    if (known !== null) return this.chunk(known)
    if (data === '[DONE]' || data.trim() === '[DONE]') return this.terminator()
    let chunk: unknown
    try {
      chunk = JSON.parse(data)
    } catch {
      return this.fail(MALFORMED)
    }
    if (!isObject(chunk)) return this.fail(MALFORMED)
    this.chunk(chunk)
    // From the first choice on nothing of a chunk is kept.
    if (this.started) this.shapes.add(data, true)
  }

  end(): void {
    if (!this.ended) this.finish()
  }

  /** A whole reply is one chunk whose choice has a `message` and a reason. */
  whole(body: JsonObject): void {
    if (failure(body) === null && choiceOf(body) === null) {
      return this.fail(MALFORMED)
    }
    this.chunk(body)
    // Valid JSON cannot be cut short, so a missing reason is only a missing word.
    if (this.raw === null) this.raw = ''
    if (!this.ended) this.finish()
  }

  private chunk(chunk: JsonObject): void {
    if (this.id === '') this.id = stringOf(chunk['id']) ?? ''
    if (this.model === '') this.model = stringOf(chunk['model']) ?? ''
    if (this.tier === undefined) this.tier = stringOf(chunk['service_tier'])
    this.count(chunk)
    const error = failure(chunk)
    if (error !== null) return this.fail(error)
    const choice = choiceOf(chunk)
    if (choice === null) return
    this.start()
    // What comes after the reason is not part of the answer.
    if (this.raw !== null) return
    const whole = !isObject(choice['delta'])
    if (!this.delta(objectOf(choice[whole ? 'message' : 'delta']), whole)) {
      return this.fail(MALFORMED)
    }
    const reason = choice['finish_reason']
    if (typeof reason === 'string' && reason !== '') this.raw = reason
  }

  /** Usage goes out as soon as it is known, so that a stream that breaks off is still priced. */
  private count(chunk: JsonObject): void {
    const usage = chunk['usage'] ?? objectOf(chunk['x_groq'])['usage']
    if (!isObject(usage)) return
    this.usage = usage
    if (this.started) this.sink.event({ type: 'usage', usage: usageOf(usage) })
  }

  private start(): void {
    if (this.started) return
    this.started = true
    this.sink.event({ type: 'start', id: this.id, model: this.model })
    if (this.usage !== undefined) this.sink.event({ type: 'usage', usage: usageOf(this.usage) })
  }

  /** False where the delta cannot be understood. */
  private delta(delta: JsonObject, whole: boolean): boolean {
    const { blocks } = this
    const { content } = delta
    // Most pieces are text and nothing else.
    for (const key in delta) if (key !== 'content' && !READ.has(key)) this.meet(key, delta[key])
    const thought = stringOf(delta['reasoning_content']) ?? stringOf(delta['reasoning']) ?? ''
    let ok = blocks.words('thinking', thought)
    ok &&= this.content(content)
    for (const item of arrayOf(delta['annotations'])) {
      const citation = citationOf(item)
      if (citation !== null) blocks.cite(citation)
    }
    for (const item of arrayOf(delta['images'])) ok &&= this.image(item)
    ok &&= blocks.words('refusal', stringOf(delta['refusal']) ?? '')
    const calls = arrayOf(delta['tool_calls'])
    for (const [at, item] of calls.entries()) {
      ok &&= isObject(item) && this.call(item, whole ? at : placeOf(item, calls, this.blocks.calls))
    }
    const legacy = delta['function_call']
    return ok && (isObject(legacy) ? this.call({ function: legacy }, 0) : true)
  }

  /** A string, or Mistral's list of text and thinking parts (recorded). */
  private content(value: JsonValue | undefined): boolean {
    if (typeof value === 'string') return this.blocks.words('text', value)
    return arrayOf(value).every((item) => {
      const part = objectOf(item)
      if (part['type'] === 'text') return this.blocks.words('text', stringOf(part['text']) ?? '')
      if (part['type'] !== 'thinking') {
        this.meet(stringOf(part['type']) ?? 'content', part)
        return true
      }
      const thinking = part['thinking']
      const said =
        stringOf(thinking) ??
        arrayOf(thinking)
          .map((it) => stringOf(objectOf(it)['text']) ?? '')
          .join('')
      return this.blocks.words('thinking', said)
    })
  }

  /** A picture beside the content (OpenRouter). */
  private image(item: JsonValue): boolean {
    const url = stringOf(objectOf(objectOf(item)['image_url'])['url']) ?? ''
    return url === '' || this.blocks.image(url)
  }

  private call(item: JsonObject, index: number | null): boolean {
    const custom = isObject(item['custom'])
    const inner = objectOf(custom ? item['custom'] : item['function'])
    const text = inner[custom ? 'input' : 'arguments']
    const piece = {
      index,
      id: stringOf(item['id']) ?? '',
      name: stringOf(inner['name']) ?? '',
      json: isObject(text) ? JSON.stringify(text) : (stringOf(text) ?? ''),
      custom,
    }
    const signature = thoughtSignature(item)
    return this.blocks.call(signature === undefined ? piece : { ...piece, signature })
  }

  private meet(name: string, value: JsonValue | undefined): void {
    if (value === undefined || value === null || value === '') return
    if (typeof value === 'object' && Object.keys(value).length === 0) return
    this.strangers ??= new Set()
    if (this.strangers.size < MAX_STRANGERS) this.strangers.add(name)
  }

  /** The format's own end. Without a reason before it the answer is whole all the same, if there is one. */
  private terminator(): void {
    if (this.raw === null && this.blocks.began) {
      this.raw = ''
      this.isUnnamed = true
    }
    this.finish()
  }

  private finish(): void {
    if (this.raw === null) {
      return this.fail(TRUNCATED)
    }
    if (this.raw === 'error') {
      return this.fail(GAVE_UP)
    }
    if (!this.blocks.finish()) {
      return this.fail(MALFORMED)
    }
    this.ended = true
    // Handed on by name alone, so that their loss is reported.
    for (const type of this.strangers ?? []) {
      const index = this.blocks.next()
      this.sink.event({ type: 'opaque', index, provider: 'openai-chat', block: { type } })
    }
    // No word for it is the word for an ordinary end.
    let reason: FinishReason = this.isUnnamed ? 'stop' : finishReason(this.raw)
    if (reason === 'stop' && this.blocks.calls > 0) reason = 'tool-use'
    const raw = this.raw === '' ? null : this.raw
    const { tier } = this
    this.sink.event(
      tier === undefined
        ? { type: 'finish', reason, raw }
        : { type: 'finish', reason, raw, serviceTier: tier },
    )
  }

  private fail(error: WireError): void {
    if (this.ended) return
    this.ended = true
    this.sink.event({ type: 'error', error: { ...error } })
  }
}

/** Decodes a whole reply. Never throws; emits the same events that a stream of it would. */
export function decodeReply(body: JsonObject, request: ChatRequest, sink: EventSink): void {
  new ChunkDecoder(request, sink).whole(body)
}

/** The failure that a 200 carries, alone or beside its choices, or null. */
export function failure(chunk: JsonObject): WireError | null {
  const error = chunk['error'] ?? objectOf(arrayOf(chunk['choices'])[0])['error']
  if (error === undefined || error === null || error === false || error === '') return null
  return decodeErrorPayload(error)
}

/** The first choice: the one at place 0, or one that has no usable place. */
export function choiceOf(chunk: JsonObject): JsonObject | null {
  for (const item of arrayOf(chunk['choices'])) {
    if (!isObject(item)) continue
    const index = numberOf(item['index'])
    if (index === undefined || index <= 0) return item
  }
  return null
}

/**
 * The place of a streamed piece as the upstream counts; null where it gives none (or -1). Several
 * calls in one list with neither a place nor an id are told apart by having a name each.
 */
function placeOf(item: JsonObject, siblings: readonly JsonValue[], calls: number): number | null {
  const index = numberOf(item['index'])
  if (index !== undefined && index >= 0) return index
  const named = stringOf(objectOf(item['function'])['name']) ?? ''
  const anonymous = siblings.length > 1 && named !== '' && (stringOf(item['id']) ?? '') === ''
  return anonymous ? -1 - calls : null
}

function citationOf(item: JsonValue): Citation | null {
  const inner = objectOf(objectOf(item)['url_citation'])
  const url = stringOf(inner['url'])
  if (url === undefined) return null
  const citation: Citation = { url }
  const title = stringOf(inner['title'])
  const start = numberOf(inner['start_index'])
  const end = numberOf(inner['end_index'])
  if (title !== undefined) citation.title = title
  if (start !== undefined) citation.start = start
  if (end !== undefined) citation.end = end
  return citation
}
