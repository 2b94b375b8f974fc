/** Reads the whole body of a small request, such as one of the dashboard or the admin API. */
import { GatewayError, bodyTooLarge } from '../errors.js'
import { headerOf, type HttpRequest, type HttpResponse } from './message.js'

/** Rejects with `body_too_large` at the first byte over the limit, or with `client_gone`. */
export async function readBody(req: HttpRequest, res: HttpResponse, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  await passBody(req, res, { maxBytes, take: (chunk) => chunks.push(chunk) })
  return Buffer.concat(chunks)
}

/** Reads the body and keeps nothing of it. Rejects as `readBody` does. */
export function dropBody(req: HttpRequest, res: HttpResponse, maxBytes: number): Promise<void> {
  return passBody(req, res, { maxBytes, take: () => undefined })
}

function passBody(
  req: HttpRequest,
  res: HttpResponse,
  { maxBytes, take }: { readonly maxBytes: number; readonly take: (chunk: Buffer) => void },
): Promise<void> {
  const length = headerOf(req, 'content-length')
  if (length !== undefined && Number(length) > maxBytes) return Promise.reject(bodyTooLarge(maxBytes))
  return new Promise((resolve, reject) => {
    let bytes = 0
    const refused = (error: GatewayError): void => {
      req.off('data', count).off('end', resolve).pause()
      reject(error)
    }
    const count = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes > maxBytes) refused(bodyTooLarge(maxBytes))
      else take(chunk)
    }
    res.onRefused = refused
    res.once('close', () => {
      reject(new GatewayError('client_gone', 'The client closed the connection.'))
    })
    req.on('data', count).once('end', resolve)
  })
}
