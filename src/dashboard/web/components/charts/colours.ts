/**
 * Colours of series: a model or key has one colour in all charts. The colour follows from its name; if another one has
 * it, the next free colour is taken, and kept in this browser.
 */

const OTHER = 'other'
const COLOURS = 12
/** More names than a chart or a year of models has. */
const MOST_KEPT = 200
const STORED = 'sluice-colours'

/** A name of a custom property that holds the colour. */
export type Colour = `--series-${number}` | '--soft' | '--bad' | '--good' | '--accent'

const given = new Map<string, number>(stored())

/** The colour of a model or key. The same ids, in any order, get the same colours. */
export function coloursOf(ids: readonly string[]): (id: string) => Colour {
  const missing = ids.filter((id) => id !== OTHER && !given.has(id)).sort()
  for (const id of missing) given.set(id, freeColour(id, ids))
  if (missing.length > 0) store()
  return (id) => {
    const number = given.get(id)
    return number === undefined ? '--soft' : `--series-${number + 1}`
  }
}

/** The first colour from that of the name on which none of the ids beside it has, else one that few have. */
function freeColour(id: string, beside: readonly string[]): number {
  const first = hashOf(id) % COLOURS
  const order = Array.from({ length: COLOURS }, (_, at) => (first + at) % COLOURS)
  const all = new Set(given.values())
  const near = new Set(beside.map((each) => given.get(each)))
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
    // Storage is refused in some private windows, and may hold anything.
    return []
  }
}

function store(): void {
  try {
    const pairs = [...given].slice(-MOST_KEPT)
    window.localStorage.setItem(STORED, JSON.stringify(pairs))
  } catch {
    // As above: the colours then last as long as the page.
  }
}
