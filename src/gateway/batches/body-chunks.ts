/** The bytes of a request's body, as they arrive. */
import { GatewayError } from '../../errors.js'
import type { Exchange } from '../client-exchange.js'

/** The body as it arrives. What remains of it stays for the reply to an error. */
export async function* chunksOf(x: Exchange): AsyncIterable<Buffer> {
  const { req, cancellation } = x
  cancellation.onCancel((reason) => void req.destroy(reason))
  try {
    const chunks: AsyncIterable<Buffer> = req.iterator({ destroyOnReturn: false })
    yield* chunks
  } catch (error) {
    cancellation.check()
    const isKnown = error instanceof GatewayError
    throw isKnown ? error : new GatewayError('client_gone', 'The client closed the connection.')
  } finally {
    cancellation.onCancel(null)
  }
}
