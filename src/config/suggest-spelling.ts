/** Suggests the correct spelling of a misspelt word. */

/** The candidate that is at most two edits (one for short words) away, or null. */
export function nearest(word: string, candidates: Iterable<string>): string | null {
  let best: string | null = null
  let bestDistance = word.length <= 4 ? 2 : 3
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= bestDistance) continue
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** ` (did you mean "…"?)` if a candidate is similar to the word, else empty. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  return suggestionText(nearest(word, candidates))
}

/** The same text for a known suggestion; empty for null. */
export function suggestionText(suggestion: string | null): string {
  return suggestion === null ? '' : ` (did you mean "${suggestion}"?)`
}

/** Edits: insertion, deletion, replacement, and swapping two neighbours. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  let before: number[] = []
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const best = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + (same ? 0 : 1),
      )
      next.push(swapped ? Math.min(best, (before[j - 2] ?? 0) + 1) : best)
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}
