/** Names the field of an error as the client's format does. */
import type { WireError } from '../errors.js'

/**
 * The error with its `param`, and the path at the start of its message, renamed by `fieldName`. Messages
 * about a field start with its path.
 */
export function renameErrorField(error: WireError, fieldName: (path: string) => string): WireError {
  const { param, message } = error
  if (param === undefined) return error
  const name = fieldName(param)
  const renamedMessage = message.startsWith(param) ? name + message.slice(param.length) : message
  return { ...error, message: renamedMessage, param: name }
}
