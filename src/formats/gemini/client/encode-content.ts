/**
 * Encodes the blocks of a reply as parts, each as JSON text. Reasoning state of another provider's model
 * whose text is hidden from the client is added to the next part that can carry it.
 */
import type { Citation } from '../../chat/event.js'
import { isObject, type JsonObject, type JsonValue } from '../../../base/json.js'
import { parseExact, stringifyExact } from '../../wire/json/exact-numbers.js'
import { hasNoArguments } from '../../wire/json/no-arguments.js'
import { quote } from '../../wire/json/write-json.js'
import { writeReasoningToken, type Thought } from '../../wire/reasoning-token.js'
import { PROVIDER } from '../constants.js'

/** A complete call. */
interface WrittenCall {
  readonly id: string
  readonly name: string
  /** The arguments as the upstream's JSON text. */
  readonly json: string
  readonly custom?: boolean | undefined
  readonly signature?: string | undefined
}

/** A complete block of reasoning, or its last fragment. */
interface WrittenThought extends Thought {
  readonly text: string
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
    const shows = this.showsThoughts && text !== '' && redacted === undefined
    if (!shows) {
      if (text === '' && signature === undefined && redacted === undefined) return null
      this.pending.push({ text, signature, redacted })
      return null
    }
    const token = writeReasoningToken({ origin: this.origin, thoughts: [{ signature }] })
    return `{"text":${quote(text)},"thought":true${signatureMember(token)}}`
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
    // Only the beginning is matched: the data may have many megabytes.
    const [head, mimeType] = /^data:([^;,]{1,128});base64,/.exec(url) ?? []
    if (head === undefined || mimeType === undefined) return `{"fileData":{"fileUri":${quote(url)}}}`
    const data = url.slice(head.length)
    return `{"inlineData":{"mimeType":${quote(mimeType)},"data":${quote(data)}}}`
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
    const of = callId === undefined ? undefined : { call: callId }
    return signatureMember(writeReasoningToken({ origin, thoughts, of }))
  }
}

function signatureMember(signature: string): string {
  return `,"thoughtSignature":${quote(signature)}`
}

/** The arguments as an object. Text that is not a JSON object becomes `{"_raw": text}`. */
function argumentsOf(json: string): JsonObject {
  if (hasNoArguments(json)) return {}
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

/** The interval at which byte offsets are cached, in UTF-16 units. */
const STEP = 1_024

/**
 * The citations of one reply and the texts that they refer to.
 *
 * Source: ai.google.dev/api/generate-content#GroundingMetadata, read 2026-11-20.
 */
export class Sources {
  /** Texts by block index. */
  private readonly texts = new Map<number, string>()
  private readonly chunks: JsonObject[] = []
  /** Indices in `chunks` by source. */
  private readonly chunkIndices = new Map<string, number>()
  private readonly cited: {
    readonly index: number
    readonly citation: Citation
    readonly at: number
  }[] = []

  begin(index: number): void {
    this.texts.set(index, '')
  }

  text(index: number, text: string): void {
    this.texts.set(index, (this.texts.get(index) ?? '') + text)
  }

  cite(index: number, citation: Citation): void {
    this.cited.push({ index, citation, at: this.chunkOf(citation) })
  }

  /** The metadata; null without citations. Linear in the text and the number of citations. */
  metadata(): JsonObject | null {
    if (this.cited.length === 0) return null
    const offsets = new Map<number, Offsets>()
    let before = 0
    for (const [index, text] of this.texts) {
      const own = new Offsets(text, before)
      offsets.set(index, own)
      before = own.end
    }
    const groundingSupports = this.cited.map(({ index, citation, at }) => {
      const { start = 0, citedText = '' } = citation
      const own = offsets.get(index)
      const startIndex = own?.at(start) ?? 0
      const endIndex = own?.at(citation.end ?? start) ?? startIndex
      return { segment: { startIndex, endIndex, text: citedText }, groundingChunkIndices: [at] }
    })
    return { groundingChunks: this.chunks, groundingSupports }
  }

  /** The index of the source in `chunks`, where each source is listed once. */
  private chunkOf({ url, title, citedText }: Citation): number {
    const key = JSON.stringify(url === undefined ? [null, title, citedText] : [url, title])
    const known = this.chunkIndices.get(key)
    if (known !== undefined) return known
    const name = title === undefined ? {} : { title }
    this.chunks.push(
      url === undefined
        ? { retrievedContext: { ...name, ...(citedText === undefined ? {} : { text: citedText }) } }
        : { web: { uri: url, ...name } },
    )
    this.chunkIndices.set(key, this.chunks.length - 1)
    return this.chunks.length - 1
  }
}

/** Converts offsets in a text from UTF-16 units to UTF-8 bytes. */
class Offsets {
  private readonly text: string
  /** The byte offset of every `STEP` units. */
  private readonly cached: number[]

  constructor(text: string, before: number) {
    this.text = text
    this.cached = [before]
    let bytes = before
    for (let from = 0; from < text.length; from += STEP) {
      bytes += Buffer.byteLength(text.slice(from, from + STEP))
      this.cached.push(bytes)
    }
  }

  get end(): number {
    return this.cached.at(-1) ?? 0
  }

  at(units: number): number {
    const offset = Math.min(Math.max(units, 0), this.text.length)
    const step = Math.floor(offset / STEP)
    const begin = step * STEP
    return (this.cached[step] ?? 0) + Buffer.byteLength(this.text.slice(begin, offset))
  }
}
