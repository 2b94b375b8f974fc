/** A reply that no socket carries: of a turn on a WebSocket, or of a line of a batch. */
import type { OutgoingHttpHeaders } from 'node:http'
import { Writable, type WritableOptions } from 'node:stream'
import type { GatewayError } from '../errors.js'
import type { HttpRequest, HttpResponse } from './message.js'

/** Keeps status and headers; what becomes of the body is `_write` of each kind. */
export abstract class DetachedReply<Request extends HttpRequest & { destroy(): unknown }>
  extends Writable
  implements HttpResponse
{
  statusCode = 200
  headersSent = false
  onClosed?: () => void
  onRefused?: (error: GatewayError) => void
  readonly req: Request
  protected readonly headers = new Map<string, string>()

  constructor(req: Request, options: WritableOptions) {
    super({ decodeStrings: true, ...options })
    this.req = req
    this.once('close', () => {
      req.destroy()
      this.onClosed?.()
    })
  }

  getHeader(name: string): string | undefined {
    return this.headers.get(name)
  }

  setHeader(name: string, value: string): void {
    this.headers.set(name, value)
  }

  removeHeader(name: string): void {
    this.headers.delete(name)
  }

  getHeaderNames(): string[] {
    return [...this.headers.keys()]
  }

  writeHead(status: number, headers: OutgoingHttpHeaders | string[] = []): void {
    this.statusCode = status
    this.headersSent = true
    if (Array.isArray(headers)) {
      for (let at = 0; at < headers.length; at += 2) this.addHeader(headers[at] ?? '', headers[at + 1] ?? '')
    } else {
      for (const [name, value] of Object.entries(headers)) this.addHeader(name, String(value))
    }
  }

  writeContinue(): void {
    // The whole body is there before the reply begins.
  }

  setTimeout(): void {
    // The connection of a WebSocket, and the attempts of a line, have their own.
  }

  abstract truncate(): void

  private addHeader(name: string, value: string): void {
    const earlier = this.headers.get(name)
    this.headers.set(name, earlier === undefined ? value : `${earlier}, ${value}`)
  }
}
