/**
 * Tool names and call ids that fit the limits of OpenAI's APIs, and the way back.
 * Chat completions and Responses share them; knows nothing of where the long ones come from.
 *
 * Source: OpenAI API reference, "Create chat completion" and "Create a model response", read 2026-11-20.
 */
import type { Tool } from '../../chat/request.js'
import { refuse } from '../json/check-fields.js'
import { sha256Hex } from '../sha256.js'

/** Names of functions, custom tools and schemas, as the API reference gives them. */
export const NAME = /^[A-Za-z0-9_-]{1,64}$/

/** A name as the format allows it. */
export function toolName(value: unknown, path: string): string {
  if (typeof value === 'string' && NAME.test(value)) return value
  return refuse(path, 'must be 1 to 64 of the characters A-Z, a-z, 0-9, _ and -')
}

/** A name that the format takes: itself where it fits, else shortened with a hash of the whole. */
export function wireName(name: string): string {
  if (NAME.test(name)) return name
  return `${name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 55)}_${hash(name)}`
}

/** An id of at most `max` characters; the same for a call and for its result. */
export function wireCallId(id: string, max: number): string {
  return id.length <= max ? id : `${id.slice(0, max - 9)}_${hash(id)}`
}

/** The ids of one reply's calls: the upstream's own, or one made of the reply's; two calls never share one. */
export class CallIds {
  private readonly used = new Set<string>()

  /** `replyId` is the reply's own id, `index` that of the call's block. */
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
