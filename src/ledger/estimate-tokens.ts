/**
 * Estimates the tokens of a request or reply without a tokenizer: for upstreams that report none, and for the
 * maximum that a request may need. The rates are fitted to recorded traffic; `docs/reference/ledger.md`
 * states the error.
 */
import type { JsonValue } from '../base/json.js'
import type { ModelFamily } from '../formats/chat/model-facts.js'
import type { OutputSize } from '../formats/chat/output-size.js'
import type { ChatRequest, ThinkingPart, UserPart } from '../formats/chat/request.js'
import { transcribes, type RankTask } from '../formats/chat/task.js'
import { contentsOf, extentOf, filesIn, type InlineFile } from './measure-media.js'

/** The sizes of the parts of a request that become tokens. */
export interface PromptSize {
  /** UTF-8 bytes of instructions, messages and tool calls. */
  textBytes: number
  messages: number
  tools: number
  /** Bytes of the tool definitions as JSON. */
  toolBytes: number
  /** Bytes of the schema for the reply as JSON. */
  schemaBytes: number
  images: number
  /** The part of `images` whose bytes are no picture: some vendors read what they are. */
  notPictures: number
  /** Documents and audio. */
  files: number
  /** Bytes of inline files, and of encrypted reasoning that the client sends back. */
  fileBytes: number
  /** The part of `files` and of `fileBytes` whose maximum is not that of their bytes, but of what follows. */
  media: number
  mediaBytes: number
  /** Pages of documents, if they could be counted. */
  pages: number
  /** Seconds of sound, if they are known. */
  seconds: number
  /** Files whose pages or seconds are not known: each may have the vendor's maximum. */
  unmeasured: number
}

/** All sizes 0. */
export function emptyPromptSize(): PromptSize {
  return {
    textBytes: 0,
    messages: 0,
    tools: 0,
    toolBytes: 0,
    schemaBytes: 0,
    images: 0,
    notPictures: 0,
    files: 0,
    fileBytes: 0,
    media: 0,
    mediaBytes: 0,
    pages: 0,
    seconds: 0,
    unmeasured: 0,
  }
}

/**
 * Tokens per unit of each size. Fitted by hand to the recordings; `bench/suites/tokens.ts` shows the error.
 */
interface Rates {
  readonly textByte: number
  readonly message: number
  /** The vendor's own instructions about tools, counted once if there are tools. */
  readonly tooling: number
  readonly toolByte: number
  readonly schemaByte: number
  readonly image: number
  /** Beside the rate of an image. */
  readonly notPicture: number
  readonly file: number
  readonly fileByte: number
  /** The overhead of one tool call in a reply. */
  readonly call: number
  /** 0 in estimates, which count these by their files and bytes. */
  readonly page: number
  readonly second: number
  readonly unmeasured: number
}

/** Estimates do not open files. */
const UNOPENED = { notPicture: 0, page: 0, second: 0, unmeasured: 0 }

/**
 * All vendors have about four bytes of text per token, in any script (1 byte per letter in Latin, 2 in
 * Cyrillic, 3 in Chinese). They differ in the tokens that they add for tools and schemas, and in the tokens
 * of an image: OpenAI counts tiles, Anthropic pixels, Google a fixed number.
 */
