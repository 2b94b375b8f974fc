/**
 * Parts of hostile requests.
 */

/** A hostile body and its name. */
export interface Hostile {
  readonly name: string
  readonly make: () => string
}

/** A JSON object. */
export type Json = Record<string, unknown>

/** Makes a part of a body. */
export function body(members: Json): string {
  return JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...members })
}

/** Makes a part of a body. */
export function textBody(content: string): string {
  return body({}).replace('"Hi"', `"${content}"`)
}

/** Makes a part of a body. */
export function fill(unit: string, bytes: number): string {
  return unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)))
}

/** Makes a part of a body. */
export function image(data: string): Json {
  return { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }
}

/** Makes a part of a body. */
export function many<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at))
}

/** Makes a part of a body. */
export function record(count: number, make: (at: number) => [string, unknown]): Json {
  return Object.fromEntries(many(count, make))
}

/** Makes a part of a body. */
export function tool(parameters: unknown, more: Json = {}): Json {
  return { type: 'function', function: { name: 'f', parameters, ...more } }
}

/** Makes a part of a body. */
export function call(at: number, json = '{}', prefix = 'c'): Json {
  return { id: `${prefix}${at}`, type: 'function', function: { name: 'f', arguments: json } }
}

/** One assistant turn with so many calls, and their results in the opposite order. */
/** Makes a part of a body. */
export function turn(count: number, json: string, result: string, prefix = 'c'): Json[] {
  const ids = many(count, (at) => at)
  return [
    { role: 'assistant', content: null, tool_calls: ids.map((at) => call(at, json, prefix)) },
    ...ids
      .reverse()
      .map((at) => ({ role: 'tool', tool_call_id: `${prefix}${at}`, content: result })),
  ]
}
