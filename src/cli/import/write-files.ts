/** Writes the files of an import: all of them, or none. */
import { mkdirSync, renameSync, rmSync, writeFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { codeWithAdvice } from '../../base/file-access.js'
import { InvalidSource } from './source.js'

/** A file of the import. */
export interface OutputFile {
  readonly name: string
  readonly text: string
  /** Only its owner may read it. */
  readonly isSecret: boolean
}

/** Throws `InvalidSource` if one exists already, unless `force`, or cannot be written. */
export function writeFiles(folder: string, files: readonly OutputFile[], force: boolean): void {
  const taken = files.find(({ name }) => !force && existsSync(join(folder, name)))
  if (taken !== undefined) {
    throw new InvalidSource(`${join(folder, taken.name)}:1:1: exists already: use --force to replace it`)
  }
  const parts: { readonly part: string; readonly path: string }[] = []
  let path = folder
  try {
    mkdirSync(folder, { recursive: true })
    for (const { name, text, isSecret } of files) {
      path = join(folder, name)
      const part = `${path}.${process.pid}.new`
      parts.push({ part, path })
      writeFileSync(part, text, { mode: isSecret ? 0o600 : 0o644, flag: 'wx' })
    }
    for (const each of parts) renameSync(each.part, each.path)
  } catch (error) {
    for (const { part } of parts) rmSync(part, { force: true })
    throw new InvalidSource(`${path}:1:1: cannot be written (${codeWithAdvice(error)})`)
  }
}
