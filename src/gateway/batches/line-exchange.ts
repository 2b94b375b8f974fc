/** A line of a batch in the form of HTTP, so that the pipeline serves it as it serves a client's request. */
import type { IncomingHttpHeaders } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { hash } from 'node:crypto'
import { DetachedReply } from '../../http/detached-reply.js'
import type { HttpRequest } from '../../http/message.js'

/** The request of a line. */
export class LineRequest extends Readable implements HttpRequest {
  readonly method = 'POST'
  readonly httpVersion = '1.1'
  readonly complete = true
  readonly rawTrailers: string[] = []
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: string[]
  /** It is never opened: no client is connected. */
  readonly socket = new Socket()
  private body: Buffer | null

  /** `inherited`: headers of the request that made the batch which lines have too. */
  constructor(
    path: string,
    {
      body,
      idempotencyKey,
      inherited,
    }: {
      readonly body: Buffer
      readonly idempotencyKey: string
      readonly inherited: Readonly<Record<string, string>>
    },
  ) {
    super()
    this.url = path
    this.body = body
    const headers = {
      ...inherited,
      'content-type': 'application/json',
      'content-length': String(body.length),
      'idempotency-key': idempotencyKey,
    }
    this.headers = headers
    this.rawHeaders = Object.entries(headers).flat()
  }

  override _read(): void {
    const { body } = this
    this.body = null
    this.push(body)
  }
}

/** A whole reply. */
export interface LineReplyBody {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
  /** The gateway sent all of it. */
  readonly isComplete: boolean
}

/** Collects the reply to a line. */
export class LineReply extends DetachedReply<LineRequest> {
  private readonly chunks: Buffer[] = []

  /** `done` is called once. */
  constructor(req: LineRequest, done: (reply: LineReplyBody) => void) {
    super(req, {})
    this.once('close', () => {
      const { statusCode: status, headers, writableFinished: isComplete } = this
      done({ status, headers, body: Buffer.concat(this.chunks), isComplete })
    })
  }

  truncate(): void {
    this.destroy()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.chunks.push(chunk)
    done()
  }
}

/**
 * The id of a line: always the same, so that an upstream can recognise a line that is sent again. Its time is
 * that of the batch.
 */
export function lineRequestId(
  { id, createdAtMs }: { readonly id: string; readonly createdAtMs: number },
  line: number,
): string {
  const digits = hash('sha256', `${id} ${line}`)
  const time = Math.floor(createdAtMs).toString(16).padStart(12, '0')
  return [
    time.slice(0, 8),
    time.slice(8),
    `7${digits.slice(0, 3)}`,
    `8${digits.slice(3, 6)}`,
    digits.slice(6, 18),
  ].join('-')
}
