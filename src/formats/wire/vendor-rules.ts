/**
 * Leaves to the vendor what only breaks a rule of its format: vendors that share a format differ in ranges,
 * words, and types of parts and tools, and add to them. An upstream of the format gets the client's bytes;
 * for any other upstream the broken rule is the error, because the request cannot be translated.
 */
import { GatewayError } from '../../errors.js'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import { addHosted, addUnseen, hostedTool } from '../chat/hosted-tools.js'
import type { ChatRequest, NativeField } from '../chat/request.js'
import { unreadMembers, type ReadMembers } from './unread-members.js'

/** What a vendor judges in a format. */
export interface VendorRules {
  /**
   * The members of the body. Others decide which upstream serves the request, what it costs or whose objects
   * it names.
   */
  readonly members: ReadonlySet<string>
  /** Paths within these members of which the same is true, and lists that the gateway reads. */
  readonly kept: RegExp
  /** A tool that can be left out alone. */
  readonly tool: RegExp
  /** The part or message in whose place the decoder reads a text. */
  readonly part: RegExp
  readonly message: RegExp
  readonly textPart: (text: string) => JsonObject
  readonly textMessage: (text: string) => JsonObject
  /** The members of parts and tools that are read; others are lost in a translation. */
  readonly read: ReadMembers
}

/** Broken rules of one request; a further one is the error. */
const MAX_BROKEN = 32
/**
 * JSON values that are decoded again over all broken rules of a request, in one turn of the event loop: about
 * 0.3 µs each. A broken rule beyond it is the error.
 */
const MAX_VALUES_AGAIN = 60_000
/** Characters of a text that count as a value. */
const TEXT_CHARS = 512

/**
 * Decodes a body as if it had nothing that breaks a rule, and adds the broken rules to the request. Throws
 * `malformed_request` for a rule that the gateway needs. `body` is not changed.
 */
export function decodeForVendor(
  rules: VendorRules,
  body: JsonObject,
  decode: (body: JsonObject) => ChatRequest,
): ChatRequest {
  const broken: NativeField[] = []
  const cuts: Cut[] = []
  let values: number | null = null
  for (let rest = body; ;) {
    try {
      const request = decode(rest)
      if (broken.length > 0) note(request, broken, cuts)
      const unread = unreadMembers(rest, rules.read)
      if (unread.length > 0) request.native = [...(request.native ?? []), ...unread.map((path) => ({ path }))]
      return request
    } catch (error) {
      const field = judged(error, rules)
      if (field === null || broken.length === MAX_BROKEN) throw error
      values ??= valuesIn(body)
      if (values * (broken.length + 1) > MAX_VALUES_AGAIN) throw error
      const cut = cutOf(rest, field.path, { rules, cuts })
      if (cut === null) throw error
      broken.push({ ...field, isMalformed: true, isVendors: true })
      cuts.push(cut)
      rest = cut.body
    }
  }
}

/** Number of values in the body, up to the limit. */
function valuesIn(body: JsonObject): number {
  let count = 0
  const open: JsonValue[] = [body]
  for (let value = open.pop(); value !== undefined && count <= MAX_VALUES_AGAIN; value = open.pop()) {
    count += 1
    if (typeof value === 'string') count += Math.floor(value.length / TEXT_CHARS)
    else if (Array.isArray(value)) for (const each of value) open.push(each)
    else if (isObject(value)) for (const each of Object.values(value)) if (each !== undefined) open.push(each)
  }
  return count
}

function note(request: ChatRequest, broken: readonly NativeField[], cuts: readonly Cut[]): void {
  request.native = [...broken, ...(request.native ?? [])]
  for (const { at, kind, item } of cuts) {
    // It may be a file or a page of any size.
    if (PROMPT.test(at)) addUnseen(request, at)
    if (kind === 'tool' && isObject(item) && typeof item['type'] === 'string') {
      addHosted(request, hostedTool(item, at))
    }
  }
}

