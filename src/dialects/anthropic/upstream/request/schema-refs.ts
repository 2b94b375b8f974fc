/**
 * Resolves the local references of a JSON Schema and finds recursive ones.
 */
import {
  isObject,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../../../chat/json.js'

/** Maximum depth of a schema: deeper than real ones, and within the limit of the call stack. */
export const MAX_DEPTH = 200

/** The schema that a local `$ref` refers to; an empty schema if it does not exist. */
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
 * Describes the first `$ref` that leads back to itself; null if there is none. Follows each reference once,
 * so the cost is linear in the schema's size.
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
