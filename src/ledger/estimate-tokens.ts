/**
 * How many tokens a request or an answer has, without a tokenizer: for what an upstream did not report,
 * and for what a request may need at most. How far off that is stands in `docs/reference/ledger.md`.
 * Knows no wire format; the rates are what recorded traffic of each vendor shows.
 */
import type { JsonValue } from '../chat/json.js'
import type { ModelFamily } from '../chat/model.js'
import type { OutputSize } from '../chat/reply/output-size.js'
import type { ChatRequest, MediaSource, ThinkingPart, UserPart } from '../chat/request.js'

/** What of a request makes tokens. */
export interface PromptSize {
  /** UTF-8, of instructions, turns and calls. */
  textBytes: number
  messages: number
  tools: number
  /** Of the tools, as JSON. */
  toolBytes: number
  /** Of the schema that the answer must follow, as JSON. */
  schemaBytes: number
  images: number
  /** Documents and audio. */
  files: number
  /** Of their bytes, where they are inline, and of sealed reasoning that comes back. */
  fileBytes: number
}

/** Nothing yet. */
export function emptyPromptSize(): PromptSize {
  return {
    textBytes: 0,
    messages: 0,
    tools: 0,
    toolBytes: 0,
    schemaBytes: 0,
    images: 0,
    files: 0,
    fileBytes: 0,
  }
}

/** Tokens of each thing. Fitted by hand to the recordings; `bench/suites/tokens.ts` shows the error. */
interface Rates {
  readonly textByte: number
  readonly message: number
  /** Once, where there are tools: what the vendor itself says to the model about them. */
  readonly tooling: number
  readonly toolByte: number
  readonly schemaByte: number
  readonly image: number
  readonly file: number
  readonly fileByte: number
  /** Of an answer: what wraps one call. */
  readonly call: number
}

/**
 * All vendors come to about four bytes of text a token, in any script (1 byte a letter in Latin, 2 in
 * Cyrillic, 3 in Chinese). They differ in what they add: Claude's own words about tools, its grammar for
 * schemas, and what a picture counts (OpenAI tiles, Anthropic pixels, Google a fixed number).
 */
const RATES: Readonly<Record<ModelFamily, Rates>> = {
  openai: {
    textByte: 0.25,
    message: 5,
    tooling: 0,
    toolByte: 0.15,
    schemaByte: 0.2,
    image: 1_000,
    file: 1_000,
    fileByte: 0.002,
    call: 8,
  },
  anthropic: {
    textByte: 0.25,
    message: 5,
    tooling: 480,
    toolByte: 0.4,
    schemaByte: 0.85,
    image: 1_500,
    file: 1_500,
    fileByte: 0.02,
    call: 35,
  },
  google: {
    textByte: 0.24,
    message: 1,
    tooling: 0,
    toolByte: 0.18,
    schemaByte: 0.02,
    image: 700,
    file: 300,
    fileByte: 0.002,
    call: 3,
  },
}

/**
 * No byte-level vocabulary has more tokens than bytes. The rest is the most that a vendor documents or a
 * recording shows: a picture at full resolution, what is said to Claude or Llama about tools, what stands
 * around a turn.
 */
const MOST: Readonly<Record<ModelFamily, Rates>> = {
  openai: most(40_000),
  anthropic: most(5_000),
  google: most(2_300),
}

function most(image: number): Rates {
  const one = { textByte: 1, toolByte: 1, schemaByte: 1, fileByte: 1 }
  return { ...one, message: 32, tooling: 1_000, image, file: 20_000, call: 64 }
}

/** What some vendors say to the model before the first turn. */
const MOST_PREAMBLE = 200

