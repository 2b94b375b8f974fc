/**
 * Decodes the parts of one candidate to canonical events: text, thoughts, function calls, images and
 * citations. Consecutive text parts are one block, since Gemini splits a text at any point.
 */
import type { EventSink, TokenLogprob, Citation } from '../../chat/event.js'
import {
  isObject,
  arrayOf,
  numberOf,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../../base/json.js'
import type { ChatRequest } from '../../chat/request.js'
import { stringifyExact } from '../../wire/json/exact-numbers.js'
import { PROVIDER } from '../constants.js'
import { jsonToolName } from './encode-tools.js'
import { CUSTOM_INPUT } from '../../wire/custom-tools.js'

/** The message of an `upstream_malformed` error; null if the part is well-formed. */
type Fault = string | null

const TOO_DEEP = 'The upstream sent arguments that are nested too deeply.'

type OpenBlock = 'text' | 'thinking'

/** The blocks of one candidate. */
export class PartsDecoder {
  /** The canonical index of the newest block; -1 before the first. */
  index = -1
  hasText = false
  hasCall = false
  private readonly request: ChatRequest
  /** The index of the candidate. */
  private readonly candidate: number
  private readonly sink: EventSink
  private replyId = ''
  private open: OpenBlock | null = null
  /** The signature of the open block; kept until the next part shows that the block is complete. */
  private signature: string | undefined
  /** The open text block's text, which citations refer to. */
  private text = ''
  private hasJsonAnswer = false
  private grounding: JsonObject | null = null
  private citationMetadata: JsonObject | null = null
  /** Log probabilities that arrived before their text. */
  private tokens: TokenLogprob[] = []
  /** Texts that were complete before their sources arrived. */
  private readonly uncited: { readonly index: number; readonly text: string }[] = []
  private readonly budget = new CitationBudget()
  private calls: Calls | null = null

  constructor(request: ChatRequest, sink: EventSink, candidate: number) {
    this.request = request
    this.sink = sink
    this.candidate = candidate
  }

  /** Starts the reply. Ids of calls derive from its id. */
  start(replyId: string): void {
    this.replyId = replyId
  }

  addLogprobs(tokens: readonly TokenLogprob[]): void {
    for (const token of tokens) this.tokens.push(token)
  }

  /** Reads the sources of all parts so far; they may arrive after the parts. */
  addSources(candidate: JsonObject): void {
    // Chunks without sources carry an empty object.
    const grounding = candidate.groundingMetadata
    if (isObject(grounding) && Array.isArray(grounding.groundingSupports)) this.grounding = grounding
    if (isObject(candidate.citationMetadata)) this.citationMetadata = candidate.citationMetadata
  }

  /** Decodes one part. */
  part(part: JsonObject): Fault {
    const { text, thought, thoughtSignature, functionCall } = part
    const signature = typeof thoughtSignature === 'string' ? thoughtSignature : undefined
    if (isObject(functionCall) && typeof text !== 'string') {
      return this.call(functionCall, signature)
    }
    if (typeof text === 'string' || hasNoContent(part)) {
      this.addText(thought === true ? 'thinking' : 'text', typeof text === 'string' ? text : '', signature)
      return null
    }
    this.close()
    this.index += 1
    const { index } = this
    const url = thought === true ? null : imageUrl(part.inlineData)
    this.sink.event(
      url === null
        ? { type: 'opaque', index, provider: PROVIDER, block: part }
        : { type: 'image', index, url },
    )
    return null
  }

  /** Ends the open block and cites the texts whose sources arrived late. */
  end(): void {
    this.close()
    for (const { index, text } of this.uncited) this.cite(index, text)
  }

  /** Emits a refusal block. */
  refuse(text: string): void {
    this.index += 1
    const { index } = this
    this.sink.event({ type: 'refusal-start', index })
    if (text !== '') this.sink.event({ type: 'refusal-delta', index, text })
    this.sink.event({ type: 'refusal-end', index })
  }

  private addText(kind: OpenBlock, text: string, signature: string | undefined): void {
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
      this.hasText = true
      if (this.tokens.length > 0) this.emitLogprobs()
      this.sink.event({ type: 'text-delta', index: this.index, text })
    } else this.sink.event({ type: 'thinking-delta', index: this.index, text })
  }

  private emitLogprobs(): void {
    const { index, tokens } = this
    this.tokens = []
    this.sink.event({ type: 'logprobs', index, tokens })
  }

  private call(functionCall: JsonObject, signature: string | undefined): Fault {
    const name = functionCall.name
    const partial = functionCall.partialArgs !== undefined || functionCall.willContinue === true
    if (typeof name !== 'string' || name === '' || partial) {
      return 'The upstream sent an incomplete function call.'
    }
    // Each candidate counts its calls from 0.
    this.calls ??= new Calls(
      this.request,
      this.candidate === 0 ? this.replyId : `${this.replyId}_${this.candidate}`,
    )
    if (this.calls.isJsonAnswer(name)) return this.jsonAnswer(functionCall.args, signature)
    let call: ClientCall
    try {
      call = this.calls.next(name, functionCall.id, functionCall.args)
    } catch {
      return TOO_DEEP
    }
    this.close()
    this.hasCall = true
    this.emitCall(call, signature)
    return null
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

  /**
   * The arguments of the synthetic tool are the reply's text. A second call would make two JSON texts and is
   * ignored.
   */
  private jsonAnswer(args: JsonValue | undefined, signature: string | undefined): Fault {
    if (this.hasJsonAnswer) return null
    this.hasJsonAnswer = true
    let json: string
    try {
      json = stringifyExact(args ?? {})
    } catch {
      return TOO_DEEP
    }
    this.close()
    this.addText('text', json, signature)
    return null
  }

  private close(): void {
    if (this.open === null) return
    const { index, signature } = this
    if (this.open === 'text') {
      if (this.tokens.length > 0) this.emitLogprobs()
      if (this.grounding === null && this.citationMetadata === null) {
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
    const { grounding, citationMetadata, budget } = this
    const grounded = grounding === null ? [] : citationsOf(grounding, text, budget)
    for (const citation of grounded) this.sink.event({ type: 'citation', index, citation })
    if (citationMetadata === null) return
    for (const citation of recitationsOf(citationMetadata, text, budget)) {
      this.sink.event({ type: 'citation', index, citation })
    }
  }
}

/** An image part as a `data:` URL; null for anything else. */
function imageUrl(inlineData: JsonValue | undefined): string | null {
  if (!isObject(inlineData)) return null
  const { mimeType, data } = inlineData
  if (typeof mimeType !== 'string' || typeof data !== 'string') return null
  return /^image\/[a-z0-9.+-]+$/i.test(mimeType) ? `data:${mimeType};base64,${data}` : null
}

/** True for a part that has only a thought flag or a signature. */
function hasNoContent(part: JsonObject): boolean {
  for (const key in part) if (key !== 'thought' && key !== 'thoughtSignature') return false
  return true
}

/** OpenAI rejects longer call ids in a history. */
const MAX_ID_CHARS = 40
const MAX_REPLY_ID_CHARS = 26

/** A call in the client's terms. */
interface ClientCall {
  id: string
  name: string
  json: string
  custom: boolean
}

/**
 * Numbers the calls of one reply in order, gives each an id that is unique in the conversation, and restores
 * the client's forms of the tools. Generated ids are not random: they derive from the reply's id.
 */
class Calls {
  private readonly customs: Set<string>
  private readonly jsonTool: string | null
  private readonly usedIds = new Set<string>()
  private readonly stem: string
  private count = 0

  /** `replyId` must differ between the replies of a conversation: generated ids derive from it. */
  constructor(request: ChatRequest, replyId: string) {
    this.customs = new Set(request.tools.filter((tool) => tool.custom !== undefined).map((tool) => tool.name))
    this.jsonTool = jsonToolName(request)
    const safe = replyId.replace(/[^A-Za-z0-9_-]/g, '_').slice(-MAX_REPLY_ID_CHARS)
    this.stem = safe === '' ? `m${request.messages.length}` : safe
    for (const message of request.messages) {
      if (message.role === 'assistant') for (const call of message.toolCalls) this.usedIds.add(call.id)
    }
  }

  /** True for the synthetic tool whose arguments are the reply's text. */
  isJsonAnswer(name: string): boolean {
    return name === this.jsonTool
  }

  /**
   * The call in the client's terms. Throws a RangeError for arguments that are nested too deeply to
   * serialize.
   */
  next(name: string, id: JsonValue | undefined, args: JsonValue | undefined): ClientCall {
    const custom = this.customs.has(name)
    return { id: this.idFor(id), name, custom, json: argumentsOf(args, custom) }
  }

  /** The upstream's id if it is valid and unique, else `call_<reply>_<ordinal>`. */
  private idFor(given: JsonValue | undefined): string {
    const ordinal = this.count
    this.count += 1
    let id = `call_${this.stem}_${ordinal}`
    if (typeof given === 'string' && isId(given) && !this.usedIds.has(given)) id = given
    for (let suffix = 1; this.usedIds.has(id); suffix += 1) {
      id = `call_${this.stem}_${ordinal}_${suffix}`
    }
    this.usedIds.add(id)
    return id
  }
}

function isId(text: string): boolean {
  return text.length <= MAX_ID_CHARS && /^[A-Za-z0-9_-]+$/.test(text)
}

/**
 * The text of a custom tool's input, or the JSON text of a function's arguments: `{}` without arguments;
 * integers beyond 2^53 keep all their digits.
 */
function argumentsOf(args: JsonValue | undefined, custom: boolean): string {
  if (!custom) return stringifyExact(args ?? {})
  const input = isObject(args) ? args[CUSTOM_INPUT] : undefined
  return typeof input === 'string' ? input : stringifyExact(args ?? {})
}

/** Maximum number of citations per text. Recorded replies have at most 12. */
const MAX_CITATIONS = 256
/**
 * Maximum number of bytes and list items examined for the citations of one reply: some tens of milliseconds.
 */
const MAX_WORK = 16 * 1024 * 1024

/** The remaining work for the citations of one reply, since each source may refer to the whole text. */
class CitationBudget {
  private remaining = MAX_WORK

  /** Spends work; false once the budget is exhausted, after which the remaining sources are omitted. */
  spend(work: number): boolean {
    this.remaining -= work
    return this.remaining >= 0
  }
}

/**
 * The passages of published texts that the model repeats (`citationMetadata`) and that are found in `text`.
 */
function recitationsOf(metadata: JsonObject, text: string, budget: CitationBudget): Citation[] {
  const bytes = Buffer.from(text)
  const citations: Citation[] = []
  // The Developer API has the first name, Vertex the second.
  for (const item of arrayOf(metadata.citationSources ?? metadata.citations)) {
    const source = sourceOf({ web: item })
    if (!budget.spend(1)) break
    const range = findSegment(objectOf(item), { text, bytes, budget })
    if (source === null || range === null) continue
    if (citations.length === MAX_CITATIONS) break
    citations.push({ ...source, ...range })
  }
  return citations
}

/** The grounding citations that are found in `text`, in Gemini's order. */
function citationsOf(grounding: JsonObject, text: string, budget: CitationBudget): Citation[] {
  const chunks = arrayOf(grounding.groundingChunks)
  if (!budget.spend(chunks.length)) return []
  const sources = chunks.map(sourceOf)
  const bytes = Buffer.from(text)
  const citations: Citation[] = []
  for (const support of arrayOf(grounding.groundingSupports)) {
    const { segment, groundingChunkIndices } = objectOf(support)
    if (!budget.spend(1)) return citations
    const range = findSegment(objectOf(segment), { text, bytes, budget })
    if (range === null) continue
    for (const at of arrayOf(groundingChunkIndices)) {
      if (!budget.spend(1)) return citations
      const source = typeof at === 'number' ? sources[at] : undefined
      if (source === undefined || source === null) continue
      if (citations.length === MAX_CITATIONS) return citations
      citations.push({ ...source, ...range })
    }
  }
  return citations
}

function sourceOf(chunk: unknown): Citation | null {
  const holder = objectOf(chunk)
  const source = objectOf(holder.web ?? holder.retrievedContext ?? holder.maps)
  const url = stringOf(source.uri)
  const title = stringOf(source.title)
  if (url === undefined || url === '') return null
  return title === undefined ? { url } : { url, title }
}

/** The cited text, also as UTF-8, and the remaining budget. */
interface CitedText {
  readonly text: string
  readonly bytes: Buffer
  readonly budget: CitationBudget
}

/**
 * Finds a segment in the text. Its offsets may count from the start of a part, so its quoted text takes
 * precedence.
 */
function findSegment(segment: JsonObject, { text, bytes, budget }: CitedText): Citation | null {
  const from = Math.max(0, Math.trunc(numberOf(segment.startIndex) ?? 0))
  const to = Math.max(from, Math.trunc(numberOf(segment.endIndex) ?? from))
  const quoted = stringOf(segment.text)
  if (!budget.spend(Math.min(to, bytes.length))) return null
  const slice = to <= bytes.length ? bytes.toString('utf8', from, to) : null
  if (slice !== null && to > from && (quoted === undefined || quoted === slice)) {
    const start = bytes.toString('utf8', 0, from).length
    return { citedText: slice, start, end: start + slice.length }
  }
  if (quoted === undefined || quoted === '' || !budget.spend(text.length)) return null
  const start = text.indexOf(quoted)
  return start < 0 ? null : { citedText: quoted, start, end: start + quoted.length }
}
