/** The values of dimensions as ledger entries have them. */

/** Requests of a run share their values. */
const texts = new WeakMap<Readonly<Record<string, string>>, string>()

/** `k=v` of each, separated by spaces, values percent-encoded; null for none. */
export function dimensionsText(dimensions: Readonly<Record<string, string>> | undefined): string | null {
  if (dimensions === undefined) return null
  const known = texts.get(dimensions)
  if (known !== undefined) return known === '' ? null : known
  let text = ''
  for (const [name, value] of Object.entries(dimensions)) {
    text += `${text === '' ? '' : ' '}${name}=${encodeURIComponent(value)}`
  }
  texts.set(dimensions, text)
  return text === '' ? null : text
}
