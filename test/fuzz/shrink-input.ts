/**
 * Reduces a failing input: removes text, larger parts first, as long as it fails in the same way.
 */
import type { Input } from './fuzz-input.js'

/** Maximum number of smaller inputs that are tried. */
const TRIES = 4000

/** The smallest input found for which `fails` returns true. */
export function shrink(input: Input, fails: (smaller: Input) => boolean): Input {
  let best = 'cuts' in input && fails({ ...input, cuts: [] }) ? { ...input, cuts: [] } : input
  // Both forms of a reply would have to be reduced in the same way.
  if (best.kind === 'pair') return best
  let tries = 0
  for (let size = best.text.length >> 1; size >= 1 && tries < TRIES; size >>= 1) {
    for (let at = 0; at < best.text.length && tries < TRIES;) {
      const text: string = best.text.slice(0, at) + best.text.slice(at + size)
      const smaller: Input = { ...best, text }
      tries += 1
      if (fails(smaller)) best = smaller
      else at += size
    }
  }
  return best
}
