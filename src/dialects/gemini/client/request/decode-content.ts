/**
 * Decodes the parts of a content: text, media, thoughts, and blocks that only Gemini upstreams support.
 */
import type { JsonObject, JsonValue } from '../../../../chat/json.js'
import { longTextOf, longTextPart } from '../../../../chat/long-text.js'
import type { OpaquePart, TextPart, UserPart } from '../../../../chat/request.js'
import { given, object, refuse, string } from '../../../../wire/json/check-fields.js'
import { PROVIDER } from '../../shared/constants.js'
import { decodeFileData, decodeInlineData } from './decode-media.js'
import { message } from './proto-fields.js'

/** Members of a part, of which it has exactly one. */
const KINDS = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
] as const

/** The kind of a part. `none` is a part that has only a thought signature. */
export type PartKind = (typeof KINDS)[number] | 'none'

/** A part with camelCase names, and its kind. */
export interface Part {
  readonly item: JsonObject
  readonly kind: PartKind
  readonly path: string
  readonly signature: string | null
}

/** Reads the common members of a part. Unknown members are not checked. */
export function partOf(value: JsonValue, path: string): Part {
  const item = message(value, path)
  const kinds = KINDS.filter((kind) => given(item[kind]))
  const [kind = 'none', other] = kinds
  if (other !== undefined) refuse(path, `must not have both ${kind} and ${other}`)
  if (kind === 'text') string(item['text'], `${path}.text`)
  const { thoughtSignature } = item
  const signature = given(thoughtSignature)
    ? string(thoughtSignature, `${path}.thoughtSignature`)
    : null
  return { item, kind, path, signature }
}

/** The text of a part; a long text is decoded on first access. */
export function textPart({ item, path }: Part): TextPart {
  const long = longTextOf(item, 'text')
  return long === null
    ? { type: 'text', text: string(item['text'], `${path}.text`) }
    : longTextPart(long)
}

/** The media of a user's or tool's part; null for a part that only Gemini upstreams support. */
export function mediaPart({ item, kind, path }: Part): UserPart | null {
  if (kind === 'inlineData') return decodeInlineData(item['inlineData'], `${path}.inlineData`)
  if (kind === 'fileData') return decodeFileData(item['fileData'], `${path}.fileData`)
  return null
}

/**
 * A part of a model content without equivalent in other formats: executed code, Google's tools, generated
 * images.
 */
export function opaquePart({ item }: Part): OpaquePart {
  return { type: 'opaque', provider: PROVIDER, block: item }
}

/** The object of a call or result; empty if absent. */
export function argumentsOf(value: JsonValue | undefined, path: string): JsonObject {
  return given(value) ? object(value, path) : {}
}
