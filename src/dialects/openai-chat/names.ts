/**
 * Tool names and call ids that fit the format's limits, and the way back.
 * Knows nothing of where the long ones come from.
 */
import type { Tool } from '../../chat/request.js'
import { sha256Hex } from '../../wire/sha256.js'
import { NAME } from './wire.js'

/** OpenAI refuses longer ids of calls: `string_above_max_length`. */
const MAX_CALL_ID = 40

/** A name that the format takes: itself where it fits, else shortened with a hash of the whole. */
export function wireName(name: string): string {
  if (NAME.test(name)) return name
  return `${name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 55)}_${hash(name)}`
}

/** An id of at most 40 characters; the same for a call and for its result. */
export function wireCallId(id: string): string {
  return id.length <= MAX_CALL_ID ? id : `${id.slice(0, 31)}_${hash(id)}`
}

/** Maps a name that the upstream uses back to the client's. */
export function clientNames(tools: readonly Tool[]): (name: string) => string {
  const long = tools.filter(({ name }) => !NAME.test(name))
  if (long.length === 0) return (name) => name
  const names = new Map(long.map(({ name }) => [wireName(name), name]))
  return (name) => names.get(name) ?? name
}

/** Enough of a hash that two long names of one request differ. */
function hash(text: string): string {
  return sha256Hex(text).slice(0, 8)
}
