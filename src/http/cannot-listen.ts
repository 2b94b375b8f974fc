/** The error of a port that cannot be opened: the text for the operator, with what to do. */
import { GatewayError } from '../errors.js'

/** What listens, and the settings that move it. */
interface Listener {
  /** Follows the address. */
  readonly of?: string
  readonly settings: string
}

/** The error for a failed `listen`. */
export function cannotListen(
  address: string,
  cause: NodeJS.ErrnoException,
  { of = '', settings }: Listener,
): GatewayError {
  const why = cause.code ?? cause.message
  const message = `cannot listen on ${address} (${why})${of}: ${adviceFor(cause.code, settings)}`
  return new GatewayError('cannot_listen', message, { cause })
}

function adviceFor(code: string | undefined, settings: string): string {
  switch (code) {
    case 'EACCES':
      return `this user may not open a port below 1024: change ${settings}, or grant the capability CAP_NET_BIND_SERVICE`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `this machine does not have the address: change ${settings}`
    default:
      return `stop the other program or change ${settings}`
  }
}
