/**
 * Writes replies: whole in one write, or started, streamed with `res.write` and ended or truncated. Headers
 * are lists of name, value, ….
 */
import { headerOf, type HttpRequest, type HttpResponse } from './message.js'

/** Error codes of HTTP/2 (RFC 9113, section 7). */
const NO_ERROR = 0
const INTERNAL_ERROR = 2

/** If more of an unread body remains, the connection closes. */
const MAX_DRAINED_BYTES = 65_536
/** Time for which the rest of an unread body is read and dropped before the connection closes. */
const LINGER_MS = 1000

/** A reply that is written whole. */
interface HttpReply {
  readonly status: number
  /** Name, value, …; without `content-length`. */
  readonly headers: readonly string[]
  readonly body: string | Buffer
}

/**
 * Sends a whole reply with its `content-length`. If much of the request's body has not arrived, the
 * connection closes after the reply.
 */
export function sendReply(res: HttpResponse, { status, headers, body }: HttpReply): void {
  const { req } = res
  // RFC 9110, 8.6: a 204 has no content-length.
  const allHeaders =
    status === 204 ? [...headers] : [...headers, 'content-length', String(Buffer.byteLength(body))]
  const isBodiless = req.method === 'HEAD' || status === 304 || status === 204
  const closes = headers.includes('connection')
  if (res.stream === undefined && !req.complete && (closes || restIsLong(req))) {
    beginReply(res, status, closes ? allHeaders : [...allHeaders, 'connection', 'close'])
    if (!isBodiless) res.write(body)
    endLater(req, res)
    return
  }
  beginReply(res, status, allHeaders)
  if (isBodiless) res.end()
  else res.end(body)
  const { stream } = res
  // NO_ERROR requests the client to stop sending (RFC 9113, 8.1).
  if (stream !== undefined && !req.complete)
    stream.once('finish', () => setImmediate(() => stream.close(NO_ERROR)))
}

/** Sets headers of every reply to this request; the reply's own headers win. */
export function setHeaders(res: HttpResponse, headers: readonly string[]): void {
  for (let at = 0; at < headers.length; at += 2) {
    res.setHeader(headers[at] ?? '', headers[at + 1] ?? '')
  }
}

/** Writes the head of a reply; it is sent with the first chunk of the body, or by `flushHeaders`. */
export function beginReply(res: HttpResponse, status: number, headers: string[]): void {
  const isList = res.stream === undefined && res.getHeaderNames().length === 0
  res.writeHead(status, isList ? headers : headerObject(res, headers))
}

/**
 * Ends an incomplete reply after a last chunk. The client can distinguish it from a complete one: HTTP/1.1
 * lacks the terminating chunk, HTTP/2 has a RST_STREAM with INTERNAL_ERROR.
 */
export function truncateReply(res: HttpResponse, chunk: string | Buffer): void {
  const { stream } = res
  if (res.truncate !== undefined) {
    res.write(chunk)
    res.truncate()
  } else if (stream === undefined) {
    res.write(chunk)
    res.req.socket.destroySoon()
  } else {
    res.write(chunk, () => stream.close(INTERNAL_ERROR))
  }
}

/** Ends the exchange at once: the connection in HTTP/1.1, the stream in HTTP/2. */
export function abortReply(res: HttpResponse): void {
  if (res.stream === undefined) res.destroy()
  else res.stream.close(INTERNAL_ERROR)
}

/** Whether the operating system has the whole reply. Call it after `res.end`, or in a listener of `close`. */
export function isSent(res: HttpResponse): boolean {
  const { stream } = res
  // Node completes a pending write of a TLS socket that is destroyed without an error.
  if (stream === undefined) return res.writableFinished && !res.req.socket.destroyed
  return res.writableEnded && stream.rstCode === NO_ERROR && (stream.writableFinished || stream.closed)
}

/** Whether writes can no longer reach the client. */
export function isClosed(res: HttpResponse): boolean {
  return res.stream === undefined ? res.destroyed : res.stream.destroyed
}

/** Whether the rest of the body is long, or may never arrive. */
function restIsLong(req: HttpRequest): boolean {
  if (headerOf(req, 'transfer-encoding') !== undefined) return true
  return Number(headerOf(req, 'content-length') ?? 0) > MAX_DRAINED_BYTES
}

/**
 * Ends a complete reply when the client has stopped sending, or after a time limit. Closing a socket with
 * unread data can reset the connection and discard the reply.
 */
function endLater(req: HttpRequest, res: HttpResponse): void {
  const end = (): void => {
    clearTimeout(timer)
    res.end()
  }
  const timer = setTimeout(end, LINGER_MS)
  req.unpipe()
  req.once('end', end).once('close', end).resume()
}

/**
 * The list as an object, in which a repeated name becomes a list. HTTP/2 accepts no other form and has no
 * connection headers; in HTTP/1.1, Node 20 keeps only the last of a repeated name if other headers were set
 * before.
 */
function headerObject(res: HttpResponse, list: readonly string[]): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {}
  for (let at = 0; at < list.length; at += 2) {
    const name = list[at] ?? ''
    if (res.stream !== undefined && (name === 'connection' || name === 'keep-alive')) continue
    const value = list[at + 1] ?? ''
    const known = headers[name]
    headers[name] = known === undefined ? value : [known, value].flat()
  }
  return headers
}
