/** Checks of the data of server-sent events that a stream ends with. */

/** Whether the data are whole: `[DONE]`, or valid JSON. */
export function isWhole(data: string): boolean {
  return data === '[DONE]' || parsed(data) !== undefined
}

/** Whether the text is a JSON object with an `error`. */
export function isError(text: string): boolean {
  if (text === '') return false
  const value = parsed(text)
  return typeof value === 'object' && value !== null && 'error' in value
}

/** Undefined if the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
