/**
 * Edits the top-level members of a JSON object in its bytes. Unchanged members keep their bytes: large
 * integers, key order and escapes are preserved.
 */
import type { JsonValue } from '../../../base/json.js'
import type { Member } from './quick-scan.js'

/** Sets (or, with `json: null`, removes) one top-level key of a JSON object in place. */
export interface Edit {
  key: string
  /** The new value as JSON text or as UTF-8 bytes; null removes the key. */
  json: string | Buffer | null
  /** The value itself, for a later edit that reads it. */
  value?: JsonValue
}

/**
 * The object with the edits, made in one pass. Existing keys keep their position, new keys are added at the
 * end in the order of the edits, and a removed key goes with one comma. `members` are those of
 * `parseObject(bytes)`. If two edits have the same key, the last one applies.
 */
export function splice(bytes: Buffer, members: readonly Member[], edits: readonly Edit[]): Buffer {
  if (edits.length === 0) return bytes
  const open = new Map(edits.map((edit) => [edit.key, edit.json]))
  const parts: Buffer[] = []
  let from = 0
  let keptMembers = 0
  for (const [index, member] of members.entries()) {
    const json = open.get(member.key)
    open.delete(member.key)
    if (json === null) {
      const previous = keptMembers > 0 ? members[index - 1] : undefined
      const [cutStart, cutEnd] = cut(member, previous, members[index + 1])
      parts.push(bytes.subarray(from, cutStart))
      from = cutEnd
      continue
    }
    keptMembers += 1
    if (json === undefined) continue
    parts.push(bytes.subarray(from, member.valueStart), bytesOf(json))
    from = member.valueEnd
  }
  const end = members.at(-1)?.valueEnd ?? bytes.indexOf('{') + 1
  parts.push(bytes.subarray(from, end))
  for (const [key, json] of open) {
    if (json === null) continue
    parts.push(Buffer.from(`${keptMembers > 0 ? ',' : ''}${JSON.stringify(key)}:`), bytesOf(json))
    keptMembers += 1
  }
  parts.push(bytes.subarray(end))
  return Buffer.concat(parts)
}

function bytesOf(json: string | Buffer): Buffer {
  return typeof json === 'string' ? Buffer.from(json) : json
}

/**
 * The range of a removed member with one comma: the comma before it, or the one after it if no member remains
 * before it (`previous` is undefined).
 */
function cut(
  { memberStart, valueEnd }: Member,
  previous: Member | undefined,
  next: Member | undefined,
): [number, number] {
  if (previous !== undefined) return [previous.valueEnd, valueEnd]
  return [memberStart, next?.memberStart ?? valueEnd]
}
