/**
 * The files of new keys' secrets (`secret_file`): the permitted places, and how they are written. A document
 * may have another author than the runner of the command, so it names only new files, and those of earlier
 * runs, in the folder of the documents.
 */
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { hasValidForm } from '../../accounts/key-secret.js'
import type { DocumentFault } from '../../control/admin/documents.js'
import { isObject } from '../../base/json.js'
import { codeWithAdvice } from '../../base/file-access.js'
import type { FileDocument } from './read-files.js'

/** The file of a new key's secret. */
export interface SecretFile {
  /** `key ci of research` */
  readonly name: string
  /** Its place. */
  readonly path: string
  /** Its path until the key has been made. */
  readonly ownPath: string
  readonly document: FileDocument
}

/** The file for the secret of a key; null if its document names none. */
function secretFileOf({ value, folder }: FileDocument): string | null {
  const spec = isObject(value) && isObject(value['spec']) ? value['spec'] : {}
  const { secret_file: target } = spec
  return typeof target === 'string' ? resolve(folder, target) : null
}

/**
 * A fault of each document whose secret would be outside the folder of the documents, or replace that of an
 * earlier one.
 */
export function secretFileFaults(documents: readonly FileDocument[]): DocumentFault[] {
  const taken = new Set<string>()
  return documents.flatMap((document, index) => {
    const path = secretFileOf(document)
    if (path === null) return []
    const fault = (message: string): DocumentFault => {
      return { index, path: ['spec', 'secret_file'], atKey: false, message }
    }
    const place = realPlace(path)
    if (!isBelow(place, document.root)) return [fault(outsideText(document))]
    const isShared = taken.has(place)
    taken.add(place)
    const message = 'is also the secret_file of an earlier key: each key needs a file of its own'
    return isShared ? [fault(message)] : []
  })
}

/** A fault of each of these documents whose file exists and is not that of an earlier secret. */
export function takenFileFaults(
  documents: readonly FileDocument[],
  indexes: readonly number[],
): DocumentFault[] {
  return indexes.flatMap((index) => {
    const document = documents[index]
    const path = document === undefined ? null : secretFileOf(document)
    const message = path === null ? null : takenBy(path)
    return message === null ? [] : [{ index, path: ['spec', 'secret_file'], atKey: false, message }]
  })
}

function outsideText({ root }: FileDocument): string {
  return `must be in the folder of the documents ("${root}") or below it`
}

/** The path without symbolic links in its folder, which may not exist yet. */
function realPlace(path: string): string {
  const folder = dirname(path)
  const missing = [basename(path)]
  for (let at = folder; ; at = dirname(at)) {
    try {
      return join(realpathSync(at), ...missing)
    } catch {
      if (dirname(at) === at) return path
      missing.unshift(basename(at))
    }
  }
}

function isBelow(place: string, root: string): boolean {
  const path = relative(realPlace(join(resolve(root), '.')), place)
  return path !== '' && path !== '..' && !path.startsWith(`..${sep}`)
}

/** Why the file must not be written; null if it does not exist, or is a secret that `apply` wrote. */
function takenBy(path: string): string | null {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found === undefined) return null
    if (found.isDirectory()) return 'is a folder: name a file'
    const isSmall = found.isFile() && found.size <= MAX_SECRET_BYTES
    if (isSmall && hasValidForm(readFileSync(path, 'utf8').trim())) return null
  } catch (error) {
    return `cannot be written (${codeWithAdvice(error)}): name another file`
  }
  return 'is an existing file without the secret of a key, which is not replaced: name another file or remove it'
}

/** More than a secret with a line end. */
const MAX_SECRET_BYTES = 256

/** Throws if the folder has become a link to another one since the plan. */
function assertInside(path: string, document: FileDocument): void {
  if (!isBelow(realPlace(path), document.root)) throw new Error(outsideText(document))
}

/**
 * Writes the secret to a file of this run beside its place: another run may make the key with these
 * documents, and the place then has the secret of that run. Null if the document names no file. Throws if it
 * cannot be written.
 */
export function writeSecret(
  document: FileDocument,
  name: string,
  { id, secret }: { readonly id: string; readonly secret: string | null },
): SecretFile | null {
  const path = secretFileOf(document)
  if (path === null || secret === null) return null
  const ownPath = `${path}.${id}.new`
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  assertInside(path, document)
  try {
    writeFileSync(ownPath, secret, { mode: 0o600, flag: 'wx' })
    chmodSync(ownPath, 0o600)
  } catch (error) {
    // A full disk leaves a part. The name has the id of a new key, so the file is none of another run.
    rmSync(ownPath, { force: true })
    throw error
  }
  return { name, path, ownPath, document }
}

/** Moves the secret of a key that was made to its place; why it cannot be moved, or null. */
export function placeSecret({ path, ownPath, document }: SecretFile): string | null {
  try {
    // It may have been made since the plan.
    if (takenBy(path) !== null) return 'EEXIST'
    assertInside(path, document)
    renameSync(ownPath, path)
    return null
  } catch (error) {
    return codeWithAdvice(error)
  }
}
