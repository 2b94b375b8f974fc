/**
 * The client formats of a rehearsal: encodes requests and decodes replies with the codecs of the dialects, in
 * the role of a client.
 */
import { isContent, type ChatEvent, type EventSink } from '../../formats/chat/event.js'
import { Fold, type Reply } from '../../formats/chat/fold.js'
import { Grammar } from '../../formats/chat/grammar.js'
import { arrayOf, numberOf, objectOf, stringOf, type JsonObject, parsedJson } from '../../base/json.js'
import type { ModelFacts, ModelFamily } from '../../formats/chat/model-facts.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import type { DialectName, UpstreamCodec } from '../../formats/dialect.js'
import { upstreamCodecOf } from '../../formats/index.js'
import { SseFramer } from '../../formats/wire/frames/sse-framer.js'
import { stringifyExact } from '../../formats/wire/json/exact-numbers.js'

/** The client formats that can be rehearsed. */
export const FORMATS = ['chat', 'messages', 'responses', 'gemini'] as const

export type FormatName = (typeof FORMATS)[number]

const DIALECTS: Readonly<Record<FormatName, { dialect: DialectName; family: ModelFamily }>> = {
  chat: { dialect: 'openai-chat', family: 'openai' },
  messages: { dialect: 'anthropic', family: 'anthropic' },
  responses: { dialect: 'openai-responses', family: 'openai' },
  gemini: { dialect: 'gemini', family: 'google' },
}

/** A request to the gateway. */
interface Wire {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** An error in a client's format. */
export interface ClientError {
  /** The gateway's kind; empty if the error is not in the format. */
  readonly kind: string
  readonly message: string
}

export class Format {
  readonly name: FormatName
  private readonly dialect: DialectName
  private readonly upstreamCodec: UpstreamCodec
  private readonly facts: ModelFacts

  /** `facts` of the rehearsed model apply if it is of the format's own vendor. */
  constructor(name: FormatName, facts: ModelFacts) {
    this.name = name
    const { dialect, family } = DIALECTS[name]
    const upstreamCodec = upstreamCodecOf(dialect)
    if (upstreamCodec === null) throw new Error(`no format ${dialect}`)
    this.dialect = dialect
    this.upstreamCodec = upstreamCodec
    const ordinary = { id: facts.id, family, createdAtSeconds: 0 }
    this.facts = facts.family === family ? facts : ordinary
  }

  /** Throws `GatewayError(untranslatable)` for features that the format lacks. */
  encode(request: ChatRequest): Wire {
    const body = this.upstreamCodec.encodeRequest(request, this.facts, { drop: () => undefined })
    const { path, accept } = this.upstreamCodec.target(request.model, request.stream)
    const base = this.dialect === 'gemini' ? '/v1beta' : '/v1'
    return {
      path: `${base}${path}`,
      headers: { 'content-type': 'application/json', accept, ...this.upstreamCodec.headers(body) },
      body: stringifyExact(body),
    }
  }

  /** Decodes a whole reply and checks it against the grammar. */
  decode(body: JsonObject, request: ChatRequest): Reading {
    const reading = new Reading()
    this.upstreamCodec.decodeReply(body, request, reading.sink)
    return reading
  }

  /** Decodes a stream in chunks. */
  stream(request: ChatRequest): StreamReading {
    const reading = new Reading()
    const decoder = this.upstreamCodec.newDecoder(request, reading.sink)
    const framer = new SseFramer(decoder)
    return {
      reading,
      write: (chunk) => framer.write(chunk),
      end() {
        framer.end()
        decoder.end()
      },
    }
  }

  /** The error in a body; `kind` is empty if the body is not an error of the format. */
  errorIn(text: string, status: number): ClientError {
    const body = objectOf(parsedJson(text))
    const error = objectOf(body['error'])
    const message = stringOf(error['message']) ?? text.slice(0, 200)
    switch (this.name) {
      case 'messages': {
        const isError = body['type'] === 'error' && stringOf(error['type']) !== undefined
        return { kind: isError ? (stringOf(error['kind']) ?? '') : '', message }
      }
      case 'gemini': {
        const isError = numberOf(error['code']) === status && stringOf(error['status']) !== undefined
        const details = arrayOf(error['details']).map(objectOf)
        const reason = details.map((detail) => stringOf(detail['reason'])).find(Boolean)
        return { kind: isError ? (reason ?? '') : '', message }
      }
      case 'chat':
      case 'responses': {
        const { type, code } = error
        const isCode = status === 401 ? code === 401 : code === null || typeof code === 'string'
        const isError = stringOf(type) !== undefined && isCode
        return { kind: isError ? (stringOf(error['kind']) ?? '') : '', message }
      }
      default:
        return this.name satisfies never
    }
  }
}

/** A decoded reply. */
export class Reading implements EventSink {
  /** Whether text, reasoning or a call has been decoded. */
  hasContent = false
  readonly sink: EventSink
  private readonly fold = new Fold()
  private readonly grammar: Grammar

  constructor() {
    this.grammar = new Grammar(this)
    this.sink = this.grammar
  }

  event(event: ChatEvent): void {
    if (event.type !== 'finish' && isContent(event)) this.hasContent = true
    this.fold.event(event)
  }

  /** Null if it is incomplete. */
  get reply(): Reply | null {
    return this.fold.reply()
  }

  /** The reason if there is no reply. */
  get failure(): string {
    const { breach } = this.grammar
    return breach ?? this.fold.error?.message ?? 'the reply has no end'
  }
}

/** A stream that is being decoded. */
interface StreamReading {
  readonly reading: Reading
  write(chunk: Buffer): void
  /** The connection has ended. */
  end(): void
}
