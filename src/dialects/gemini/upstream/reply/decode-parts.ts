/**
 * Decodes the parts of one candidate to canonical events: text, thoughts, function calls, images and
 * citations. Consecutive text parts are one block, since Gemini splits a text at any point.
 */
import type { EventSink } from '../../../../chat/event.js'
import { isObject, type JsonObject, type JsonValue } from '../../../../chat/json.js'
import type { ChatRequest } from '../../../../chat/request.js'
import type { TokenLogprob } from '../../../../chat/reply/logprobs.js'
import { stringifyExact } from '../../../../wire/json/exact-numbers.js'
import { PROVIDER } from '../../shared/constants.js'
import { Calls, type ClientCall } from './decode-tool-calls.js'
import { CitationBudget, citationsOf, recitationsOf } from './decode-citations.js'

/** The message of an `upstream_malformed` error; null if the part is well-formed. */
export type Fault = string | null

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
    if (isObject(grounding) && Array.isArray(grounding.groundingSupports))
      this.grounding = grounding
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
      this.addText(
        thought === true ? 'thinking' : 'text',
        typeof text === 'string' ? text : '',
        signature,
      )
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
