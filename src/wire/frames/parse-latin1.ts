/** JSON objects in frames of a stream that passes through. Such frames are bytes read as Latin-1. */
import { isObject, type JsonObject } from '../../chat/json.js'

/** The object with its strings decoded as UTF-8; null if the frame is not a JSON object. */
export function parseLatin1(data: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(data, 'latin1').toString('utf8'))
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
