/**
 * Waits until files are no longer being written, so that a partial edit is not loaded. YAML has no end mark:
 * the first half of a file may be valid YAML with fewer routes.
 */
import { statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { readText } from '../load-config.js'

/** A file is read when it has not changed for this time. */
const QUIET_MS = 50
/** The same for a file that looks incomplete. */
const QUIET_IF_CUT_MS = 700
/** A file that changes continuously is read after this time. */
const MAX_WAIT_MS = 2_000

/**
 * Resolves when the files have stopped changing, or after two seconds. `before` maps each path to its last
 * text.
 */
export async function untilWritten(before: ReadonlyMap<string, string>): Promise<void> {
  const deadlineMs = Date.now() + MAX_WAIT_MS
  for (;;) {
    const waitMs = Math.max(0, ...[...before].map(([path, text]) => remainingMs(path, text)))
    if (waitMs === 0 || Date.now() + waitMs > deadlineMs) return
    await delay(waitMs)
  }
}

function remainingMs(path: string, before: string): number {
  const changedAtMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs
  if (changedAtMs === undefined) return 0
  const ageMs = Date.now() - changedAtMs
  // The clock of a file server may be ahead of this one.
  if (ageMs < -QUIET_MS || ageMs >= QUIET_IF_CUT_MS) return 0
  const text = readText(path)
  const quietMs = text !== null && looksCut(text, before) ? QUIET_IF_CUT_MS : QUIET_MS
  return Math.max(0, Math.ceil(quietMs - ageMs))
}

/**
 * Whether the text may be incomplete: it is the start of the previous text, or lacks its final line break.
 */
function looksCut(text: string, before: string): boolean {
  if (text === '') return true
  if (text.length < before.length && before.startsWith(text)) return true
  return before.endsWith('\n') && !text.endsWith('\n')
}
