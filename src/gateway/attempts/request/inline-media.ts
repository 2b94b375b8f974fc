/**
 * Fetches the images and files that a request references by URL, for upstreams that cannot read URLs. Runs
 * before the pure encoding, if the configuration allows it.
 */
import type { ChatRequest, Message, UserPart } from '../../../chat/request.js'
import { GatewayError } from '../../../errors.js'
import { MediaError, type Media, type MediaFetcher } from '../../../upstreams/media-fetcher.js'
import type { RequestContext } from '../../client-exchange.js'
import type { Target } from '../../generation/generation.js'
import type { HeldMemory } from '../../bodies/body-memory.js'
import type { Call } from '../../phases/receive.js'

/** A request whose media may be fetched. */
export interface MediaRequest {
  readonly exchange: RequestContext
  readonly call: Call
  /** Counts the memory of the media; the caller ends it. */
  readonly held: HeldMemory
}

/**
 * The call with bytes in place of the URLs that its upstream cannot read; null if there are none, or fetching
 * is off. Rejects with `malformed_request` naming the part.
 */
export function fetchMedia(request: MediaRequest, target: Target): Promise<Call> | null {
  const { exchange, call } = request
  const { media } = exchange.generation
  const { egress } = target
  if (media === null || egress.readsUrl === undefined || target.dialect === call.dialect)
    return null
  const urls = new Map<string, string>()
  for (const message of call.request.messages) {
    for (const [path, url] of urlsOf(message))
      if (!egress.readsUrl(url) && !urls.has(url)) urls.set(url, path)
  }
  if (urls.size === 0) return null
  return fetchAll(urls, media, request).then((fetched) => {
    let fetchedBytes = 0
    for (const { bytes } of fetched.values()) fetchedBytes += bytes.length
    return { ...call, request: withMedia(call.request, fetched), fetchedBytes }
  })
}

/** The bytes themselves, their base64, and that in the encoded request: 1 + 4/3 + 4/3, rounded up. */
const MEDIA_COPIES = 4

/** The URLs of a message with the path of each. */
function urlsOf(message: Message): [path: string, url: string][] {
  if (message.role !== 'user' && message.role !== 'tool') return []
  return message.parts.flatMap((part, index) => {
    const url = urlOf(part)
    return url === null ? [] : [[`messages[${message.index}].content[${index}]`, url]]
  })
}

function urlOf(part: UserPart): string | null {
  if (part.type !== 'image' && part.type !== 'file') return null
  return part.source.kind === 'url' ? part.source.url : null
}

/** Fetches the URLs, each with the path of its part. Rejects if one of them fails, or there are too many. */
async function fetchAll(
  urls: ReadonlyMap<string, string>,
  media: MediaFetcher,
  { exchange, held }: MediaRequest,
): Promise<Map<string, Media>> {
  const { maxPerRequest } = exchange.generation.snapshot.config.fetchMedia
  if (urls.size > maxPerRequest) {
    throw new GatewayError(
      'malformed_request',
      `messages: at most ${maxPerRequest} URLs can be fetched for this upstream; send the others as data: URLs`,
      { param: 'messages' },
    )
  }
  const aborter = new AbortController()
  exchange.cancellation.onCancel((reason) => aborter.abort(reason))
  const fetched = new Map<string, Media>()
  const failures: Error[] = []
  const fetchOne = async ([url, path]: [string, string]): Promise<void> => {
    try {
      const item = await media.fetch(url, aborter.signal)
      held.take(item.bytes.length * MEDIA_COPIES)
      fetched.set(url, item)
    } catch (cause) {
      failures.push(cause instanceof MediaError ? refused(path, cause) : errorOf(cause))
      // One failure fails the request.
      aborter.abort(cause)
    }
  }
  try {
    await Promise.all([...urls].map(fetchOne))
    exchange.cancellation.check()
    const [first] = failures
    if (first !== undefined) throw first
  } finally {
    exchange.cancellation.onCancel(null)
  }
  return fetched
}

function errorOf(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause))
}

function refused(path: string, cause: MediaError): GatewayError {
  const message = `${path}: ${cause.message}. Send the bytes as a data: URL.`
  return new GatewayError('malformed_request', message, { param: path, cause })
}

function withMedia(request: ChatRequest, fetched: ReadonlyMap<string, Media>): ChatRequest {
  const messages = request.messages.map((message): Message => {
    if (message.role !== 'user' && message.role !== 'tool') return message
    return { ...message, parts: message.parts.map((part) => withBytes(part, fetched)) }
  })
  return { ...request, messages }
}

function withBytes(part: UserPart, fetched: ReadonlyMap<string, Media>): UserPart {
  const item = fetched.get(urlOf(part) ?? '')
  if (item === undefined || (part.type !== 'image' && part.type !== 'file')) return part
  const { mediaType, bytes } = item
  return { ...part, source: { kind: 'base64', mediaType, data: bytes.toString('base64') } }
}
