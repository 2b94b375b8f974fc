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
