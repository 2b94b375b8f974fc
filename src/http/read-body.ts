/** Reads the whole body of a small request, such as one of the dashboard or the admin API. */
import { GatewayError } from '../errors.js'
import { headerOf, type HttpRequest, type HttpResponse } from './message.js'

/** Rejects with `body_too_large` at the first byte over the limit, or with `client_gone`. */
export function readBody(req: HttpRequest, res: HttpResponse, maxBytes: number): Promise<Buffer> {
  const length = headerOf(req, 'content-length')
  if (length !== undefined && Number(length) > maxBytes) return Promise.reject(tooLarge(maxBytes))
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const refused = (error: GatewayError): void => {
      req.off('data', take).off('end', finish).pause()
      reject(error)
    }
    const take = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes > maxBytes) refused(tooLarge(maxBytes))
      else chunks.push(chunk)
    }
    const finish = (): void => resolve(Buffer.concat(chunks))
    res.onRefused = refused
    res.once('close', () => {
      reject(new GatewayError('client_gone', 'The client closed the connection.'))
    })
    req.on('data', take).once('end', finish)
  })
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError('body_too_large', `The body must not be larger than ${maxBytes} bytes.`)
}
