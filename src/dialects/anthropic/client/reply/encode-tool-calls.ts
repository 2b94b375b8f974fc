/** Encodes the input of `tool_use` blocks. */

/**
 * The JSON text of `input` for a call's arguments. Arguments that are not a JSON object become `{"_raw":
 * text}`.
 */
export function encodeToolInput(json: string, isCustom: boolean): string {
  if (isCustom) return JSON.stringify({ input: json })
  if (json.trim() === '') return '{}'
  return isObjectText(json) ? json : JSON.stringify({ _raw: json })
}

function isObjectText(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
