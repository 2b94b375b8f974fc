/** Reads what the lines of all forms of batches have. */
import { isObject, type JsonObject } from '../../../base/json.js'
import { malformed } from '../../../errors.js'
import { parseObject } from '../../../formats/wire/json/parse-body.js'

const MAX_ID_CHARS = 512

/** A line, and the request in one of its members. */
export interface ReadMember {
  readonly value: JsonObject
  readonly request: JsonObject
  /** The bytes of the request. */
  readonly bytes: Buffer
}

/** The request in a member of a line. Throws `malformed_request`. */
export function requestMember(bytes: Buffer, name: string): ReadMember {
  const { value, members } = parseObject(bytes)
  const request = value[name]
  const member = members.find(({ key }) => key === name)
  if (!isObject(request) || member === undefined) throw malformed(`${name} must be an object`)
  return { value, request, bytes: bytes.subarray(member.valueStart, member.valueEnd) }
}

/** The name of a line. Throws `malformed_request`. */
export function textId(id: unknown, name: string): string {
  if (typeof id === 'string' && id !== '' && id.length <= MAX_ID_CHARS) return id
  throw malformed(`${name} must be a text of 1 to ${MAX_ID_CHARS} characters`)
}
