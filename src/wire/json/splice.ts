/**
 * Edits to the top-level members of a JSON object, made on its bytes.
 * Never re-serialises what did not change: big integers, key order and escapes survive.
 */
import type { JsonValue } from '../../chat/json.js'
import type { Member } from './scan/quick-scan.js'

/** Sets (or, with `json: null`, removes) one top-level key of a JSON object in place. */
export interface Edit {
  key: string
  /** The new value as JSON, in UTF-8 where it is bytes; null removes the key. */
  json: string | Buffer | null
  /** The value itself, where a later edit may want to look at it. */
  value?: JsonValue
}

/**
 * The object with the edits made, in one pass: existing keys are set where they stand, missing ones
 * are added at the end in the order of the edits, removed ones go with one comma. Every other byte
 * stays. `members` are those that `parseObject(bytes)` found; of two edits of one key the last counts.
 */
export function splice(bytes: Buffer, members: readonly Member[], edits: readonly Edit[]): Buffer {
  if (edits.length === 0) return bytes
  const open = new Map(edits.map((edit) => [edit.key, edit.json]))
  const parts: Buffer[] = []
  let from = 0
  let kept = 0
  for (const [index, member] of members.entries()) {
    const json = open.get(member.key)
    open.delete(member.key)
    if (json === null) {
      const [cutStart, cutEnd] = cut(members, index, member, kept > 0)
      parts.push(bytes.subarray(from, cutStart))
      from = cutEnd
      continue
    }
    kept += 1
    if (json === undefined) continue
    parts.push(bytes.subarray(from, member.valueStart), bytesOf(json))
    from = member.valueEnd
  }
  const end = members.at(-1)?.valueEnd ?? bytes.indexOf('{') + 1
  parts.push(bytes.subarray(from, end))
  for (const [key, json] of open) {
    if (json === null) continue
    parts.push(Buffer.from(`${kept > 0 ? ',' : ''}${JSON.stringify(key)}:`), bytesOf(json))
    kept += 1
  }
  parts.push(bytes.subarray(end))
  return Buffer.concat(parts)
}

function bytesOf(json: string | Buffer): Buffer {
  return typeof json === 'string' ? Buffer.from(json) : json
}

/** What goes with a removed member: the comma before it where something stays there, else the one after. */
function cut(
  members: readonly Member[],
  index: number,
  member: Member,
  hasKept: boolean,
): [number, number] {
  const before = members[index - 1]
  if (hasKept && before !== undefined) return [before.valueEnd, member.valueEnd]
  return [member.memberStart, members[index + 1]?.memberStart ?? member.valueEnd]
}