const RATES: Readonly<Record<ModelFamily, Rates>> = {
  openai: {
    ...UNOPENED,
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
    ...UNOPENED,
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
    ...UNOPENED,
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
 * More than any vendor's maximum for one file, 1,000 pages or ten hours of sound: callers reduce it to the
 * model's context window.
 */
const UNMEASURED = 2_000_000

/**
 * No byte-level vocabulary has more tokens than bytes. The other rates are the maximum that a vendor
 * documents or a recording shows: an image at full resolution, the instructions about tools, the markers
 * around a turn.
 */
const MAX_RATES: Readonly<Record<ModelFamily, Rates>> = {
  openai: upperBounds(40_000, 8_000, 100),
  anthropic: upperBounds(5_000, 8_000, 100),
  google: { ...upperBounds(2_300, 2_300, 32), notPicture: UNMEASURED },
}

/**
 * Vendors read the text of a page (up to 3,000 tokens as Anthropic states) and its picture. Google counts 32
 * tokens for a second of sound, OpenAI 10 to 100.
 */
function upperBounds(image: number, page: number, second: number): Rates {
  const perByte = { textByte: 1, toolByte: 1, schemaByte: 1, fileByte: 1 }
  // OpenAI and Anthropic refuse other files as images.
  const perMedia = { notPicture: 0, page, second, unmeasured: UNMEASURED }
  return { ...perByte, ...perMedia, message: 32, tooling: 1_000, image, file: 20_000, call: 64 }
}

/** Maximum length of the instructions that some vendors put before the first turn. */
const MAX_PREAMBLE = 200

/** Measures a request. */
export function promptSizeOf(request: ChatRequest): PromptSize {
  const size = emptyPromptSize()
  for (const message of request.messages) {
    size.messages += 1
    for (const part of message.parts) {
      if (part.type === 'thinking') addThinking(size, part)
      else if (part.type === 'opaque') addOpaque(size, part.block)
      else addPart(size, part)
    }
    if (message.role !== 'assistant') continue
    for (const { name, arguments: json, signature = '' } of message.toolCalls) {
      size.textBytes += name.length + Buffer.byteLength(json)
      size.fileBytes += signature.length
    }
  }
  for (const { name, description = '', parameters, custom } of request.tools) {
    size.tools += 1
    size.toolBytes += 40 + name.length + Buffer.byteLength(description)
    if (parameters !== undefined) size.toolBytes += jsonBytes(parameters)
    if (custom?.format !== undefined) size.toolBytes += jsonBytes(custom.format)
  }
  // In every vocabulary, a token is about four bytes of text.
  size.textBytes += 4 * (request.tokenIds ?? 0)
  const { task } = request
  if (task?.kind === 'rerank') addRanking(size, task)
  if (transcribes(task)) size.seconds += task.length.most ?? 0
  const format = request.responseFormat
  if (format?.type === 'json-schema') size.schemaBytes += jsonBytes(format.schema)
  return size
}

/** The model reads the query with each document, and markers around them. */
const RANKED_BYTES = 8

function addRanking(size: PromptSize, { query, documents }: RankTask): void {
  size.textBytes += (documents.length - 1) * Buffer.byteLength(query) + documents.length * RANKED_BYTES
}

function addThinking(size: PromptSize, { text, signature, redacted }: ThinkingPart): void {
  size.textBytes += Buffer.byteLength(text)
  size.fileBytes += (signature?.length ?? 0) + (redacted?.length ?? 0)
}

function addPart(size: PromptSize, part: UserPart): void {
  switch (part.type) {
    case 'text':
      size.textBytes += part.textBytes ?? Buffer.byteLength(part.text)
      size.fileBytes += part.signature?.length ?? 0
      return
    case 'image':
      size.images += 1
      if (part.source.kind === 'base64') addPicture(size, part.source)
      return
    case 'file':
      size.files += 1
      if (part.source.kind === 'base64') addInline(size, part.source)
      return
    case 'audio':
      size.files += 1
      addInline(size, { mediaType: `audio/${part.format}`, data: part.data })
      return
    default:
      part satisfies never
  }
}

/** Media types of text, of which no token is smaller than a byte. */
const TEXT_TYPE = /^text\/|[/+](?:json|xml|yaml|javascript)\b/

/** A compressed file of a few bytes may have many pages, or hours of sound. */
function addInline(size: PromptSize, { mediaType, data }: InlineFile): void {
  const bytes = (data.length * 3) / 4
  size.fileBytes += bytes
  if (TEXT_TYPE.test(mediaType) && contentsOf(data) === 'text') return
  size.media += 1
  size.mediaBytes += bytes
  addExtent(size, { mediaType, data })
}

/** Text is no picture that a vendor could read; it has no more tokens than bytes. */
function addPicture(size: PromptSize, { data }: InlineFile): void {
  const contents = contentsOf(data)
  if (contents === 'text') size.fileBytes += (data.length * 3) / 4
  else if (contents !== 'picture') size.notPictures += 1
}

function addExtent(size: PromptSize, { mediaType, data }: InlineFile): void {
  const extent = extentOf(mediaType, data)
  if (extent === null) size.unmeasured += 1
  else size[extent.unit] += extent.count
}

/** A block of one vendor, with the files in it. */
function addOpaque(size: PromptSize, block: JsonValue): void {
  size.textBytes += jsonBytes(block)
  for (const data of filesIn(block)) addExtent(size, { mediaType: '', data })
}

/** The approximate size of the value as JSON, in a quarter of the time of `JSON.stringify`. */
export function jsonBytes(value: JsonValue): number {
  if (typeof value === 'string') return Buffer.byteLength(value) + 2
  if (value === null || typeof value !== 'object') return String(value).length
  let bytes = 2
  if (Array.isArray(value)) {
    for (const item of value) bytes += 1 + jsonBytes(item)
    return bytes
  }
  for (const key of Object.keys(value)) {
    bytes += key.length + 4 + jsonBytes(value[key] ?? null)
  }
  return bytes
}

/** The estimated number of prompt tokens. */
export function inputTokens(size: PromptSize, family: string): number {
  return Math.max(1, Math.ceil(weightedSum(size, ratesOf(RATES, family))))
}

/**
 * An upper bound of the prompt tokens; `image`: tokens of one picture at most, if the model's are known. The
 * size of media by URL or id is unknown; each counts as one large item. Callers reduce the bound to the
 * model's context window.
 */
export function maxInputTokens(size: PromptSize, family: string, image?: number): number {
  const { media, mediaBytes } = size
  const bounded = { ...size, files: size.files - media, fileBytes: size.fileBytes - mediaBytes }
  const rates = ratesOf(MAX_RATES, family)
  const ofModel = image === undefined ? rates : { ...rates, image }
  return Math.ceil(weightedSum(bounded, ofModel)) + MAX_PREAMBLE
}

/** An upper bound of the tokens of a second of sound. */
export function maxTokensPerSecond(family: string): number {
  return ratesOf(MAX_RATES, family).second
}

/** Models of other vendors count as OpenAI's, whose format their upstreams use. */
function ratesOf(table: Readonly<Record<ModelFamily, Rates>>, family: string): Rates {
  return family === 'anthropic' || family === 'google' ? table[family] : table.openai
}

function weightedSum(size: PromptSize, rates: Rates): number {
  return (
    size.textBytes * rates.textByte +
    size.messages * rates.message +
    (size.tools > 0 ? rates.tooling : 0) +
    size.toolBytes * rates.toolByte +
    size.schemaBytes * rates.schemaByte +
    size.images * rates.image +
    size.notPictures * rates.notPicture +
    size.files * rates.file +
    size.fileBytes * rates.fileByte +
    size.pages * rates.page +
    size.seconds * rates.second +
    size.unmeasured * rates.unmeasured
  )
}

/** The estimated number of output tokens, without hidden reasoning; at least 1 for any output. */
export function outputTokens({ bytes, calls }: OutputSize, family: string): number {
  return Math.ceil(bytes / 4 + calls * ratesOf(RATES, family).call)
}
