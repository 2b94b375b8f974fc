/**
 * Tool names and call ids that fit the format's limits, and the way back.
 * Knows nothing of where the long ones come from.
 */
import type { Tool } from '../../chat/request.js'
import { NAME } from './wire.js'

/** OpenAI refuses longer ids of calls: `string_above_max_length` (wire.md §1.2). */
const MAX_CALL_ID = 40

/** A name that the format takes: itself where it fits, else shortened with a hash of the whole. */
export function wireName(name: string): string {
  if (NAME.test(name)) return name
  return `${name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 50)}_${hash(name)}`
}

/** An id of at most 40 characters; the same for a call and for its result. */
export function wireCallId(id: string): string {
  return id.length <= MAX_CALL_ID ? id : `${id.slice(0, 26)}_${hash(id)}`
}

/** Maps a name that the upstream uses back to the client's. */
export function clientNames(tools: readonly Tool[]): (name: string) => string {
  const long = tools.filter(({ name }) => !NAME.test(name))
  if (long.length === 0) return (name) => name
  const names = new Map(long.map(({ name }) => [wireName(name), name]))
  return (name) => names.get(name) ?? name
}

/** 53 bits as 13 characters: cyrb53, public domain. Not for secrets; two names in one request differ. */
function hash(text: string): string {
  let high = 0xdeadbeef
  let low = 0x41c6ce57
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    high = Math.imul(high ^ unit, 2654435761)
    low = Math.imul(low ^ unit, 1597334677)
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909)
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
  return (2097151 & low).toString(16).padStart(5, '0') + (high >>> 0).toString(16).padStart(8, '0')
}
