/** Which requests the exact cache answers, which replies it stores, and what a stored reply is. */
import { OPERATIONS } from '../formats/chat/operations.js'
import type { TaskResult } from '../formats/chat/task.js'
import type { RouteConfig } from '../config/config.js'
import { hasCalls } from '../formats/chat/hosted-tools.js'
import type { ChatEvent } from '../formats/chat/event.js'
import type { ReplyResult } from '../formats/translated-stream.js'
import type { ChatRequest, Message, Vectors } from '../formats/chat/request.js'
import type { DialectName, Endpoint } from '../formats/dialect.js'
import { parseExact, stringifyExact } from '../formats/wire/json/exact-numbers.js'
import { isObject } from '../base/json.js'
import { joinedEvents, type ReplyLog } from './capture-and-replay.js'

/** What the cache did for a request, as in `x-sluice-cache`. */
export type CacheResult = 'hit' | 'miss' | 'stored' | 'bypass'

/** The exact cache of a route. */
export type RouteCache = NonNullable<RouteConfig['cache']>

/** The limits that a client sets with `cache-control`. */
export interface CacheTerms {
  /** Neither looked up nor stored. */
  readonly noStore: boolean
  /** The maximum age of an entry; 0: none is looked up. */
  readonly maxAgeSeconds: number
}

const ANY_AGE: CacheTerms = { noStore: false, maxAgeSeconds: Number.POSITIVE_INFINITY }

/** Reads the header of a request (RFC 9111, 5.2.1); other directives have no meaning here. */
export function cacheTermsOf(header: string | undefined): CacheTerms {
  if (header === undefined) return ANY_AGE
  let { noStore, maxAgeSeconds } = ANY_AGE
  for (const directive of header.toLowerCase().split(',')) {
    const [name = '', value = ''] = directive.split('=').map((part) => part.trim())
    if (name === 'no-store') noStore = true
    if (name === 'no-cache') maxAgeSeconds = 0
    const digits = /^"?(\d{1,15})"?$/.exec(value)?.[1]
    if (name === 'max-age' && digits !== undefined) {
      maxAgeSeconds = Math.min(maxAgeSeconds, Number(digits))
    }
  }
  return { noStore, maxAgeSeconds }
}

/** A request that may be answered from the cache. */
interface CacheableRequest {
  readonly request: ChatRequest
  readonly operation: Endpoint['operation']
  /** The request continues a stored conversation. */
  readonly hasHistory: boolean
}

/** Whether the cache of the route may answer the request, and keep its reply. */
export function isCacheable(
  { request, operation, hasHistory }: CacheableRequest,
  { methods, temperatureMax }: RouteCache,
): boolean {
  const { cacheMethod } = OPERATIONS[operation]
  if (cacheMethod === null || !methods.includes(cacheMethod)) return false
  // Others have no temperature.
  if (cacheMethod === 'chat' && temperatureMax !== null && (request.temperature ?? 1) > temperatureMax)
    return false
  const { candidates = 1, hosted = [], unseen = [] } = request
  if (candidates > 1 || hasHistory || unseen.length > 0 || hosted.some(hasCalls)) return false
  return !request.messages.some(refersToContent)
}

/** Whether a part of the message is at a URL, or a file of a provider: what it contains may change. */
function refersToContent(message: Message): boolean {
  if (message.role !== 'user' && message.role !== 'tool') return false
  return message.parts.some(
    (part) => (part.type === 'image' || part.type === 'file') && part.source.kind !== 'base64',
  )
}

/** The parts of a stored reply that do not depend on its client. */
export interface StoredReply {
  /** The events of a chat; empty for other replies. */
  readonly events: readonly ChatEvent[]
  readonly vectors: Vectors | null
  /** Null for other replies; absent in replies of earlier versions. */
  readonly task?: TaskResult | null
  /** The upstream and the model that was requested from it, for the price. */
  readonly upstream: string
  readonly model: string
  readonly origin: DialectName | null
  /** `x-sluice-emulated` of the reply; null for none. Absent in replies of earlier versions. */
  readonly emulated?: string | null
}

/** The origin of a reply. */
export type ReplySource = Pick<StoredReply, 'upstream' | 'model' | 'origin' | 'emulated'>

/** The text of a finished reply for the cache; null if the reply must not be stored. */
export function storedText(
  log: ReplyLog,
  source: ReplySource,
  { maxBytes }: Pick<RouteCache, 'maxBytes'>,
): string | null {
  if (log.bytes > 2 * maxBytes || !isStorable(log)) return null
  const events = joinedEvents(log.events)
  const { vectors, task } = log
  const text = stringifyExact({ ...source, vectors, task, events })
  return Buffer.byteLength(text) > maxBytes ? null : text
}

/** Whether the model ended a reply with content by itself. */
function isStorable({ outcome, events, vectors, task }: ReplyLog): boolean {
  if (outcome !== 'complete') return false
  if (task !== null) return true
  if (vectors !== null) return vectors.vectors.length > 0
  const last = events.at(-1)
  if (last?.type !== 'finish' || (last.reason !== 'stop' && last.reason !== 'tool-use')) return false
  return !events.some(isRefusal) && events.some(isOutput)
}

function isRefusal({ type }: ChatEvent): boolean {
  return type === 'refusal-start'
}

function isOutput(event: ChatEvent): boolean {
  switch (event.type) {
    case 'text-delta':
      return event.text !== ''
    case 'tool-start':
    case 'image':
    case 'opaque':
      return true
    default:
      return false
  }
}

/** The reply in such a text; null if it is damaged. */
export function storedReplyIn(text: string): StoredReply | null {
  try {
    const value: unknown = parseExact(text)
    // Written by `storedText` of this version: the key has the version of the form.
    return isObject(value) && Array.isArray(value['events']) ? (value as unknown as StoredReply) : null
  } catch {
    return null
  }
}

/** The result of the cache for one request. */
export class CacheUse {
  result: CacheResult = 'bypass'
  /** The age of the stored reply; null unless it is served. */
  ageSeconds: number | null = null
  /** `x-sluice-emulated` of the reply of a hit; null for none. */
  emulated: string | null = null
  /** The reply of a hit. */
  replyResult: ReplyResult | null = null
  /** What the reply of a hit would cost now; null if a price is unknown, or it has not ended. */
  saved: () => number | null = () => null
  /** Called at the end of the reply, before its ledger entry is written. */
  private end: (() => Promise<void> | null) | null = null

  /** Sets the function that is called at the end of the reply. */
  atEnd(end: () => Promise<void> | null): void {
    this.end = end
  }

  /** The reply has ended: stores it, if it may be. The end of the reply waits for the promise. */
  ended(): Promise<void> | null {
    const { end } = this
    this.end = null
    return end?.() ?? null
  }
}
