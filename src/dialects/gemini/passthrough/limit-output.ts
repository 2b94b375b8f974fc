/** Limits the length of the reply in a client's body, in either spelling of its fields. */
import { type JsonObject, objectOf } from '../../../chat/json.js'
import { stringifyExact } from '../../../wire/json/exact-numbers.js'
import type { Edit } from '../../../wire/json/splice.js'

/** The edit of `generationConfig` that sets `maxOutputTokens`. */
export function outputEdit(body: JsonObject, maxOutputTokens: number): Edit {
  const key = body.generation_config === undefined ? 'generationConfig' : 'generation_config'
  const config = { ...objectOf(body[key]) }
  const own = config.max_output_tokens === undefined ? 'maxOutputTokens' : 'max_output_tokens'
  const value = { ...config, [own]: maxOutputTokens }
  return { key, json: stringifyExact(value), value }
}
