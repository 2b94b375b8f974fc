/**
 * Parses JSON inside the strings of a request: arguments of calls and results of tools, which some upstreams
 * require as objects. The limits of `parseObject` do not cover these texts, so depth and tokens are limited
 * here.
 */
import type { JsonValue } from '../../../base/json.js'
import { parseExact } from './exact-numbers.js'

/** The limit of a body: serialising the value uses the stack. */
const MAX_DEPTH = 64
/** The limit of a body, for all texts of one request together. */
const MAX_TOKENS = 200_000

const QUOTE = 34
const COMMA = 44
const COLON = 58
const OPEN_ARRAY = 91
const BACKSLASH = 92
const CLOSE_ARRAY = 93
const OPEN_OBJECT = 123
const CLOSE_OBJECT = 125

/** Parses the texts of one request. */
export class NestedJson {
  private remaining = MAX_TOKENS

  /**
   * The value, with numbers marked as in `formats/wire/json/exact-numbers.ts`; undefined if the text is not
   * JSON, is nested too deeply, or if the texts of the request exceed 200,000 tokens in total.
   */
  parse(text: string): JsonValue | undefined {
    const tokens = tokensIn(text, this.remaining)
    if (tokens === null) return undefined
    this.remaining -= tokens
    try {
      return parseExact(text)
    } catch {
      return undefined
    }
  }
}

/**
 * The number of structural characters outside strings; null if it exceeds `limit` or the nesting is too deep.
 */
function tokensIn(text: string, limit: number): number | null {
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
    if (depth > MAX_DEPTH || tokens > limit) return null
  }
  return tokens
}
