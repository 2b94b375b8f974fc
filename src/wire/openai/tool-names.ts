/**
 * Converts tool names and call ids to the limits of OpenAI's APIs, and tool names back.
 *
 * Source: OpenAI API reference, "Create chat completion" and "Create a model response", read 2026-11-20.
 */
import type { Tool } from '../../chat/request.js'
import { refuse } from '../json/check-fields.js'
import { sha256Hex } from '../sha256.js'

/** Names of functions, custom tools and schemas, as the API reference gives them. */
export const NAME = /^[A-Za-z0-9_-]{1,64}$/

/** A valid tool name. Throws `malformed_request` naming `path`. */
export function toolName(value: unknown, path: string): string {
  if (typeof value === 'string' && NAME.test(value)) return value
  return refuse(path, 'must be 1 to 64 of the characters A-Z, a-z, 0-9, _ and -')
}

/** The name if it is valid, else a shortened name with a hash of the original. */
export function wireName(name: string): string {
  if (NAME.test(name)) return name
  return `${name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 55)}_${hash(name)}`
}

/**
 * An id of at most `max` characters. The same id always gives the same result, for a call and for its tool
 * result.
 */
export function wireCallId(id: string, max: number): string {
  return id.length <= max ? id : `${id.slice(0, max - 9)}_${hash(id)}`
}

/** Assigns unique ids to the calls of one reply: the upstream's own, or one derived from the reply's id. */
export class CallIds {
  private readonly used = new Set<string>()

  /** `replyId` is the id of the reply, `index` the index of the call's block. */
  take(id: string, replyId: string, index: number): string {
    let unique = id
    const seed = replyId.replace(/[^A-Za-z0-9]/g, '')
    for (let at = index; unique === '' || this.used.has(unique); at += 1) {
      unique = `call_${seed.slice(-24)}_${at}`
    }
    this.used.add(unique)
    return unique
  }
}

/** Maps a tool name of the upstream to the client's. */
export function clientNames(tools: readonly Tool[]): (name: string) => string {
  const long = tools.filter(({ name }) => !NAME.test(name))
  if (long.length === 0) return (name) => name
  const names = new Map(long.map(({ name }) => [wireName(name), name]))
  return (name) => names.get(name) ?? name
}

/** Eight hexadecimal digits, enough to distinguish the names of one request. */
function hash(text: string): string {
  return sha256Hex(text).slice(0, 8)
}
