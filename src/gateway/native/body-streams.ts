/**
 * Transform streams for the bodies of native requests: limit the request body, count the reply body, and read
 * `usage` from a short JSON reply. Neither body is buffered before it is passed on.
 */
import { Transform, type TransformCallback } from 'node:stream'
import type { JsonValue } from '../../chat/json.js'
import type { Usage } from '../../chat/usage.js'
import { GatewayError } from '../../errors.js'
import { headerOf } from '../../http/message.js'
import type { Exchange } from '../client-exchange.js'
import { parseReply } from '../../wire/json/parse-body.js'

/** A longer reply is not searched for `usage`. */
const MAX_SEARCHED_BYTES = 1024 * 1024

/** Passes a request body. Fails with `GatewayError` at the first byte above the maximum. */
export class RequestLimit extends Transform {
  /** Called with the size of each chunk. */
  onBytes: (bytes: number) => void
  private readonly maxBytes: number
  private readonly declaredBytes: number | null
  private bytes = 0

  /** `declaredBytes`: the request's `content-length`; null if it has none. */
  constructor(maxBytes: number, declaredBytes: number | null, onBytes: (bytes: number) => void) {
    super()
    this.maxBytes = maxBytes
    this.declaredBytes = declaredBytes
    this.onBytes = onBytes
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    this.bytes += chunk.length
    if (this.bytes > this.maxBytes) {
      callback(tooLarge(this.maxBytes))
      return
    }
    this.onBytes(chunk.length)
    callback(null, chunk)
  }

  override _flush(callback: TransformCallback): void {
    const { bytes, declaredBytes } = this
    const isShort = declaredBytes !== null && bytes !== declaredBytes
    callback(
      isShort ? new GatewayError('malformed_request', 'The body is shorter than announced.') : null,
    )
  }
}

/** Methods whose requests have a body only if `content-length` announces one. */
const BODILESS = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS'])

/** The client's body within its limit. Throws `body_too_large` if the announced length is above it. */
export function openBody(
  { req, generation }: Exchange,
  method: string,
  intake: { bytes: number },
): RequestLimit {
  const length = headerOf(req, 'content-length')
  const isBodiless = length === undefined && BODILESS.has(method)
  const maxBytes = isBodiless ? 0 : generation.snapshot.config.server.maxBodyBytes
  const declared = length === undefined ? null : Number(length)
  if (declared !== null && declared > maxBytes) throw tooLarge(maxBytes)
  const body = new RequestLimit(maxBytes, declared, (bytes) => (intake.bytes += bytes))
  return req.pipe(body)
}

/**
 * The error of a body above `max_body_bytes`; with a maximum of 0, the error of a body without a length on a
 * method that usually has none.
 */
export function tooLarge(maxBytes: number): GatewayError {
  return maxBytes === 0
    ? new GatewayError(
        'malformed_request',
        'A body with this method needs the header content-length.',
      )
    : new GatewayError('body_too_large', `The body must not be larger than ${maxBytes} bytes.`)
}

/** The options of a `ReplyTap`. */
export interface ReplyTapOptions {
  /** The body is JSON and may contain `usage`. */
  readonly isJson: boolean
  /** Called with the size of each chunk before the chunk is passed on. */
  readonly onBytes: (bytes: number) => void
  /** Called with each chunk of a stream of events; absent if nothing reads them. */
  readonly onChunk?: (chunk: Buffer) => void
  /** Called when the whole body has arrived; the end of the reply waits for the promise. */
  readonly ending: (usage: Usage) => Promise<void> | null
}

/** Passes a reply body, and reads its token counts. */
export class ReplyTap extends Transform {
  private readonly options: ReplyTapOptions
  private chunks: Buffer[] | null
  private bytes = 0

  constructor(options: ReplyTapOptions) {
    super()
    this.options = options
    this.chunks = options.isJson ? [] : null
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    this.bytes += chunk.length
    if (this.bytes > MAX_SEARCHED_BYTES) this.chunks = null
    this.chunks?.push(chunk)
    this.options.onChunk?.(chunk)
    this.options.onBytes(chunk.length)
    callback(null, chunk)
  }

  override _flush(callback: TransformCallback): void {
    const usage = this.chunks === null ? {} : usageIn(Buffer.concat(this.chunks).toString())
    this.chunks = null
    const ending = this.options.ending(usage)
    if (ending === null) callback()
    else void ending.then(() => callback())
  }
}

/**
 * The token counts in the `usage` of a JSON object, by the field names of any provider; empty if there are
 * none.
 */
export function usageIn(text: string): Usage {
  const reply = parseReply(text)
  const counts = reply?.['usage'] ?? reply?.['usageMetadata']
  if (typeof counts !== 'object' || counts === null || Array.isArray(counts)) return {}
  const count = (...names: string[]): number | undefined => {
    for (const name of names) if (isCount(counts[name])) return counts[name]
    return undefined
  }
  const input = count('prompt_tokens', 'input_tokens', 'promptTokenCount')
  const output = count('completion_tokens', 'output_tokens', 'candidatesTokenCount')
  if (input === undefined) return output === undefined ? {} : { output }
  // Replies to embeddings count only the prompt.
  return { input, output: output ?? 0 }
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
