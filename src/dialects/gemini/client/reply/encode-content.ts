/**
 * Encodes the blocks of a reply as parts, each as JSON text. Reasoning state of another provider's model
 * whose text is hidden from the client is added to the next part that can carry it.
 */
import { isObject, type JsonObject, type JsonValue } from '../../../../chat/json.js'
import { parseExact, stringifyExact } from '../../../../wire/json/exact-numbers.js'
import { quote } from '../../../../wire/json/quote.js'
import { PROVIDER } from '../../shared/constants.js'
import { sealEnvelope, type Thought } from './thinking-token.js'

/** A complete call. */
export interface WrittenCall {
  readonly id: string
  readonly name: string
  /** The arguments as the upstream's JSON text. */
  readonly json: string
  readonly custom?: boolean | undefined
  readonly signature?: string | undefined
}

/** A complete block of reasoning, or its last fragment. */
export interface WrittenThought {
  readonly text: string
  readonly signature?: string | undefined
  readonly redacted?: string | undefined
}

/** Encodes the parts of one reply in order. */
export class PartWriter {
  /** True if the client receives the text of thoughts. */
  readonly showsThoughts: boolean
  private readonly origin: string
  /** True for a Gemini upstream, whose state is sent unchanged. */
  private readonly isOwn: boolean
  /** State for the next part that can carry it. */
  private pending: Thought[] = []
  private hasState = false

  /**
   * `origin`: the dialect of the upstream. Gemini upstreams send thoughts only if the client requested them.
   */
  constructor(origin: string | undefined, hidesThoughts: boolean) {
    this.origin = origin ?? PROVIDER
    this.isOwn = this.origin === PROVIDER
    this.showsThoughts = this.isOwn || !hidesThoughts
  }

  /** The members of a text part after its text: pending state, usually none. */
  textMembers(): string {
    return this.pending.length === 0 ? '' : this.pendingState()
  }

  /** A text part. `signature` is Google's. */
  text(text: string, signature?: string): string {
    const own = signature === undefined ? this.textMembers() : signatureMember(signature)
    return `{"text":${quote(text)}${own}}`
  }

  /** A thought, or its last fragment; null if the client receives no text and the state is pending. */
  thought({ text, signature, redacted }: WrittenThought): string | null {
    if (this.isOwn) {
      if (text === '' && signature === undefined) return null
      const own = signature === undefined ? '' : signatureMember(signature)
      return `{"text":${quote(text)},"thought":true${own}}`
    }
    this.hasState ||= signature !== undefined || redacted !== undefined
    const state = { ...(signature === undefined ? {} : { signature }) }
    const shows = this.showsThoughts && text !== '' && redacted === undefined
    if (!shows) {
      if (text === '' && signature === undefined && redacted === undefined) return null
      this.pending.push({ text, ...state, ...(redacted === undefined ? {} : { redacted }) })
      return null
    }
    const envelope = sealEnvelope({ origin: this.origin, thoughts: [state] })
    return `{"text":${quote(text)},"thought":true${signatureMember(envelope)}}`
  }

  /** A fragment of a thought that is not its last. */
  thoughtFragment(text: string): string {
    return `{"text":${quote(text)},"thought":true}`
  }

  /** A complete call: this format never splits one. */
  call({ id, name, json, custom, signature }: WrittenCall): string {
    const args = custom === true ? { input: json } : argumentsOf(json)
    const state =
      signature === undefined
        ? this.pending.length > 0 || this.hasState
          ? this.pendingState(id)
          : ''
        : signatureMember(signature)
    const call = `"id":${quote(id)},"name":${quote(name)},"args":${textOf(args)}`
    return `{"functionCall":{${call}}${state}}`
  }

  /** An image that the model generated. */
  image(url: string): string {
    const [, mimeType, data] = /^data:([^;,]{1,128});base64,([^]*)$/.exec(url) ?? []
    return mimeType === undefined || data === undefined
      ? `{"fileData":{"fileUri":${quote(url)}}}`
      : `{"inlineData":{"mimeType":${quote(mimeType)},"data":${quote(data)}}}`
  }

  /** A block of a Gemini upstream; null for another provider's. */
  opaque(provider: string, block: JsonObject): string | null {
    return provider === PROVIDER ? textOf(block) : null
  }

  /** Pending state that no part carried, on an empty text; null if there is none. */
  rest(): string | null {
    return this.pending.length === 0 ? null : this.text('')
  }

  private pendingState(callId?: string): string {
    const thoughts = this.pending
    this.pending = []
    const { origin } = this
    return signatureMember(
      sealEnvelope(callId === undefined ? { origin, thoughts } : { origin, thoughts, callId }),
    )
  }
}

function signatureMember(signature: string): string {
  return `,"thoughtSignature":${quote(signature)}`
}

/** The arguments as an object. Text that is not a JSON object becomes `{"_raw": text}`. */
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

/** The value as JSON text on one line. */
function textOf(value: JsonValue): string {
  try {
    return stringifyExact(value)
  } catch {
    // Nested too deeply for the call stack.
    return '{}'
  }
}
