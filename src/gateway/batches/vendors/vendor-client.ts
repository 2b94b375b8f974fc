/** Sends the gateway's own requests about batches to a vendor, with the upstream's credential. */
import { Readable } from 'node:stream'
import { objectOf, stringOf, type JsonObject } from '../../../base/json.js'
import { parseReply } from '../../../formats/wire/json/parse-body.js'
import type { Target } from '../../generation.js'
import type { UpstreamCall } from '../../upstreams/upstream-call.js'

/** Maximum time until the head of a reply, and between two parts of it. */
const SILENCE_MS = 300_000
const MAX_OBJECT_BYTES = 64 * 1024 * 1024
const MAX_MESSAGE = 300

/** A vendor's refusal. */
export class VendorError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }

  /** Whether the same request may succeed later. */
  get isPassing(): boolean {
    return this.status === 408 || this.status === 409 || this.status === 429 || this.status >= 500
  }
}

/** A request below the upstream's address. */
interface VendorRequest {
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  /** Before the upstream's own path, such as `/upload`. */
  readonly above?: string
  /** Replace those of the same name. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly stream?: Readable
}

/** A reply that has begun. */
interface VendorReply {
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: Readable
}

/** One upstream. */
export class VendorClient {
  readonly target: Target

  constructor(target: Target) {
    this.target = target
  }

  /** The object in the reply. Rejects with `VendorError`, and if there is no reply. */
  async object(request: VendorRequest): Promise<JsonObject> {
    const { body } = await this.send(request)
    const text = await textOf(body, MAX_OBJECT_BYTES)
    const value = parseReply(text)
    if (value === null) throw new VendorError(502, 'the reply is no object')
    return value
  }

  /** The lines of the reply. Rejects as `object`. */
  async *lines(request: VendorRequest): AsyncIterable<JsonObject> {
    const { body } = await this.send(request)
    let rest: Buffer[] = []
    const chunks: AsyncIterable<Buffer> = body
    for await (const chunk of chunks) {
      let begin = 0
      for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, begin)) {
        yield* objectIn(Buffer.concat([...rest, chunk.subarray(begin, end)]))
        rest = []
        begin = end + 1
      }
      rest.push(chunk.subarray(begin))
    }
    yield* objectIn(Buffer.concat(rest))
  }

  /** Resolves with the head of a successful reply. */
  async send(request: VendorRequest): Promise<VendorReply> {
    const { status, ...reply } = await this.exchange(request)
    if (status < 400) return reply
    const text = await textOf(reply.body, 65_536)
    const { error, message } = objectOf(parseReply(text))
    const reason = stringOf(objectOf(error)['message']) ?? stringOf(message) ?? stringOf(error) ?? ''
    throw new VendorError(status, `the upstream answered ${status}: ${reason.slice(0, MAX_MESSAGE)}`)
  }

  private exchange(request: VendorRequest): Promise<VendorReply & { readonly status: number }> {
    const { method = 'GET', path, above = '', body = null, stream } = request
    const { pool, address } = this.target.upstream
    const query = path.includes('?') ? address.query.replace('?', '&') : address.query
    const sent = {
      ...{ method, path: `${above}${address.basePath}${path}${query}`, headers: this.headers(request), body },
      ...(stream !== undefined && { stream }),
    }
    return new Promise((resolve, reject) => {
      const read = new Readable({ read: () => call.resume() })
      // Its reader gets the error.
      read.on('error', () => undefined)
      const fail = (cause: Error): void => {
        clearTimeout(timer)
        reject(cause)
        read.destroy(cause)
      }
      const timer = setTimeout(() => {
        call.abort()
        fail(new VendorError(504, 'the upstream sent nothing for too long'))
      }, SILENCE_MS).unref()
      const call: UpstreamCall = pool.send(sent, {
        onRequestStart: () => undefined,
        onResponseStart: (status, headers) => resolve({ status, headers, body: read }),
        onResponseData: (chunk) => {
          timer.refresh()
          if (!read.push(chunk)) call.pause()
        },
        onResponseEnd: () => {
          clearTimeout(timer)
          read.push(null)
        },
        onResponseError: fail,
      })
    })
  }

  /** Name, value, …: the upstream's own, with those of the request. */
  private headers({ headers = {} }: VendorRequest): string[] {
    const { target } = this
    const own = { ...target.upstreamCodec.headers({}), ...headers }
    const fixed = target.headers[0] ?? []
    const kept: string[] = []
    for (let at = 0; at < fixed.length; at += 2) {
      if (!Object.hasOwn(own, fixed[at] ?? '')) kept.push(fixed[at] ?? '', fixed[at + 1] ?? '')
    }
    return [...kept, ...Object.entries(own).flat()]
  }
}

function* objectIn(bytes: Buffer): Iterable<JsonObject> {
  const value = parseReply(bytes.toString('utf8'))
  if (value !== null) yield value
}

async function textOf(body: Readable, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  const arriving: AsyncIterable<Buffer> = body
  for await (const chunk of arriving) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new VendorError(502, 'the reply is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
