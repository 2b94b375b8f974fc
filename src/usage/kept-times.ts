/** From which time on the ledger has everything that was used, by its retention and that of the archive. */
import { DAY_MS } from '../base/time-units.js'
import type { Config } from '../config/config.js'
import type { Ledger } from '../store/ledger.js'

/** Times in ms since 1970; what is older may have been removed. */
export interface KeptTimes {
  readonly entriesFromMs: number
  readonly sumsFromMs: number
}

/** From this share of the ledger's memory on, entries may have left before their age. */
const MAY_HAVE_LEFT = 0.5

/** What the store and the archive have; `ofStore`: the store alone, while the archive is away. */
export async function keptTimes(
  ledger: Pick<Ledger, 'memory' | 'archive'>,
  { ledger: settings, archive }: Pick<Config, 'ledger' | 'archive'>,
  { nowMs, ofStore }: { readonly nowMs: number; readonly ofStore: boolean },
): Promise<KeptTimes> {
  const before = (days: number): number => nowMs - days * DAY_MS
  // A day leaves as a whole.
  const sumsFromMs = Math.ceil(before(settings.daysDays) / DAY_MS) * DAY_MS + DAY_MS
  const entriesFromMs = before(settings.keepDays)
  const progress = archive === null ? null : await ledger.archive.progress()
  if (archive !== null && progress !== null && progress.hotFromMs > 0) {
    if (ofStore) return { sumsFromMs, entriesFromMs: progress.hotFromMs }
    // What was removed before there was an archive is in neither.
    const first = progress.sumsFromMs > 0 ? progress.sumsFromMs : Infinity
    return {
      sumsFromMs: Math.max(before(archive.sumsDays), Math.min(sumsFromMs, first)),
      entriesFromMs: Math.max(before(archive.keepDays), Math.min(entriesFromMs, first)),
    }
  }
  const memory = await ledger.memory({ max: settings.maxMemory, keepDays: settings.keepDays })
  const mayHaveLeft =
    memory !== null && memory.maxBytes !== null && memory.usedBytes > MAY_HAVE_LEFT * memory.maxBytes
  return {
    sumsFromMs,
    entriesFromMs: mayHaveLeft ? Math.max(entriesFromMs, memory.oldestAtMs ?? nowMs) : entriesFromMs,
  }
}
