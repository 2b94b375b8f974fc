/** Decides whether a JSON Schema can be enforced strictly. Linear in the size of the schema. */
import { arrayOf, isObject, stringOf, type JsonObject, type JsonValue } from '../json.js'

/**
 * Whether every object of the schema is closed and requires all of its properties, as OpenAI's strict mode
 * demands. Anthropic and Google enforce other schemas too.
 */
export function isClosed(schema: JsonValue | undefined): boolean {
  const pending: (JsonValue | undefined)[] = [schema]
  while (pending.length > 0) {
    const item = pending.pop()
    if (Array.isArray(item)) {
      for (const each of item) pending.push(each)
      continue
    }
    if (!isObject(item)) continue
    if (isOpenObject(item)) return false
    for (const each of Object.values(item)) pending.push(each)
  }
  return true
}

function isOpenObject(schema: JsonObject): boolean {
  if (schema.type !== 'object') return false
  if (schema.additionalProperties !== false) return true
  const required = new Set(arrayOf(schema.required).map(stringOf))
  const { properties } = schema
  return isObject(properties) && Object.keys(properties).some((name) => !required.has(name))
}
