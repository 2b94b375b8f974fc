/**
 * The refusal of a path or method that the gateway does not serve (404 or 405), with the nearest endpoint.
 */
import type { DialectName } from '../../dialects/dialect.js'
import { allowedMethods, SERVED } from '../../dialects/index.js'
import {
  isModelMethod,
  nearestRow,
  shownPath,
  unservedEndpoint,
} from '../../dialects/match-endpoint.js'
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
  const unserved = unservedEndpoint(method, path)
  if (unserved !== null) {
    const message = `There is no endpoint ${method} ${shownPath(path)}. ${unserved.advice}`
    return { dialect: unserved.dialect, refusal: new GatewayError('unknown_endpoint', message) }
  }
  const nearest = nearestRow(method, path, SERVED)
  return {
    dialect: path.startsWith('/v1beta/') ? 'gemini' : (nearest?.dialect ?? null),
    refusal: noEndpoint(method, path, nearest && `${nearest.method} ${nearest.path}`),
  }
}

function noEndpoint(method: string, path: string, nearest: string | null): GatewayError {
  const methods = allowedMethods(path)
  // A model may have a colon in its name, so a misspelt method looks like a model that GET reads.
  if (methods.length > 0 && !(method === 'POST' && isModelMethod(path))) {
    const message = `This path takes ${methods.join(', ')}, not ${method}.`
    return new GatewayError('method_not_allowed', message)
  }
  const hint =
    nearest === null
      ? 'The endpoints are listed in docs/reference/clients.md; chat requests use POST /v1/chat/completions.'
      : `Did you mean ${nearest}?`
  const message = `There is no endpoint ${method} ${shownPath(path)}. ${hint}`
  return new GatewayError('unknown_endpoint', message)
}
