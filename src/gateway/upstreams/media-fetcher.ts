/**
 * Fetches the image or document of a client's URL, for upstreams that cannot read URLs, and never from
 * private addresses. Every failure is a `MediaError`, whose text may be sent to the client: it contains no
 * address, and does not distinguish a missing host name from a private one.
 */
import { Agent, type Dispatcher } from 'undici'
import type { FetchMediaConfig } from '../../config/config.js'
import { guessedType, sniffBytes } from '../../formats/wire/inline-media.js'
import { ANY, guardedConnector, PUBLIC } from './connection-pool.js'

/** The bytes of an image or document with their media type. */
export interface Media {
  readonly mediaType: string
  readonly bytes: Buffer
}

/** A failure; its message may be sent to the client. */
export class MediaError extends Error {}

/** Maximum number of redirects; image hosts need one or two. */
const MAX_REDIRECTS = 3
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
/** Maximum size of the response headers. */
const MAX_HEADER_BYTES = 16_384
const REQUEST_HEADERS = {
  accept: 'image/*, application/pdf, text/*;q=0.5',
  'accept-encoding': 'identity',
  'user-agent': 'sluice',
}

/** Fetches media with a maximum number of concurrent fetches for all requests of a process. */
export class MediaFetcher {
  private readonly limits: FetchMediaConfig
  private readonly agent: Agent
  private freeSlots: number
  private readonly waiting: (() => void)[] = []

  constructor(limits: FetchMediaConfig, network = limits.allowPrivateAddress ? ANY : PUBLIC) {
    this.limits = limits
    this.freeSlots = limits.concurrency
    this.agent = new Agent({
      connect: guardedConnector(network, { timeout: limits.timeoutMs }),
      connections: limits.concurrency,
      pipelining: 1,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: limits.timeoutMs,
      bodyTimeout: limits.timeoutMs,
    })
  }

  /** The media at the URL. Rejects with `MediaError`, or with the signal's reason if it aborts. */
  async fetch(url: string, signal: AbortSignal): Promise<Media> {
    const late = AbortSignal.timeout(this.limits.timeoutMs)
    await this.takeSlot()
    try {
      return await this.follow(url, AbortSignal.any([signal, late]))
    } catch (cause) {
      if (signal.aborted || cause instanceof MediaError) throw cause
      const problem = late.aborted ? 'took too long' : 'could not be fetched'
      throw new MediaError(`the URL ${problem}`, { cause })
    } finally {
      this.freeSlot()
    }
  }

  /** Closes every connection at once. */
  async destroy(): Promise<void> {
    await this.agent.destroy()
  }

  private async takeSlot(): Promise<void> {
    if (this.freeSlots > 0) this.freeSlots -= 1
    else await new Promise<void>((resolve) => this.waiting.push(resolve))
  }

  private freeSlot(): void {
    const next = this.waiting.shift()
    if (next === undefined) this.freeSlots += 1
    else next()
  }

  private async follow(firstUrl: string, signal: AbortSignal): Promise<Media> {
    let url = addressOf(firstUrl)
    for (let hop = 0; hop <= MAX_REDIRECTS; hop += 1) {
      signal.throwIfAborted()
      const { origin, pathname, search } = url
      const response = await this.agent.request({
        origin,
        path: pathname + search,
        method: 'GET',
        headers: REQUEST_HEADERS,
        signal,
      })
      const { location } = response.headers
      if (!REDIRECTS.has(response.statusCode) || typeof location !== 'string') {
        return await this.read(response)
      }
      response.body.on('error', () => undefined).destroy()
      url = addressOf(location, url)
    }
    throw new MediaError('the URL redirects too often')
  }

  private async read(response: Dispatcher.ResponseData): Promise<Media> {
    const { statusCode, headers, body } = response
    try {
      if (statusCode !== 200) throw new MediaError(`the URL answered ${statusCode}`)
      const { maxBytes } = this.limits
      if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes)
      const chunks: Buffer[] = []
      let size = 0
      for await (const chunk of body as AsyncIterable<Buffer>) {
        size += chunk.length
        if (size > maxBytes) throw tooLarge(maxBytes)
        chunks.push(chunk)
      }
      const bytes = Buffer.concat(chunks)
      return { bytes, mediaType: mediaTypeOf(bytes, headers['content-type']) }
    } finally {
      // Destroys the connection if the body has not ended; otherwise it has no effect.
      body.on('error', () => undefined).destroy()
    }
  }
}

function tooLarge(maxBytes: number): MediaError {
  return new MediaError(`the URL leads to more than ${maxBytes} bytes`)
}

/** The media type of the bytes; the server's type is used for what bytes do not identify. */
function mediaTypeOf(bytes: Buffer, declared: string | string[] | undefined): string {
  const sniffed = sniffBytes(bytes)
  if (sniffed !== undefined) return sniffed
  const type = typeof declared === 'string' ? declared.split(';')[0]?.trim().toLowerCase() : ''
  if (type === 'text/plain' || type === 'text/markdown' || type === 'text/csv') return type
  if (type !== undefined && /^(?:audio|video)\/[a-z0-9.+-]{1,64}$/.test(type)) return type
  const guessed = guessedType(bytes)
  if (guessed !== undefined) return guessed
  throw new MediaError('the URL leads to no image, PDF, plain text, sound or video')
}

function addressOf(text: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw new MediaError('the URL is not valid')
  const url = new URL(text, base)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new MediaError('the URL is neither http nor https')
  }
  if (url.username !== '' || url.password !== '') {
    throw new MediaError('the URL must not hold a user or password')
  }
  return url
}
