/**
 * Compares the texts that a generation was built from with the files on disk, and with the texts of another
 * generation.
 */
import { basename } from 'node:path'
import { readText, type ConfigSources } from '../load-config.js'
import { ownerOf } from './file-author.js'
import type { Author } from './history.js'

/** All files of a configuration, absolute. */
export function filesOf({ path, files }: ConfigSources): string[] {
  return [path, ...Object.keys(files)]
}

/** The files whose changes may lead to a new generation: those read last, and those that are in force. */
export function watchedFiles(last: ConfigSources, inForce: ConfigSources): string[] {
  return [...new Set([...filesOf(last), ...filesOf(inForce)])]
}

/** Whether the files are unchanged; avoids parsing them. */
export function isSame(sources: ConfigSources): boolean {
  // A missing file counts as an empty one.
  if ((readText(sources.path) ?? '') !== sources.text) return false
  return Object.entries(sources.files).every(([file, text]) => readText(file) === text)
}

/** Whether the files other than the configuration and its catalogue are unchanged. */
export function hasSameSecrets({ files, catalogue }: ConfigSources): boolean {
  return Object.entries(files).every(
    ([file, text]) => file === catalogue?.path || readText(file) === text,
  )
}

/** Whether two generations were built from the same texts. */
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

/** The author of the differences between two versions of the files, and the files that differ. */
export function changeOf(former: ConfigSources, next: ConfigSources): Author {
  const files = new Set([...filesOf(former), ...filesOf(next)])
  const changed = [...files].filter((file) => textIn(former, file) !== textIn(next, file))
  const [first] = changed
  if (first === undefined)
    return { author: ownerOf(next.path), reason: 'files reloaded after SIGHUP' }
  const names = changed.map((file) => basename(file)).join(', ')
  return { author: ownerOf(first), reason: `${names} changed` }
}

function textIn({ path, text, files }: ConfigSources, file: string): string | null {
  return file === path ? text : (files[file] ?? null)
}
