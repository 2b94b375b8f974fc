/**
 * Long texts of a request, which are decoded when they are first read. A request to an upstream of the same
 * format is forwarded as bytes, so its long texts are never decoded.
 */
import { isObject, type JsonObject } from '../../base/json.js'
import type { TextPart } from './request.js'

/** A string of a parsed body, still encoded. */
export class LongText {
  /** Length in UTF-8 bytes, escapes decoded. */
  readonly textBytes: number
  private readonly decode: () => string
  private decoded: string | null = null

  constructor(textBytes: number, decode: () => string) {
    this.textBytes = textBytes
    this.decode = decode
  }

  get text(): string {
    this.decoded ??= this.decode()
    return this.decoded
  }
}

/** The key of an object's long text, beside the member. A copy of the object has the member alone. */
const LONG_TEXT = Symbol('long text')

/** Makes the text a member of the object, which reads as an ordinary string. */
export function putLongText(holder: JsonObject, key: string, long: LongText): void {
  const get = (): string => long.text
  Object.defineProperty(holder, key, { configurable: true, enumerable: true, get })
  // A weak map would keep the bytes of the body until the next full garbage collection.
  Object.defineProperty(holder, LONG_TEXT, { configurable: true, value: { key, long } })
}

/** The long text of a member, not decoded; null for any other value. */
export function longTextOf(holder: JsonObject, key: string): LongText | null {
  const entry: unknown = Reflect.get(holder, LONG_TEXT)
  if (!isObject(entry) || entry['key'] !== key) return null
  const long: unknown = entry['long']
  return long instanceof LongText ? long : null
}

/** A part whose text is decoded when it is first read. */
export function longTextPart(long: LongText): TextPart {
  return {
    type: 'text',
    textBytes: long.textBytes,
    get text() {
      return long.text
    },
  }
}
