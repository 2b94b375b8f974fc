/**
 * The refusal of a path or method that the gateway does not serve (404 or 405), with the nearest endpoint.
 */
import type { DialectName } from '../../dialects/dialect.js'
import { allowedMethods, SERVED } from '../../dialects/index.js'
import { nearestRow, unservedEndpoint } from '../../dialects/match-endpoint.js'
import { GatewayError } from '../../errors.js'

/** The error, and the format of its reply; null if the path is similar to none. */
export interface UnknownEndpoint {
  readonly dialect: DialectName | null
  readonly refusal: GatewayError
}

/**
 * Refuses a request to an endpoint that does not exist, in the vendor's format if the path is one of a
 * vendor's.
 */
export function unknownEndpoint(method: string, path: string): UnknownEndpoint {
  const unserved = unservedEndpoint(path)
  if (unserved !== null) {
    const message = `There is no endpoint ${method} ${unserved.path}. ${unserved.advice}`
    return { dialect: unserved.dialect, refusal: new GatewayError('unknown_endpoint', message) }
  }
  const nearest = nearestRow(method, path, SERVED)
  return {
    dialect: path.startsWith('/v1beta/') ? 'gemini' : (nearest?.dialect ?? null),
    refusal: noEndpoint(method, path, nearest && `${nearest.method} ${nearest.path}`),
  }
}

/** Maximum length of an unknown path in an error message. */
const SHOWN_CHARS = 100

function noEndpoint(method: string, path: string, nearest: string | null): GatewayError {
  const methods = allowedMethods(path)
  if (methods.length > 0) {
    const message = `This path takes ${methods.join(', ')}, not ${method}.`
    return new GatewayError('method_not_allowed', message)
  }
  const hint =
    nearest === null
      ? 'The endpoints are listed in docs/reference/clients.md; chat requests use POST /v1/chat/completions.'
      : `Did you mean ${nearest}?`
  const shown = path.length > SHOWN_CHARS ? `${path.slice(0, SHOWN_CHARS)}…` : path
  return new GatewayError('unknown_endpoint', `There is no endpoint ${method} ${shown}. ${hint}`)
}
