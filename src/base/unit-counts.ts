/** Counts by unit as ledger entries have them: `audio_second=61.5 image=2`, sorted by name. */

/** The text of counts with three digits after the point at most; null for none. */
export function unitCountsText(counts: readonly (readonly [unit: string, count: number])[]): string | null {
  if (counts.length === 0) return null
  return counts
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([unit, count]) => `${unit}=${Math.round(count * 1000) / 1000}`)
    .join(' ')
}

/** The counts in a text; what is not a number is left out. */
export function unitsIn(text: string | null): Map<string, number> {
  const counts = new Map<string, number>()
  for (const pair of text?.split(' ') ?? []) {
    const at = pair.indexOf('=')
    const count = Number(pair.slice(at + 1))
    if (at > 0 && Number.isFinite(count)) counts.set(pair.slice(0, at), count)
  }
  return counts
}

/**
 * The units that sums of usage have: their name in entries, their figure in sums, its column in stores and
 * archives, and how much of the figure is one. Figures are whole numbers: seconds of sound are milliseconds.
 * Tokens by kind are none of them: they are a part of the tokens.
 */
export const UNIT_FIGURES = [
  { unit: 'image', figure: 'images', column: 'images', one: 1 },
  { unit: 'audio_second', figure: 'audioMs', column: 'audio_ms', one: 1000 },
  { unit: 'character', figure: 'characters', column: 'characters', one: 1 },
  { unit: 'page', figure: 'pages', column: 'pages', one: 1 },
  { unit: 'search', figure: 'searches', column: 'searches', one: 1 },
  { unit: 'document', figure: 'documents', column: 'documents', one: 1 },
  { unit: 'line', figure: 'lines', column: 'lines', one: 1 },
] as const

/** The name of a figure of units. */
export type UnitFigure = (typeof UNIT_FIGURES)[number]['figure']
/** What requests used of each unit. */
export type UnitFigures = Readonly<Record<UnitFigure, number>>

/** The names of the figures, in their order in stores. */
export const UNIT_NAMES: readonly UnitFigure[] = UNIT_FIGURES.map(({ figure }) => figure)

/** No units. */
export const NO_UNITS: UnitFigures = unitFigures(() => 0)

/** An object with a value for each figure. */
export function unitFigures(valueOf: (figure: UnitFigure) => number): UnitFigures {
  // A literal: statements make tens of thousands, and objects of entries are slow to make and to read.
  return {
    images: valueOf('images'),
    audioMs: valueOf('audioMs'),
    characters: valueOf('characters'),
    pages: valueOf('pages'),
    searches: valueOf('searches'),
    documents: valueOf('documents'),
    lines: valueOf('lines'),
  }
}

/** The figures among others. */
export function unitFiguresOf(of: UnitFigures): UnitFigures {
  return unitFigures((figure) => of[figure])
}

/** What the column `units` of an entry adds to sums. */
export function unitFiguresIn(text: string | null): UnitFigures {
  if (text === null) return NO_UNITS
  const counts = unitsIn(text)
  const amounts = new Map<string, number>(
    UNIT_FIGURES.map(({ unit, figure, one }) => [figure, Math.round((counts.get(unit) ?? 0) * one)]),
  )
  return unitFigures((figure) => amounts.get(figure) ?? 0)
}

/** The units that are not zero, by name: `{ image: 2, audio_second: 61.5 }`. */
export function unitsOfFigures(of: UnitFigures): Readonly<Record<string, number>> {
  const units: Record<string, number> = {}
  for (const { unit, figure, one } of UNIT_FIGURES) {
    const amount = of[figure]
    if (amount !== 0) units[unit] = amount / one
  }
  return units
}
