/** The refusal of a body. */
import { GatewayError } from '../../errors.js'

/** `param` is the path of what is wrong. */
export function malformed(message: string, param = ''): GatewayError {
  return new GatewayError('malformed_request', message, param === '' ? {} : { param })
}
