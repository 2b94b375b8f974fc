/**
 * Expressions over the claims of a token, such as `team-${claims.kubernetes.io/namespace}`: text, and paths
 * of claims whose values replace them. Pure.
 */
import { isObject, type JsonObject } from '../../base/json.js'

/** The names from the root of the claims to a value. */
export type ClaimPath = readonly string[]

/** A parsed expression: texts, and paths of claims. */
export type ClaimExpression = readonly (string | ClaimPath)[]

const CLAIMS = 'claims.'
/** An escaped `${`, or a reference. */
const REFERENCE = /\$(\$\{)|\$\{([^}]*)\}?/g

/** The parsed text, or why it is not an expression, as the rest of a sentence. */
export function parseExpression(text: string): ClaimExpression | { readonly problem: string } {
  const parts: (string | ClaimPath)[] = []
  let end = 0
  const add = (literal: string): void => {
    if (literal !== '') parts.push(literal)
  }
  for (const found of text.matchAll(REFERENCE)) {
    const [whole, escaped, inner = ''] = found
    add(text.slice(end, found.index))
    end = found.index + whole.length
    if (escaped !== undefined) {
      parts.push('${')
      continue
    }
    if (!whole.endsWith('}')) return { problem: 'contains ${ without a closing brace' }
    const path = claimPathOf(inner)
    if (path === null) {
      return { problem: 'contains an invalid claim: use ${claims.NAME} or ${claims.NAME/MEMBER}' }
    }
    parts.push(path)
  }
  add(text.slice(end))
  return parts
}

/**
 * The path in `claims.a/b`: member `b` of `a`. A name may contain dots; `~1` is a slash and `~0` a tilde in
 * it. Null for any other text.
 */
export function claimPathOf(text: string): ClaimPath | null {
  if (!text.startsWith(CLAIMS)) return null
  const names = text.slice(CLAIMS.length).split('/')
  if (names.some((name) => name === '' || /~(?![01])/.test(name))) return null
  return names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The text of the expression; null if a claim in it is missing or is no text, number or boolean. */
export function evaluate(expression: ClaimExpression, claims: JsonObject): string | null {
  let text = ''
  for (const part of expression) {
    const value = typeof part === 'string' ? part : claimAt(claims, part)
    if (value === null) return null
    text += value
  }
  return text
}

/** The value of a claim as text; null if it is missing or is no text, number or boolean. */
export function claimAt(claims: JsonObject, path: ClaimPath): string | null {
  let value: unknown = claims
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return null
    value = value[name]
  }
  switch (typeof value) {
    case 'string':
      return value
    case 'boolean':
      return String(value)
    case 'number':
      // A larger integer is not exact: two claims could have one text.
      return Number.isInteger(value) && !Number.isSafeInteger(value) ? null : String(value)
    default:
      return null
  }
}
