/** The values of dimensions as ledger entries have them. */

/** `k=v` of each, separated by spaces, values percent-encoded; null for none. */
export function dimensionsText(dimensions: Readonly<Record<string, string>> | undefined): string | null {
  if (dimensions === undefined) return null
  let text = ''
  for (const [name, value] of Object.entries(dimensions)) {
    text += `${text === '' ? '' : ' '}${name}=${encodeURIComponent(value)}`
  }
  return text === '' ? null : text
}