/** The field and the rule that it breaks, if the vendor judges it. */
function judged(error: unknown, { members, kept }: VendorRules): { path: string; refusal: string } | null {
  if (!(error instanceof GatewayError) || error.kind !== 'malformed_request') return null
  const { param: path } = error.wire
  const [member = ''] = path?.split(/[.[]/, 1) ?? []
  if (path === undefined || !members.has(member) || kept.test(path)) return null
  return { path, refusal: error.message }
}

/** What is left out for the decoder: a part or message, which becomes a text, a tool, or a member. */
interface Cut {
  readonly at: string
  readonly kind: 'text' | 'tool' | 'member'
  readonly item: JsonValue
  readonly body: JsonObject
}

/** Members with text of the prompt. */
const PROMPT = /^(?:contents|input|instructions|messages|system|systemInstruction)(?![a-zA-Z_])/
/** The body without what breaks the rule; null if that has no place of its own. */
function cutOf(
  body: JsonObject,
  path: string,
  { rules, cuts }: { readonly rules: VendorRules; readonly cuts: readonly Cut[] },
): Cut | null {
  const part = rules.part.exec(path)?.[0]
  const message = rules.message.exec(path)?.[0]
  const texts = [part, message].filter((at) => at !== undefined)
  const tool = path.startsWith('tools') ? (rules.tool.exec(path)?.[0] ?? null) : undefined
  if (tool === null) return null
  const places = tool === undefined ? placesOf(path) : [tool]
  for (const at of texts.length > 0 ? texts : places) {
    if (cuts.some((cut) => cut.at === at)) continue
    let item: JsonValue | undefined
    const changed = replaced(body, keysOf(at), (value) => {
      item = value
      if (texts.length === 0) return undefined
      return at === part ? rules.textPart(JSON.stringify(value)) : rules.textMessage(JSON.stringify(value))
    })
    if (item === undefined || !isObject(changed)) continue
    const kind = texts.length > 0 ? 'text' : at === tool ? 'tool' : 'member'
    return { at, kind, item, body: changed }
  }
  return null
}

/** The path, and those of the objects that contain it. */
function placesOf(path: string): string[] {
  const ends = [...path.matchAll(/[.[]/g)].map(({ index }) => index)
  return [path, ...ends.reverse().map((end) => path.slice(0, end))]
}

function keysOf(path: string): string[] {
  return path.match(/[^.[\]]+/g) ?? []
}

/** A copy with another value at the keys, or without it; undefined if nothing is there. */
function replaced(
  holder: JsonValue | undefined,
  [key = '', ...keys]: readonly string[],
  change: (value: JsonValue) => JsonValue | undefined,
): JsonValue | undefined {
  const inner = (value: JsonValue | undefined): JsonValue | undefined =>
    keys.length > 0 || value === undefined ? replaced(value, keys, change) : change(value)
  if (Array.isArray(holder)) {
    const at = Number(key)
    const value = inner(holder[at])
    if (value !== undefined) return holder.with(at, value)
    return keys.length === 0 && at in holder ? holder.filter((_, each) => each !== at) : undefined
  }
  if (!isObject(holder)) return undefined
  // Errors name the members of Gemini's format in camel case.
  const name = Object.hasOwn(holder, key)
    ? key
    : key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  if (!Object.hasOwn(holder, name)) return undefined
  const value = inner(holder[name])
  if (value !== undefined) return { ...holder, [name]: value }
  if (keys.length > 0) return undefined
  return Object.fromEntries(Object.entries(holder).filter(([each]) => each !== name))
}

/** An upstream that may get the request: its dialect in the configuration, and the format of its requests. */
interface Judge {
  readonly dialect: string
  readonly wire: string
}

/**
 * Throws `malformed_request` for a rule that a vendor judges if none of the upstreams does: they have another
 * format than the client, or are OpenAI's own API, whose rules are those of the gateway. Names of tools break
 * a rule of that API alone.
 */
export function refuseUnjudged(request: ChatRequest, wire: string, judges: readonly Judge[]): void {
  const equal = judges.filter((judge) => judge.wire === wire)
  if (equal.some(({ dialect }) => dialect !== 'openai')) return
  const isOwn = equal.length === judges.length
  const vendors = request.native?.find(({ isVendors }) => isVendors === true)
  const broken = vendors ?? (isOwn ? request.foreignNames?.[0] : undefined)
  if (broken === undefined) return
  throw new GatewayError('malformed_request', broken.refusal ?? '', { param: broken.path })
}
