/**
 * Reads the content of a message: text, images, audio, files, refusals and reasoning.
 * Knows nothing of turns; which role may hold what is said by its caller.
 */
import type { JsonObject, JsonValue } from '../../chat/json.js'
import { LongText, longTextOf } from '../../chat/long-text.js'
import type {
  AssistantPart,
  MediaSource,
  TextPart,
  ThinkingPart,
  UserPart,
} from '../../chat/request.js'
import { array, given, object, oneOf, refuse, string, text } from './rules.js'
import { cacheMark } from './tools.js'

/** More than the 1,500 images and pages that any provider takes in one request. */
const MAX_PARTS = 4_096
const MAX_URL = 8_192

/** What the content of a message is; a long text is not decoded. */
export type Content = JsonValue | LongText | undefined

/** The content of a message. */
export function contentOf(item: JsonObject): Content {
  return longTextOf(item, 'content') ?? item['content']
}

/** Text only: what system and developer messages hold. Empty text is dropped. */
export function textParts(value: Content, path: string): TextPart[] {
  return parts(value, path, (item, at) => {
    oneOf(item['type'], `${at}.type`, ['text'])
    return textPart(item, at)
  })
}

/** What a user or a tool may send. Empty text is dropped. */
export function userParts(value: Content, path: string): UserPart[] {
  return parts(value, path, (item, at) => {
    const type = oneOf(item['type'], `${at}.type`, ['text', 'image_url', 'input_audio', 'file'])
    switch (type) {
      case 'text':
        return textPart(item, at)
      case 'image_url':
        return marked(image(item, at), item, at)
      case 'file':
        return marked(file(item, at), item, at)
      case 'input_audio':
        return audio(item, at)
      default:
        return type satisfies never
    }
  })
}

/** What an assistant said: text, refusals (which are text to the next turn) and Mistral's thinking. */
export function assistantParts(value: Content, path: string): AssistantPart[] {
  return parts<AssistantPart>(value, path, (item, at) => {
    const type = oneOf(item['type'], `${at}.type`, ['text', 'refusal', 'thinking'])
    if (type === 'text') return textPart(item, at)
    if (type === 'thinking') return thinkingPart(item, at)
    return { type: 'text', text: string(item['refusal'], `${at}.refusal`) }
  })
}

function parts<T extends AssistantPart | UserPart>(
  value: Content,
  path: string,
  read: (item: JsonObject, path: string) => T | TextPart,
): (T | TextPart)[] {
  if (value instanceof LongText) return [longPart(value)]
  if (typeof value === 'string') return value === '' ? [] : [{ type: 'text', text: value }]
  if (!Array.isArray(value)) return refuse(path, 'must be a string or an array of parts')
  const out: (T | TextPart)[] = []
  array(value, path, MAX_PARTS).forEach((item, at) => {
    const where = `${path}[${at}]`
    const part = read(object(item, where), where)
    const isEmpty = part.type === 'text' && part.textBytes === undefined && part.text === ''
    if (!isEmpty) out.push(part)
  })
  return out
}

/** A text that is decoded if an encoder, or anything else, asks for it. */
function longPart(long: LongText): TextPart {
  return {
    type: 'text',
    textBytes: long.textBytes,
    get text() {
      return long.text
    },
  }
}

function textPart(item: JsonObject, path: string): TextPart {
  const long = longTextOf(item, 'text')
  if (long !== null) return marked(longPart(long), item, path)
  return marked({ type: 'text', text: string(item['text'], `${path}.text`) }, item, path)
}

/** Mistral's shape: a list of text parts under `thinking` (recorded). */
function thinkingPart(item: JsonObject, path: string): ThinkingPart {
  const value = item['thinking']
  const said =
    typeof value === 'string' ? value : textParts(value, `${path}.thinking`).map((t) => t.text)
  return { type: 'thinking', text: [said].flat().join(''), origin: 'openai-chat' }
}

function marked<T extends Exclude<UserPart, { type: 'audio' }>>(
  part: T,
  item: JsonObject,
  path: string,
): T {
  const cache = cacheMark(item, path)
  if (cache !== undefined) part.cache = cache
  return part
}

function image(item: JsonObject, path: string): Extract<UserPart, { type: 'image' }> {
  const at = `${path}.image_url`
  const value = item['image_url']
  // Mistral's clients send the address itself (recorded).
  if (typeof value === 'string') return { type: 'image', source: source(value, at) }
  const inner = object(value, at)
  const part: Extract<UserPart, { type: 'image' }> = {
    type: 'image',
    source: source(string(inner['url'], `${at}.url`), `${at}.url`),
  }
  if (given(inner['detail'])) {
    part.detail = oneOf(inner['detail'], `${at}.detail`, ['auto', 'low', 'high', 'original'])
  }
  return part
}

