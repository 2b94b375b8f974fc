/** Parses a large JSON text in steps, after it was scanned. */
import type { JsonValue } from '../../../base/json.js'
import type { Steps } from '../../../base/steps.js'
import { parseExactSteps } from './exact-numbers.js'
import { putData, withoutData } from './long-strings.js'
import type { ReplyScan } from './reply-scan.js'

/** The value of a JSON text within the limits of `ReplyScan`; null for any other text. */
export function* parsedSteps(bytes: Buffer, { isAscii, data }: ReplyScan): Steps<JsonValue> {
  const longStrings = { bytes, isPlain: isAscii, data }
  const text = withoutData(longStrings)
  if (text === null) return null
  yield
  try {
    const value = yield* parseExactSteps(text)
    yield
    if (typeof value === 'object' && value !== null) yield* putData(value, longStrings)
    return value
  } catch {
    return null
  }
}
