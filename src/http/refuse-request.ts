/** Replies of the listener itself to invalid requests and connections. Each of them closes its connection. */
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { gatewayError, isRetryable, rowOf, type ErrorKind, type WireError } from '../errors.js'
import { errorBody } from '../formats/wire/openai/error-body.js'
import type { HttpResponse } from './message.js'
import { METHODS } from './request-guard.js'
import { newRequestId } from './request-id.js'
import { sendReply } from './respond.js'

/** Time for the client to read the reply and to stop sending. */
const LINGER_MS = 250

/** The refusal of a connection beyond the maximum. */
export const TOO_MANY: WireError = {
  kind: 'overloaded',
  message: 'the gateway has too many connections',
}

/**
 * Ends a request whose rest is invalid or late: its handler sends the error, if it can, otherwise the
 * listener.
 */
export function interrupt(
  res: HttpResponse,
  error: WireError,
  onRefused: (kind: ErrorKind, id: string) => void,
): void {
  if (res.onRefused !== undefined) {
    res.onRefused(gatewayError(error))
    return
  }
  const id = newRequestId(Date.now())
  onRefused(error.kind, id)
  refuseRequest(res, error, id)
}

/** An error body in the form of an API, and its content type. */
export interface RefusalBody {
  readonly type: string
  readonly text: string
}

/** Refuses a request; in OpenAI's form unless `body` is another one. */
export function refuseRequest(
  res: HttpResponse,
  error: WireError,
  id: string,
  body: RefusalBody | null = null,
): void {
  const headers = headersOf(error, id)
  if (body !== null) headers[1] = body.type
  sendReply(res, { status: rowOf(error.kind).status, headers, body: body?.text ?? errorBody(error) })
}

/** Replies to bytes that are not a request, and closes the socket. */
export function refuseSocket(socket: Duplex, error: WireError, id: string): void {
  const body = errorBody(error)
  const { status } = rowOf(error.kind)
  const headers = [...headersOf(error, id), 'content-length', String(Buffer.byteLength(body))]
  headers.push('date', new Date().toUTCString())
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let at = 0; at < headers.length; at += 2) {
    text += `${headers[at] ?? ''}: ${headers[at + 1] ?? ''}\r\n`
  }
  socket.end(`${text}\r\n${body}`)
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

/** The refusal for an error code of Node's parser and timeouts. */
export function breachOf(code: string | undefined): WireError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { kind: 'request_timeout', message: 'the request did not arrive in time' }
    case 'HPE_HEADER_OVERFLOW':
      return { kind: 'headers_too_large', message: 'the request line and headers are too large' }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { kind: 'body_too_large', message: 'the chunk extensions exceed 16 KiB' }
    default:
      return { kind: 'malformed_request', message: 'the request is not valid HTTP/1.1' }
  }
}

function headersOf(error: WireError, id: string): string[] {
  const { kind } = error
  const headers = ['content-type', 'application/json', 'x-request-id', id, 'connection', 'close']
  if (kind === 'method_not_allowed') headers.push('allow', METHODS.join(', '))
  if (!isRetryable(error)) headers.push('x-should-retry', 'false')
  if (kind === 'overloaded') headers.push('retry-after', '1')
  return headers
}