function audio(item: JsonObject, path: string): Extract<UserPart, { type: 'audio' }> {
  const at = `${path}.input_audio`
  const inner = object(item['input_audio'], at)
  const data = string(inner['data'], `${at}.data`)
  if (data === '') refuse(`${at}.data`, 'must be a non-empty string')
  const format = oneOf(inner['format'], `${at}.format`, ['wav', 'mp3'])
  return { type: 'audio', format, data: standardBase64(data) }
}

function file(item: JsonObject, path: string): Extract<UserPart, { type: 'file' }> {
  const at = `${path}.file`
  const inner = object(item['file'], at)
  const part: Extract<UserPart, { type: 'file' }> = { type: 'file', source: fileSource(inner, at) }
  if (given(inner['filename'])) part.filename = text(inner['filename'], `${at}.filename`, 1_024)
  return part
}

function fileSource(inner: JsonObject, path: string): MediaSource {
  if (given(inner['file_id'])) {
    return { kind: 'file-id', id: text(inner['file_id'], `${path}.file_id`, 512) }
  }
  if (!given(inner['file_data'])) refuse(path, 'must have file_data or file_id')
  return source(string(inner['file_data'], `${path}.file_data`), `${path}.file_data`)
}

/** A `data:` URL with base64, or an http(s) URL. */
function source(url: string, path: string): MediaSource {
  const scheme = url.slice(0, 8).toLowerCase()
  if (scheme.startsWith('data:')) return dataUrl(url, path)
  if (!scheme.startsWith('http://') && scheme !== 'https://') {
    refuse(path, 'must be an http(s) URL or a data: URL')
  }
  if (url.length > MAX_URL) refuse(path, `must be at most ${MAX_URL} characters`)
  return { kind: 'url', url }
}

function dataUrl(url: string, path: string): MediaSource {
  const comma = url.indexOf(',')
  // A media type is short; looking further would search megabytes of image.
  const head = comma < 0 || comma > 256 ? '' : url.slice(5, comma)
  const match = /^([\w.+-]+\/[\w.+-]+)(?:;[\w.+-]+=[^;,]*)*;base64$/i.exec(head)
  const mediaType = match?.[1]
  if (mediaType === undefined) refuse(path, 'must be a data: URL with a media type and base64')
  if (comma + 1 === url.length) refuse(path, 'must hold data')
  return {
    kind: 'base64',
    mediaType: mediaType.toLowerCase(),
    data: standardBase64(url.slice(comma + 1)),
  }
}

/**
 * Newlines, percent escapes, the URL-safe alphabet and missing padding are legal in the wild; the
 * canon has none of them.
 */
function standardBase64(data: string): string {
  // Searches at the speed of memory; a class of characters would take 20 times as long.
  const out = UNUSUAL.some((each) => data.includes(each)) ? rewritten(data) : data
  const open = out.length % 4
  return open === 0 ? out : out.padEnd(out.length + 4 - open, '=')
}

const UNUSUAL = [' ', '\n', '\r', '\t', '%', '-', '_']
const [TAB, LINE_FEED, CARRIAGE_RETURN, BLANK, PERCENT] = [9, 10, 13, 32, 37]
const [PLUS, MINUS, SLASH, EQUALS, UNDERSCORE] = [43, 45, 47, 61, 95]

/** Byte by byte in one pass: to replace millions of characters of a string takes seconds. */
function rewritten(data: string): string {
  const bytes = Buffer.from(data)
  let to = 0
  for (let from = 0; from < bytes.length; from += 1) {
    let code = bytes[from] ?? 0
    if (code === BLANK || code === TAB || code === LINE_FEED || code === CARRIAGE_RETURN) continue
    if (code === MINUS) code = PLUS
    else if (code === UNDERSCORE) code = SLASH
    else if (code === PERCENT) {
      const escaped = escapedAt(bytes, from + 1)
      if (escaped !== null) {
        code = escaped
        from += 2
      }
    }
    bytes[to] = code
    to += 1
  }
  return bytes.toString('utf8', 0, to)
}

/** `2B` and `3D`, in either case; null for any other escape, which base64 does not need. */
function escapedAt(bytes: Buffer, at: number): number | null {
  const [first, second] = [bytes[at], (bytes[at + 1] ?? 0) | 32]
  if (first === 50 && second === 98) return PLUS
  return first === 51 && second === 100 ? EQUALS : null
}
