/** The error for a malformed body. */
import { GatewayError } from '../../errors.js'

/** `param` is the path of the malformed value. */
export function malformed(message: string, param = ''): GatewayError {
  return new GatewayError('malformed_request', message, param === '' ? {} : { param })
}
