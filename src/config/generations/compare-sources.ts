/** What the texts that a generation was made from have in common with the files, and with those of another generation. */
import { basename } from 'node:path'
import { readText, type ConfigSources } from '../load.js'
import { ownerOf } from './file-author.js'
import type { Author } from './history.js'

/** All files of a configuration, absolute. */
export function filesOf({ path, files }: ConfigSources): string[] {
  return [path, ...Object.keys(files)]
}

/** Whether the files still hold what was read: nothing is parsed if nothing has changed. */
export function isSame(sources: ConfigSources): boolean {
  // A missing file was noted as an empty one.
  if ((readText(sources.path) ?? '') !== sources.text) return false
  return Object.entries(sources.files).every(([file, text]) => readText(file) === text)
}

/** Whether the files other than the configuration and its catalogue still hold what was read. */
export function hasSameSecrets({ files, catalogue }: ConfigSources): boolean {
  return Object.entries(files).every(
    ([file, text]) => file === catalogue?.path || readText(file) === text,
  )
}

/** Whether two generations were made from the same texts. */
export function isEqual(a: ConfigSources, b: ConfigSources): boolean {
  const names = Object.keys(a.files)
  return (
    a.text === b.text &&
    names.length === Object.keys(b.files).length &&
    names.every((name) => a.files[name] === b.files[name])
  )
}

/** The texts of the configuration and its catalogue, by path. */
export function textsOf({ path, text, catalogue }: ConfigSources): Map<string, string> {
  const texts = new Map([[path, text]])
  if (catalogue !== null) texts.set(catalogue.path, catalogue.text)
  return texts
}

/** Who changed which files between two looks. */
export function changeOf(former: ConfigSources, next: ConfigSources): Author {
  const files = new Set([...filesOf(former), ...filesOf(next)])
  const changed = [...files].filter((file) => textIn(former, file) !== textIn(next, file))
  const [first] = changed
  if (first === undefined) return { author: ownerOf(next.path), reason: 'SIGHUP took the files' }
  const names = changed.map((file) => basename(file)).join(', ')
  return { author: ownerOf(first), reason: `${names} changed` }
}

function textIn({ path, text, files }: ConfigSources, file: string): string | null {
  return file === path ? text : (files[file] ?? null)
}
