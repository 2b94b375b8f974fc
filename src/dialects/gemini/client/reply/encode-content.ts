/**
 * Writes blocks of an answer as parts, each as JSON text. Reasoning state of another provider's model, whose text
 * the client does not see, waits for the next part that can carry it.
 */
import { isObject, type JsonObject, type JsonValue } from '../../../../chat/json.js'
import { parseExact, stringifyExact } from '../../../../wire/json/exact-numbers.js'
import { quote } from '../../../../wire/json/quote.js'
import { PROVIDER } from '../../shared/names.js'
import { sealed, type Thought } from './thinking-token.js'

/** A call as it is over. */
export interface WrittenCall {
  readonly id: string
  readonly name: string
  /** The text of the arguments, as the upstream wrote it. */
  readonly json: string
  readonly custom?: boolean | undefined
  readonly signature?: string | undefined
}

/** A block of reasoning as it is over. */
export interface WrittenThought {
  readonly text: string
  readonly signature?: string | undefined
  readonly redacted?: string | undefined
}

/** The parts of one answer, in their order. */
export class PartWriter {
  /** The client reads thoughts. */
  readonly showsThoughts: boolean
  private readonly origin: string
  /** The state is Google's own, and goes out as it is. */
  private readonly isOwn: boolean
  private waiting: Thought[] = []
  private hasState = false

  /** `origin`: the dialect of the upstream. Google's models think aloud only if they were asked to. */
  constructor(origin: string | undefined, hidesThoughts: boolean) {
    this.origin = origin ?? PROVIDER
    this.isOwn = this.origin === PROVIDER
    this.showsThoughts = this.isOwn || !hidesThoughts
  }

  /** What a text part has beside its text: waiting state. Empty for most. */
  beside(): string {
    return this.waiting.length === 0 ? '' : this.carried()
  }

  /** The whole text of a block, or its last piece. `signature` is Google's. */
  text(text: string, signature?: string): string {
    const own = signature === undefined ? this.beside() : signed(signature)
    return `{"text":${quote(text)}${own}}`
  }

  /** A thought, or its last piece; null where there is nothing to show and its state waits for the next part. */
  thought({ text, signature, redacted }: WrittenThought): string | null {
    if (this.isOwn) {
      if (text === '' && signature === undefined) return null
      const own = signature === undefined ? '' : signed(signature)
      return `{"text":${quote(text)},"thought":true${own}}`
    }
    this.hasState ||= signature !== undefined || redacted !== undefined
    const state = { ...(signature === undefined ? {} : { signature }) }
    const shows = this.showsThoughts && text !== '' && redacted === undefined
    if (!shows) {
      if (text === '' && signature === undefined && redacted === undefined) return null
      this.waiting.push({ text, ...state, ...(redacted === undefined ? {} : { redacted }) })
      return null
    }
    const envelope = sealed({ origin: this.origin, thoughts: [state] })
    return `{"text":${quote(text)},"thought":true${signed(envelope)}}`
  }

  /** A piece of a thought that goes on. */
  piece(text: string): string {
    return `{"text":${quote(text)},"thought":true}`
  }

  /** A whole call: this format never splits one. */
  call({ id, name, json, custom, signature }: WrittenCall): string {
    const args = custom === true ? { input: json } : argumentsOf(json)
    const state =
      signature === undefined
        ? this.waiting.length > 0 || this.hasState
          ? this.carried(id)
          : ''
        : signed(signature)
    const call = `"id":${quote(id)},"name":${quote(name)},"args":${textOf(args)}`
    return `{"functionCall":{${call}}${state}}`
  }

  /** A picture that the model made. */
  image(url: string): string {
    const [, mimeType, data] = /^data:([^;,]{1,128});base64,([^]*)$/.exec(url) ?? []
    return mimeType === undefined || data === undefined
      ? `{"fileData":{"fileUri":${quote(url)}}}`
      : `{"inlineData":{"mimeType":${quote(mimeType)},"data":${quote(data)}}}`
  }

  /** A block of Google's own; null for another provider's. */
  opaque(provider: string, block: JsonObject): string | null {
    return provider === PROVIDER ? textOf(block) : null
  }

  /** State that found no part to go with, on an empty text; null where there is none. */
  rest(): string | null {
    return this.waiting.length === 0 ? null : this.text('')
  }

  private carried(callId?: string): string {
    const thoughts = this.waiting
    this.waiting = []
    const { origin } = this
    return signed(
      sealed(callId === undefined ? { origin, thoughts } : { origin, thoughts, callId }),
    )
  }
}

function signed(signature: string): string {
  return `,"thoughtSignature":${quote(signature)}`
}

/** Arguments are an object here. A text that is none is kept under `_raw`, so that the call is not lost. */
function argumentsOf(json: string): JsonObject {
  if (json.trim() === '') return {}
  try {
    const value = parseExact(json)
    if (isObject(value)) return value
  } catch {
    // Not JSON.
  }
  return { _raw: json }
}

/** The value on one line: a frame of a stream ends at the first line break. */
function textOf(value: JsonValue): string {
  try {
    return stringifyExact(value)
  } catch {
    // Nested deeper than the stack.
    return '{}'
  }
}
