/**
 * Writes the settings files of a client: shows the differences, needs an answer, keeps each former file
 * beside the new one and replaces it in one step. Undoing restores the former file.
 */
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { createTwoFilesPatch } from 'diff'
import { codeWithAdvice } from '../../base/file-access.js'
import { readBoundedFile, whyUnreadable } from '../../config/bounded-file.js'
import type { Client, ClientFile } from '../../config/client-settings.js'
import { hideSecrets } from '../../hide-secrets.js'
import { mergeSettings } from '../../config/connect/merge-settings.js'
import { gatewaysIn, isOnlyOf, ownFiles, ownPlaces, type OwnFile } from '../../config/connect/own-settings.js'
import { undoSettings } from './undo-settings.js'
import { SettingsError } from '../../config/connect/settings-error.js'

/** The end of the name of a former file. */
export const BACKUP = '.sluice-backup'
const MAX_FILE_BYTES = 4 * 1024 * 1024

/** A file with its former and its new text. */
export interface FileChange {
  /** As the table of clients names it. */
  readonly shown: string
  /** The file itself, which a link at the path may name. */
  readonly path: string
  /** Null: there is no file yet. */
  readonly former: string | null
  /** Null: the file is removed. */
  readonly text: string | null
  /** What happens to the file of the former text: it is made, stays unchanged, or is removed. */
  readonly backup: 'made' | 'kept' | 'removed'
}

/**
 * The changes of these files; none if all of them have the settings. The first former file of each is kept: a
 * file that `connect` has changed before keeps its backup, and a file that only has settings for this
 * gateway needs none. Throws `SettingsError`.
 */
export function changesOf(files: readonly ClientFile[], url: string): FileChange[] {
  const changes = files.map((file): FileChange => {
    const { path, former } = formerText(realPath(file.path))
    const text = withReason(path, () => mergeSettings(file, former))
    const isNew =
      former === null ||
      isOnlyOf({ ...file, initial: file.initial ?? {}, places: ownPlaces(file.path) }, former, url)
    return {
      shown: file.path,
      path,
      former,
      text,
      backup: isNew || isPointed(file, path, former) ? 'kept' : 'made',
    }
  })
  return changes.some(({ former, text }) => text !== former) ? changes : []
}

/** Whether a backup exists that belongs to the settings in the file. */
function isPointed(file: ClientFile, path: string, text: string): boolean {
  if (!existsSync(path + BACKUP)) return false
  return gatewaysIn({ format: file.format, places: ownPlaces(file.path) }, text).length > 0
}

/** What undoing the settings of a client would change, and the gateways that its files name else. */
interface Undoing {
  readonly changes: readonly FileChange[]
  /** Set if files without a backup name other gateways than `url`. */
  readonly others: readonly string[]
}

/** The changes that restore the files of a client. Throws `SettingsError`. */
export function undoingOf(client: Client, url: string): Undoing {
  const files = ownFiles(client).flatMap((file) => {
    const { path, former: text } = formerText(realPath(file.path))
    return text === null ? [] : [{ file, path, text, before: backupText(path) }]
  })
  const gateways = files.flatMap(({ file, text }) => gatewaysIn(file, text))
  const isHere = gateways.includes(url)
  const changes = files.flatMap(({ file, path, text, before }): FileChange[] => {
    if (before === null && !isHere) return []
    const undone = withReason(path, () => undoSettings(file, text, before))
    const backup = before === null || undone === before || !hasOthers(file, undone) ? 'removed' : 'kept'
    return undone === text && backup === 'kept'
      ? []
      : [{ shown: file.path, path, former: text, text: undone, backup }]
  })
  return { changes, others: changes.length === 0 ? gateways : [] }
}

/** Whether other clients are pointed at a gateway in the same file. */
function hasOthers({ format, path }: OwnFile, text: string | null): boolean {
  return text !== null && gatewaysIn({ format, places: ownPlaces(path) }, text).length > 0
}

