/**
 * The local references of a JSON Schema: where each leads, and whether one leads back to itself.
 */
import {
  isObject,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../../../chat/json.js'

/** Deeper than any schema a person writes; also what keeps recursion off the stack's limit. */
export const MAX_DEPTH = 200

/** What a local `$ref` points at; an empty schema where it points nowhere. */
export function resolveRef(root: JsonObject, ref: string): JsonObject {
  if (!ref.startsWith('#/')) return {}
  let at: JsonValue | undefined = root
  for (const step of ref.slice(2).split('/')) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined
  }
  return objectOf(at)
}

/**
 * The first `$ref` that leads back to itself, or null. Each reference is followed once, so a schema
 * with many paths to one definition costs no more than its size.
 */
export function findRecursion(root: JsonObject): string | null {
  const settled = new Map<string, boolean>()
  const visit = (value: JsonValue | undefined, depth: number): string | null => {
    if (depth > MAX_DEPTH * 4) return 'the schema is nested too deeply'
    if (Array.isArray(value)) return firstOf(value, (one) => visit(one, depth + 1))
    if (!isObject(value)) return null
    const ref = stringOf(value.$ref)
    if (ref !== undefined) {
      if (settled.get(ref) === false) return `$ref ${ref} is recursive`
      if (settled.get(ref) === undefined) {
        settled.set(ref, false)
        const target = ref === '#' ? root : resolveRef(root, ref)
        const found = visit(target, depth + 1)
        if (found !== null) return found
        settled.set(ref, true)
      }
    }
    const members = Object.entries(value).filter(
      ([key]) => key !== '$defs' && key !== 'definitions',
    )
    return firstOf(members, ([, member]) => visit(member, depth + 1))
  }
  return visit(root, 0)
}

function firstOf<T>(items: readonly T[], find: (item: T) => string | null): string | null {
  for (const item of items) {
    const found = find(item)
    if (found !== null) return found
  }
  return null
}
