/** Parses JSON without exceptions. */

/** The value; null if the text is not JSON. The parser's message is dropped, because it quotes the text. */
export function parseOrNull(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(text)
  } catch {
    return null
  }
}
