/**
 * Writes the settings files of a client: shows the differences, needs an answer, keeps each former file
 * beside the new one and replaces it in one step.
 */
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { createTwoFilesPatch } from 'diff'
import { readBoundedFile, whyUnreadable } from '../../config/bounded-file.js'
import type { ClientFile } from '../../config/client-settings.js'
import { hideSecrets } from '../../hide-secrets.js'
import { mergeSettings } from '../../config/connect/merge-settings.js'
import { SettingsError } from '../../config/connect/settings-error.js'

/** The end of the name of a former file. */
export const BACKUP = '.sluice-backup'
const MAX_FILE_BYTES = 4 * 1024 * 1024

/** A file with its former and its new text. */
interface FileChange {
  /** As the table of clients names it. */
  readonly shown: string
  /** The file itself, which a link at the path may name. */
  readonly path: string
  /** Null: there is no file yet. */
  readonly former: string | null
  readonly text: string
}

/** The changes of these files; those that need none are left out. Throws `SettingsError`. */
export function changesOf(files: readonly ClientFile[]): FileChange[] {
  return files.flatMap((file) => {
    const { path, former } = formerText(realPath(file.path))
    try {
      const text = mergeSettings(file, former)
      return text === former ? [] : [{ shown: file.path, path, former, text }]
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error
      throw new SettingsError(`the file ${path} ${error.message}; nothing was written`)
    }
  })
}

/** `HOME` is what a shell means by `~`, also where it is not the home of the user's entry. */
function realPath(shown: string): string {
  const { HOME: home = '' } = process.env
  return resolve(shown.startsWith('~/') ? join(home === '' ? homedir() : home, shown.slice(2)) : shown)
}

function formerText(named: string): { path: string; former: string | null } {
  const exists = statSync(named, { throwIfNoEntry: false }) !== undefined
  if (!exists) return { path: named, former: null }
  const path = realpathSync(named)
  try {
    return { path, former: readBoundedFile(path, MAX_FILE_BYTES).toString('utf8') }
  } catch {
    const why = whyUnreadable(path, MAX_FILE_BYTES)
    throw new SettingsError(`the file ${path} ${why}; nothing was written`)
  }
}

/** The changes as a unified diff. Secrets that a file contains are hidden. */
export function diffText(changes: readonly FileChange[]): string {
  const parts = changes.map(({ shown, former, text }) => {
    const before = former === null ? '/dev/null' : shown
    const patch = createTwoFilesPatch(before, shown, former ?? '', text, '', '', { context: 3 })
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

/** Writes the files. A file keeps its mode; a new one is private to the user. */
export function writeFiles(changes: readonly FileChange[]): void {
  for (const { path, former, text } of changes) {
    mkdirSync(dirname(path), { recursive: true })
    const draft = `${path}.${randomUUID().slice(0, 8)}.draft`
    writeFileSync(draft, text, { mode: 0o600 })
    if (former !== null) {
      const mode = statSync(path).mode & 0o777
      copyFileSync(path, path + BACKUP)
      chmodSync(path + BACKUP, mode)
      chmodSync(draft, mode)
    }
    renameSync(draft, path)
  }
}
