/**
 * Custom tools, which take free text, for formats whose tools take an object: they become function tools with
 * one string property.
 */
import { objectOf, parsedJson, stringOf, type JsonObject } from '../../base/json.js'

/** The only property of the function tool that replaces a custom tool. */
export const CUSTOM_INPUT = 'input'

/** The schema of the function tool. */
export const CUSTOM_SCHEMA: JsonObject = {
  type: 'object',
  properties: { [CUSTOM_INPUT]: { type: 'string' } },
  required: [CUSTOM_INPUT],
}

/** The text for the custom tool in the arguments of a call; other arguments are passed unchanged. */
export function customInput(json: string): string {
  const input = stringOf(objectOf(parsedJson(json))[CUSTOM_INPUT])
  return input ?? (json === '{}' ? '' : json)
}
