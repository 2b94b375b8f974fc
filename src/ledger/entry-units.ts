/** The column `units` of an entry: what a request used beside text tokens. Pure. */
import { unitCountsText } from '../base/unit-counts.js'
import type { TokenKind, Usage } from '../formats/chat/usage.js'

/** The kinds of tokens that have a name in the column; they are a part of the entry's tokens. */
const TOKENS = [
  ['cached_audio', 'cachedAudio'],
  ['cached_image', 'cachedImage'],
  ['input_audio', 'inputAudio'],
  ['input_image', 'inputImage'],
  ['input_video', 'inputVideo'],
  ['output_audio', 'outputAudio'],
  ['output_image', 'outputImage'],
] as const satisfies readonly (readonly [string, TokenKind])[]

/** The column for a usage; null if it has text alone. */
export function unitsText(usage: Usage): string | null {
  let counts: [string, number][] | null = null
  // Most requests have none, and get no list.
  for (const [name, kind] of TOKENS) {
    const count = usage[kind]
    if (count !== undefined && count > 0) (counts ??= []).push([name, count])
  }
  if (usage.units !== undefined) {
    counts ??= []
    for (const [unit, count] of Object.entries<number | undefined>(usage.units)) {
      if (count !== undefined) counts.push([unit, count])
    }
  }
  return counts === null ? null : unitCountsText(counts)
}