/** What of this request makes tokens. */
export function promptSizeOf(request: ChatRequest): PromptSize {
  const bulk = emptyPromptSize()
  for (const message of request.messages) {
    bulk.messages += 1
    for (const part of message.parts) {
      if (part.type === 'thinking') addThinking(bulk, part)
      else if (part.type === 'opaque') bulk.textBytes += jsonBytes(part.block)
      else addPart(bulk, part)
    }
    if (message.role !== 'assistant') continue
    for (const { name, arguments: json, signature = '' } of message.toolCalls) {
      bulk.textBytes += name.length + Buffer.byteLength(json)
      bulk.fileBytes += signature.length
    }
  }
  for (const { name, description = '', parameters, custom } of request.tools) {
    bulk.tools += 1
    bulk.toolBytes += 40 + name.length + Buffer.byteLength(description)
    if (parameters !== undefined) bulk.toolBytes += jsonBytes(parameters)
    if (custom?.format !== undefined) bulk.toolBytes += jsonBytes(custom.format)
  }
  // In every vocabulary, a token is about four bytes of text.
  bulk.textBytes += 4 * (request.tokenIds ?? 0)
  const format = request.responseFormat
  if (format?.type === 'json-schema') bulk.schemaBytes += jsonBytes(format.schema)
  return bulk
}

function addThinking(bulk: PromptSize, { text, signature, redacted }: ThinkingPart): void {
  bulk.textBytes += Buffer.byteLength(text)
  bulk.fileBytes += (signature?.length ?? 0) + (redacted?.length ?? 0)
}

function addPart(bulk: PromptSize, part: UserPart): void {
  switch (part.type) {
    case 'text':
      bulk.textBytes += part.textBytes ?? Buffer.byteLength(part.text)
      bulk.fileBytes += part.signature?.length ?? 0
      return
    case 'image':
      bulk.images += 1
      return
    case 'file':
      bulk.files += 1
      bulk.fileBytes += inlineBytes(part.source)
      return
    case 'audio':
      bulk.files += 1
      bulk.fileBytes += (part.data.length * 3) / 4
      return
    default:
      part satisfies never
  }
}

function inlineBytes(source: MediaSource): number {
  return source.kind === 'base64' ? (source.data.length * 3) / 4 : 0
}

/** About as many bytes as its JSON has; a quarter of the time that writing it would take. */
export function jsonBytes(value: JsonValue): number {
  if (typeof value === 'string') return Buffer.byteLength(value) + 2
  if (value === null || typeof value !== 'object') return String(value).length
  let bytes = 2
  if (Array.isArray(value)) {
    for (const each of value) bytes += 1 + jsonBytes(each)
    return bytes
  }
  for (const key of Object.keys(value)) {
    bytes += key.length + 4 + jsonBytes(value[key] ?? null)
  }
  return bytes
}

/** About as many prompt tokens as the vendor would count. */
export function inputTokens(bulk: PromptSize, family: string): number {
  return Math.max(1, Math.ceil(weighed(bulk, ratesOf(RATES, family))))
}

/**
 * More prompt tokens than the vendor will count. Not known of media by URL or id, which count as one
 * large piece: a caller who knows the context window takes the smaller of the two.
 */
export function maxInputTokens(bulk: PromptSize, family: string): number {
  return Math.ceil(weighed(bulk, ratesOf(MOST, family))) + MOST_PREAMBLE
}

/** Models of other makers count as OpenAI's: the format of their upstreams is its own. */
function ratesOf(table: Readonly<Record<ModelFamily, Rates>>, family: string): Rates {
  return family === 'anthropic' || family === 'google' ? table[family] : table.openai
}

function weighed(bulk: PromptSize, rates: Rates): number {
  return (
    bulk.textBytes * rates.textByte +
    bulk.messages * rates.message +
    (bulk.tools > 0 ? rates.tooling : 0) +
    bulk.toolBytes * rates.toolByte +
    bulk.schemaBytes * rates.schemaByte +
    bulk.images * rates.image +
    bulk.files * rates.file +
    bulk.fileBytes * rates.fileByte
  )
}

/** About as many tokens as these words are; at least 1 where there are any. Hidden reasoning is not in it. */
export function outputTokens({ bytes, calls }: OutputSize, family: string): number {
  return Math.ceil(bytes / 4 + calls * ratesOf(RATES, family).call)
}
