/**
 * Fetches the image or document of a client's URL, for upstreams that cannot read URLs, and never from private addresses.
 * Every failure is a `MediaError`, whose text may be sent to the client: it contains no address, and does not distinguish a
 * missing host name from a private one.
 */
import { Agent, type Dispatcher } from 'undici'
import type { FetchMediaConfig } from '../config/config.js'
import { sniffBytes } from '../wire/sniff-media-type.js'
import { ANY, guardedConnector, PUBLIC } from './pool/guarded-connector.js'

/** Bytes and what they are. */
export interface Media {
  readonly mediaType: string
  readonly bytes: Buffer
}

/** The reason of a failure, for the client. */
export class MediaError extends Error {}

/** Browsers allow 20; image hosts need one or two. */
const MAX_REDIRECTS = 3
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
/** Response headers above this are not those of an image host. */
const MAX_HEADER_BYTES = 16_384
const REQUEST_HEADERS = {
  accept: 'image/*, application/pdf, text/*;q=0.5',
  'accept-encoding': 'identity',
  'user-agent': 'sluice',
}

/** A bounded number of fetches at once, over all requests of a process. */
export class MediaFetcher {
  private readonly limits: FetchMediaConfig
  private readonly agent: Agent
  private free: number
  private readonly waiting: (() => void)[] = []

  constructor(limits: FetchMediaConfig, network = limits.allowPrivateAddress ? ANY : PUBLIC) {
    this.limits = limits
    this.free = limits.concurrency
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
    await this.takeTurn()
    try {
      return await this.follow(url, AbortSignal.any([signal, late]))
    } catch (cause) {
      if (signal.aborted || cause instanceof MediaError) throw cause
      const took = late.aborted ? 'took too long' : 'could not be fetched'
      throw new MediaError(`the URL ${took}`, { cause })
    } finally {
      this.giveTurn()
    }
  }

  /** Ends every connection at once. */
  async destroy(): Promise<void> {
    await this.agent.destroy()
  }

  private async takeTurn(): Promise<void> {
    if (this.free > 0) this.free -= 1
    else await new Promise<void>((resolve) => this.waiting.push(resolve))
  }

  private giveTurn(): void {
    const next = this.waiting.shift()
    if (next === undefined) this.free += 1
    else next()
  }

  private async follow(first: string, signal: AbortSignal): Promise<Media> {
    let url = addressOf(first)
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
      // Has no effect on a body that has ended; destroys the connection of one that has not.
      body.on('error', () => undefined).destroy()
    }
  }
}

function tooLarge(maxBytes: number): MediaError {
  return new MediaError(`the URL leads to more than ${maxBytes} bytes`)
}

/** The media type of the bytes; the server's type is used only for text, which bytes do not identify. */
function mediaTypeOf(bytes: Buffer, declared: string | string[] | undefined): string {
  const sniffed = sniffBytes(bytes)
  if (sniffed !== undefined) return sniffed
  const type = typeof declared === 'string' ? declared.split(';')[0]?.trim().toLowerCase() : ''
  if (type === 'text/plain' || type === 'text/markdown' || type === 'text/csv') return type
  throw new MediaError('the URL leads to no image, PDF or plain text')
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
