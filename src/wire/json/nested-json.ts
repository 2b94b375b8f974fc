/**
 * JSON inside the strings of a request: arguments of calls and results of tools, which some upstreams take as
 * objects. `parseObject` has not looked into them, so they are counted here before the parser may have them.
 */
import type { JsonValue } from '../../chat/json.js'
import { parseExact } from './exact-numbers.js'

/** As many levels as a body may have: writing the value again uses the stack. */
const MAX_DEPTH = 64
/** Of all texts of one request together; as many as a body may have. */
const MAX_TOKENS = 200_000

const QUOTE = 34
const COMMA = 44
const COLON = 58
const OPEN_ARRAY = 91
const BACKSLASH = 92
const CLOSE_ARRAY = 93
const OPEN_OBJECT = 123
const CLOSE_OBJECT = 125

/** The texts of one request; what they may hold is counted over all of them. */
export class NestedJson {
  private left = MAX_TOKENS

  /**
   * The value, integers that no double holds marked (`wire/json/exact-numbers.ts`); undefined where the text is no JSON, is
   * nested too deeply, or where the request's texts hold too many values in all.
   */
  parse(text: string): JsonValue | undefined {
    const tokens = tokensIn(text, this.left)
    if (tokens === null) return undefined
    this.left -= tokens
    try {
      return parseExact(text)
    } catch {
      return undefined
    }
  }
}

/** Structural characters outside strings; null where they are more than `most`, or nest too deeply. */
function tokensIn(text: string, most: number): number | null {
  let tokens = 0
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at += 1
      for (let inside = text.charCodeAt(at); inside !== QUOTE && at < text.length;) {
        at += inside === BACKSLASH ? 2 : 1
        inside = text.charCodeAt(at)
      }
      continue
    }
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) depth += 1
    else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) depth -= 1
    else if (code !== COMMA && code !== COLON) continue
    tokens += 1
    if (depth > MAX_DEPTH || tokens > most) return null
  }
  return tokens
}
