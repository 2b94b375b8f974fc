/**
 * Lua scripts: read from `../scripts` once, when the program starts, and named by their hash.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** A Lua script. All gateways send the same text, so a Redis server finds it by its hash (`EVALSHA`). */
export interface Script {
  readonly lua: string
  /** SHA-1 of the text, in hex, as Redis computes it. */
  readonly sha: string
}

const FOLDER = new URL('../scripts/', import.meta.url)

/**
 * The script of these files, one after the other: first the files with functions that the last one calls.
 * `names` are paths below `scripts` without `.lua`. Throws where a file does not exist.
 */
export function loadScript(...names: readonly string[]): Script {
  const lua = names.map((name) => readFileSync(new URL(`${name}.lua`, FOLDER), 'utf8')).join('\n')
  return { lua, sha: createHash('sha1').update(lua).digest('hex') }
}
