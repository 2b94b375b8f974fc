/**
 * Loads Lua scripts from `../scripts` when the program starts, and runs them by their hash.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Cluster, Redis } from 'ioredis'
import { programFile } from '../../../config/package-file.js'

/** A Lua script. All gateways send the same text, so a Redis server finds it by its hash (`EVALSHA`). */
export interface Script {
  readonly lua: string
  /** SHA-1 of the text, in hex, as Redis computes it. */
  readonly sha: string
}

/** An argument of a command. */
export type Argument = string | number | Buffer

/** The parameters of a script or command. */
export interface ScriptParameters {
  /** The Redis keys that it reads or changes; all of one slot. */
  readonly keys: readonly string[]
  readonly args: readonly Argument[]
}

const FOLDER = programFile('store/redis/scripts/')

/**
 * Joins files to a script: the last file uses functions of those before it.
 * `names` are paths below `scripts` without `.lua`. Throws if a file does not exist.
 */
export function loadScript(...names: readonly string[]): Script {
  const lua = names.map((name) => readFileSync(new URL(`${name}.lua`, FOLDER), 'utf8')).join('\n')
  return { lua, sha: createHash('sha1').update(lua).digest('hex') }
}

/** Commands that are run in one step, if hashes of the same slot are unchanged since they were read. */
export interface GuardedChange {
  /** The fields of hashes, each with the values that it may have; `''` is none. */
  readonly if: readonly (readonly [key: string, field: string, ...allowed: string[]])[]
  readonly run: readonly (readonly [command: string, key: string, ...args: string[]])[]
}

/** Makes changes with their audit entries; see `guarded`. */
export const COMPARE_AND_SET = loadScript('keys/leave-audit-entries', 'keys/compare-and-set')

/** The parameters of `COMPARE_AND_SET`, without those of audit entries. */
export function guarded(...changes: readonly GuardedChange[]): ScriptParameters {
  const keys = new Set<string>()
  for (const { if: conditions, run } of changes) {
    for (const [key] of conditions) keys.add(key)
    for (const [command, key] of run) if (command !== 'PUBLISH') keys.add(key)
  }
  return { keys: [...keys], args: [JSON.stringify(changes)] }
}

/**
 * Runs a script by its hash, and by its text if the server does not have it; or a command by its name.
 * Rejects with ioredis's error.
 */
export async function evaluate(
  client: Redis | Cluster,
  script: Script | string,
  { keys, args }: ScriptParameters,
): Promise<unknown> {
  if (typeof script === 'string') return client.call(script, [...keys, ...args])
  const { lua, sha } = script
  const parameters = [keys.length, ...keys, ...args]
  return client.call('evalsha', [sha, ...parameters]).catch((error: unknown) => {
    if (!messageOf(error).startsWith('NOSCRIPT')) throw error
    return client.call('eval', [lua, ...parameters])
  })
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
