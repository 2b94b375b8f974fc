/**
 * Response formats (`response_format`, `text.format`) as chat completions and Responses share them: text,
 * JSON, and JSON by a schema.
 */
import type { JsonObject, JsonValue } from '../../../base/json.js'
import type { ResponseFormat } from '../../chat/request.js'
import { boolean, finiteObject, given, oneOf, string } from '../json/check-fields.js'
import { toolName } from '../tool-names.js'

/**
 * A response format. `type` is its checked type; `members` are those of a JSON schema, which chat completions
 * nests under `json_schema`.
 */
export function decodeFormat(
  type: 'text' | 'json_object' | 'json_schema',
  members: () => JsonObject,
  path: string,
): ResponseFormat {
  if (type === 'text') return { type }
  if (type === 'json_object') return { type: 'json-object' }
  const { name, schema, description, strict } = members()
  const format: ResponseFormat = {
    type: 'json-schema',
    name: toolName(name, `${path}.name`),
    schema: given(schema) ? finiteObject(schema, `${path}.schema`) : {},
  }
  if (given(description)) format.description = string(description, `${path}.description`)
  if (given(strict)) format.strict = boolean(strict, `${path}.strict`)
  return format
}

/** The `type` of a response format. */
export function formatType(
  value: JsonValue | undefined,
  path: string,
): 'text' | 'json_object' | 'json_schema' {
  return oneOf(value, path, ['text', 'json_object', 'json_schema'])
}
