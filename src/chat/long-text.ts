/**
 * Long texts of a request that are decoded when they are first read. A request that passes to an upstream of the same
 * format is sent as the bytes that it is, so nobody reads them. Pure; knows no field and no format.
 */
import { isObject, type JsonObject } from './json.js'
import type { TextPart } from './request.js'

/** A string of a parsed body, still encoded. */
export class LongText {
  /** Its length in UTF-8, escapes decoded. */
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

/** Under which an object has its long text, beside the member; a copy of the object gets the member alone. */
const LONG_TEXT = Symbol('long text')

/** Makes the text a member of the object, for all readers a string like any other. */
export function putLongText(holder: JsonObject, key: string, long: LongText): void {
  const get = (): string => long.text
  Object.defineProperty(holder, key, { configurable: true, enumerable: true, get })
  // A weak map would keep the bytes of the body until the next full garbage collection.
  Object.defineProperty(holder, LONG_TEXT, { configurable: true, value: { key, long } })
}

/** The text, for a reader that can do without its characters; null for any other value. */
export function longTextOf(holder: JsonObject, key: string): LongText | null {
  const place: unknown = Reflect.get(holder, LONG_TEXT)
  if (!isObject(place) || place['key'] !== key) return null
  const long: unknown = place['long']
  return long instanceof LongText ? long : null
}

/** A part whose text is decoded if an encoder, or anything else, asks for it. */
export function longTextPart(long: LongText): TextPart {
  return {
    type: 'text',
    textBytes: long.textBytes,
    get text() {
      return long.text
    },
  }
}
