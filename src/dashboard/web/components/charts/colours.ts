/**
 * Colours of series. A model or key has the same colour in all charts, derived from its name. On a conflict
 * the next free colour is used and stored in the browser.
 */

const OTHER = 'other'
const COLOURS = 12
/** Maximum number of stored colours. */
const MAX_STORED = 200
const STORED = 'sluice-colours'

/** The custom property of a colour. */
export type Colour = `--series-${number}` | '--soft' | '--bad' | '--good' | '--accent'

const assigned = new Map<string, number>(stored())

/** The colours of models or keys. The same ids in any order get the same colours. */
export function coloursOf(ids: readonly string[]): (id: string) => Colour {
  const missing = ids.filter((id) => id !== OTHER && !assigned.has(id)).sort()
  for (const id of missing) assigned.set(id, freeColour(id, ids))
  if (missing.length > 0) store()
  return (id) => {
    const number = assigned.get(id)
    return number === undefined ? '--soft' : `--series-${number + 1}`
  }
}

/**
 * The first colour, from that of the name on, which no other id of the chart has; otherwise the rarest one.
 */
function freeColour(id: string, beside: readonly string[]): number {
  const first = hashOf(id) % COLOURS
  const order = Array.from({ length: COLOURS }, (_, at) => (first + at) % COLOURS)
  const all = new Set(assigned.values())
  const near = new Set(beside.map((each) => assigned.get(each)))
  return order.find((each) => !all.has(each)) ?? order.find((each) => !near.has(each)) ?? first
}

function hashOf(text: string): number {
  let hash = 7
  for (const character of text) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 1_000_003
  return hash
}

function stored(): [string, number][] {
  try {
    const value: unknown = JSON.parse(window.localStorage.getItem(STORED) ?? '[]')
    if (!Array.isArray(value)) return []
    return value.flatMap((pair: unknown): [string, number][] => {
      const [id, number] = Array.isArray(pair) ? (pair as unknown[]) : []
      const isColour = typeof number === 'number' && number >= 0 && number < COLOURS
      return typeof id === 'string' && isColour ? [[id, Math.floor(number)]] : []
    })
  } catch {
    // Private windows may refuse storage, and other code may have changed it.
    return []
  }
}

function store(): void {
  try {
    const pairs = [...assigned].slice(-MAX_STORED)
    window.localStorage.setItem(STORED, JSON.stringify(pairs))
  } catch {
    // Without storage, the colours last as long as the page.
  }
}
