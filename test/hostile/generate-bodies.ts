/** Builds the parts of hostile requests. */

/** A hostile body and its name. */
export interface Hostile {
  readonly name: string
  readonly make: () => string
}

/** A JSON object. */
export type Json = Record<string, unknown>

/** A chat request with these members, as JSON. */
export function body(members: Json): string {
  return JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...members })
}

/** A chat request whose only message has this content, which is inserted as raw JSON text. */
export function textBody(content: string): string {
  return body({}).replace('"Hi"', `"${content}"`)
}

/** `unit` repeated up to `bytes` bytes. */
export function fill(unit: string, bytes: number): string {
  return unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)))
}

/** A content part with base64 image data. */
export function image(data: string): Json {
  return { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }
}

/** The values of `make` for the indices below `count`. */
export function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

/** An object with the entries of `make` for the indices below `count`. */
export function record(count: number, make: (index: number) => [string, unknown]): Json {
  return Object.fromEntries(many(count, make))
}

/** A function tool with these parameters. */
export function tool(parameters: unknown, more: Json = {}): Json {
  return { type: 'function', function: { name: 'f', parameters, ...more } }
}

/** A tool call with the index in its id. */
export function call(index: number, json = '{}', prefix = 'c'): Json {
  return { id: `${prefix}${index}`, type: 'function', function: { name: 'f', arguments: json } }
}

/** One assistant message with `count` calls, and their results in reverse order. */
export function turn(
  count: number,
  { json, result, prefix = 'c' }: { json: string; result: string; prefix?: string },
): Json[] {
  const ids = many(count, (index) => index)
  return [
    { role: 'assistant', content: null, tool_calls: ids.map((index) => call(index, json, prefix)) },
    ...ids.reverse().map((index) => ({ role: 'tool', tool_call_id: `${prefix}${index}`, content: result })),
  ]
}
