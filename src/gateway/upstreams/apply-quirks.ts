/**
 * Applies an upstream's configured differences from its dialect: keys of the body and its messages to drop,
 * rename and set. Pure.
 */
import { arrayOf, isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import type { QuirksConfig } from '../../config/config.js'
import type { Edit } from '../../formats/wire/json/splice.js'
import { largeEdit } from '../../formats/wire/json/write-json.js'

/** Called for every non-empty member of the client that is left out. */
type Report = (path: string) => void

/** The gateway sets this member itself, because it always requests usage; dropping it is not a loss. */
const GATEWAY_MEMBER = 'stream_options'

/** A client's body, and the edits that its bytes get for the dialect. */
interface EditedBody {
  readonly body: JsonObject
  readonly dialectEdits: readonly Edit[]
}

/**
 * The quirks as edits of a body's bytes. They apply after the dialect's edits, so that keys set by those are
 * dropped and renamed like the client's.
 */
export function quirkEdits({ body, dialectEdits }: EditedBody, quirks: QuirksConfig, report: Report): Edit[] {
  const edits: Edit[] = []
  const valueOf = (key: string): JsonValue | undefined => {
    const edit = dialectEdits.findLast((candidate) => candidate.key === key)
    if (edit === undefined) return Object.hasOwn(body, key) ? body[key] : undefined
    if (edit.json === null) return undefined
    return edit.value ?? (JSON.parse(edit.json.toString()) as JsonValue)
  }
  for (const key of quirks.drop) {
    const value = valueOf(key)
    if (value === undefined) continue
    edits.push({ key, json: null })
    if (key !== GATEWAY_MEMBER && !isEmpty(value)) report(key)
  }
  for (const [from, to] of Object.entries(quirks.rename)) {
    const value = valueOf(from)
    if (value === undefined) continue
    edits.push({ key: from, json: null }, largeEdit(to, value))
  }
  if (!isPlain(quirks.messages)) {
    const messages = changedMessages(arrayOf(valueOf('messages')), quirks.messages, report)
    if (messages !== null) edits.push(largeEdit('messages', messages))
  }
  for (const [key, value] of Object.entries(quirks.set)) {
    edits.push({ key, json: JSON.stringify(value) })
  }
  return edits
}

/** The body with the quirks applied; the body itself if there are none. */
export function applyQuirks(body: JsonObject, quirks: QuirksConfig, report: Report): JsonObject {
  const edits = quirkEdits({ body, dialectEdits: [] }, quirks, report)
  if (edits.length === 0) return body
  const changed = { ...body }
  for (const { key, json, value } of edits) {
    if (json === null) Reflect.deleteProperty(changed, key)
    else changed[key] = value ?? (JSON.parse(json.toString()) as JsonValue)
  }
  return changed
}

function isPlain({ drop, rename, roles }: QuirksConfig['messages']): boolean {
  for (const _key in rename) return false
  for (const _role in roles) return false
  return drop.length === 0
}

/** The messages with the quirks applied; null if none applies. */
function changedMessages(
  messages: readonly JsonValue[],
  quirks: QuirksConfig['messages'],
  report: Report,
): JsonValue[] | null {
  const renames = Object.entries(quirks.rename)
  const roles = Object.entries(quirks.roles)
  const changed = messages.map((message) => {
    if (!isObject(message)) return message
    const role = roles.find(([from]) => from === message['role'])
    const moved = renames.filter(([from]) => Object.hasOwn(message, from))
    const dropped = quirks.drop.filter((key) => Object.hasOwn(message, key))
    if (role === undefined && moved.length === 0 && dropped.length === 0) return message
    const out = { ...message }
    for (const key of dropped) {
      if (!isEmpty(out[key])) report(`messages.${key}`)
      Reflect.deleteProperty(out, key)
    }
    for (const [from, to] of moved) {
      out[to] = message[from] ?? null
      Reflect.deleteProperty(out, from)
    }
    if (role !== undefined) out['role'] = role[1]
    return out
  })
  return changed.some((message, index) => message !== messages[index]) ? changed : null
}

/** Whether a member is empty; some clients send empty members. */
function isEmpty(value: JsonValue | undefined): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0
  return value === undefined || value === null || value === '' || value === false
}