function backupText(path: string): string | null {
  return existsSync(path + BACKUP) ? formerText(path + BACKUP).former : null
}

function withReason<Result>(path: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    throw new SettingsError(`the file ${path} ${error.message}; nothing was written`)
  }
}

/** `HOME` is what a shell means by `~`, also where it is not the home of the user's entry. */
function realPath(shown: string): string {
  const { HOME: home = '' } = process.env
  return resolve(shown.startsWith('~/') ? join(home === '' ? homedir() : home, shown.slice(2)) : shown)
}

function formerText(named: string): { path: string; former: string | null } {
  const exists = existsSync(named)
  if (!exists && existsSync(dirname(named)) && isLink(named)) {
    throw new SettingsError(`the file ${named} is a link to a file that does not exist; nothing was written`)
  }
  if (!exists) return { path: named, former: null }
  const path = realpathSync(named)
  try {
    const bytes = readBoundedFile(path, MAX_FILE_BYTES)
    return { path, former: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch {
    const why = whyUnreadable(path, MAX_FILE_BYTES)
    throw new SettingsError(`the file ${path} ${why}; nothing was written`)
  }
}

const NO_FILE = '/dev/null'

function isLink(path: string): boolean {
  return statSync(dirname(path)).isDirectory() && lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

/** The changes as a unified diff. Secrets that a file contains are hidden. */
export function diffText(changes: readonly FileChange[]): string {
  const changed = changes.filter(({ former, text }) => text !== former)
  const parts = changed.map(({ shown, former, text }) => {
    const [before, after] = [former === null ? NO_FILE : shown, text === null ? NO_FILE : shown]
    const patch = createTwoFilesPatch(before, after, former ?? '', text ?? '', '', '', { context: 3 })
    return patch.slice(patch.indexOf('---')).replaceAll(/^(---|\+\+\+) (.*)\t$/gm, '$1 $2')
  })
  return hideSecrets(parts.join('').trimEnd())
}

/** The answer at the terminal. */
export async function isConfirmed(count: number): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const what = count === 1 ? 'this file' : `these ${String(count)} files`
    return /^y(es)?$/i.test((await terminal.question(`Write ${what}? [y/N] `)).trim())
  } finally {
    terminal.close()
  }
}

/**
 * Writes the files, all or none: a file keeps its mode; a new one is private to the user. Throws
 * `SettingsError`.
 */
export function writeFiles(changes: readonly FileChange[]): void {
  const drafts: string[] = []
  try {
    const written = changes.flatMap((change) => {
      const { path, former, text, backup } = change
      if (former !== null && (text !== former || backup === 'made')) refuseReadOnly(path)
      mkdirSync(dirname(path), { recursive: true })
      if (backup === 'made') copyFileSync(path, path + BACKUP)
      if (text === null || text === former) return []
      const draft = `${path}.${randomUUID().slice(0, 8)}.draft`
      drafts.push(draft)
      writeFileSync(draft, text, { mode: 0o600 })
      if (former !== null) chmodSync(draft, statSync(path).mode & 0o777)
      return [{ draft, path }]
    })
    for (const { draft, path } of written) renameSync(draft, path)
    for (const { path, text, backup } of changes) {
      if (text === null) rmSync(path)
      if (backup === 'removed') rmSync(path + BACKUP, { force: true })
    }
  } catch (error) {
    for (const draft of drafts) rmSync(draft, { force: true })
    if (error instanceof SettingsError) throw error
    const { path = '' } = error instanceof Error ? (error as NodeJS.ErrnoException) : {}
    throw new SettingsError(
      `the file ${path} cannot be written (${codeWithAdvice(error)}); nothing was written`,
    )
  }
}

/** Replacing a file needs rights in its folder alone, but a file is read-only for a reason. */
function refuseReadOnly(path: string): void {
  const isReadOnly = (statSync(path).mode & 0o222) === 0
  if (isReadOnly) throw new SettingsError(`the file ${path} is read-only; nothing was written`)
}
