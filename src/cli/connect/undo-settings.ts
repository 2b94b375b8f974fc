/**
 * What a settings file had before `sluice connect --write`: the former text byte for byte if nothing else has
 * changed since, else that text with the later changes. Pure.
 */
import { applyPatch, structuredPatch } from 'diff'
import {
  hasPlace,
  isBare,
  isSameText,
  withoutPlaces,
  type OwnFile,
} from '../../config/connect/own-settings.js'
import { mergeSettings } from '../../config/connect/merge-settings.js'
import { SettingsError } from '../../config/connect/settings-error.js'

/** Unchanged lines around a later change that have to be in the former text, too; the first that fits. */
const CONTEXTS = [3, 2, 1]

/**
 * The text without the settings of Sluice; null if the file has nothing else, and is removed. `former` is the
 * text before them, or null for a file that did not exist. Throws `SettingsError`.
 */
export function undoSettings(file: OwnFile, text: string, former: string | null): string | null {
  // Refuses a text that its format cannot be read from.
  mergeSettings({ ...file, settings: {}, initial: {} }, text)
  if (former === null) {
    const rest = withoutPlaces(file, text)
    return isBare(file, rest) ? null : rest
  }
  const left = withoutPlaces(withInitial(file, former), text)
  const before = withoutPlaces(file, former)
  if (isSameText(file.format, before, left)) return former
  if (before === former) return left
  for (const context of CONTEXTS) {
    const later = applyPatch(former, structuredPatch('', '', before, left, '', '', { context }))
    if (later !== false) return later
  }
  throw new SettingsError('has changed since at the same places: compare it with the former file')
}

/** The file with its first members that the former text lacks. */
function withInitial(file: OwnFile, former: string): OwnFile {
  const added = Object.keys(file.initial).filter((name) => !hasPlace(file.format, former, [name]))
  const places = added.map((name) => ({ path: [name], entry: null, hasAddress: false }))
  return { ...file, places: [...file.places, ...places] }
}
