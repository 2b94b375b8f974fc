/**
 * What an upstream does otherwise than its dialect, as data: top-level keys to drop, rename and set.
 * Pure; knows no dialect.
 */
import type { JsonObject, JsonValue } from '../chat/json.js'
import type { QuirksConfig } from '../config/config.js'
import type { Edit } from '../wire/splice.js'

/** The same quirks as edits to a body's bytes. */
export function quirkEdits(body: JsonObject, quirks: QuirksConfig): Edit[] {
  const edits: Edit[] = []
  for (const key of quirks.drop) if (Object.hasOwn(body, key)) edits.push({ key, json: null })
  for (const [from, to] of Object.entries(quirks.rename)) {
    const value = Object.hasOwn(body, from) ? body[from] : undefined
    if (value === undefined) continue
    edits.push({ key: from, json: null }, { key: to, json: JSON.stringify(value) })
  }
  for (const [key, value] of Object.entries(quirks.set)) {
    edits.push({ key, json: JSON.stringify(value) })
  }
  return edits
}

/** The body with the quirks applied; the body itself where there are none. */
export function applyQuirks(body: JsonObject, quirks: QuirksConfig): JsonObject {
  const edits = quirkEdits(body, quirks)
  if (edits.length === 0) return body
  const changed = { ...body }
  for (const { key, json } of edits) {
    if (json === null) Reflect.deleteProperty(changed, key)
    else changed[key] = JSON.parse(json) as JsonValue
  }
  return changed
}
