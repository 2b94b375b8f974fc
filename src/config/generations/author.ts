/**
 * The author of a change of the configuration: a line `# author: ada@example.com` near the start of the file,
 * else the variable of the deployment, else the owner of the file.
 */
import { ownerOf } from '../../base/file-access.js'
import type { Env } from '../load-config.js'

/** The variable in which a deployment names the author of what it starts with. */
const VARIABLE = 'SLUICE_CONFIG_AUTHOR'
const LINE = /^#[ \t]*author:[ \t]*(\S[^\r\n]{0,199})/im
/** Characters of the file that are searched for the line. */
const SEARCHED = 2_000

/** The author of the file; `env` only at the start, when it is that of the deployment. */
export function authorOf(path: string, text: string, env: Env = {}): string {
  const named = LINE.exec(text.slice(0, SEARCHED))?.[1]?.trim()
  const given = env[VARIABLE]?.trim().slice(0, 200) ?? ''
  return named ?? (given === '' ? ownerOf(path) : given)
}
