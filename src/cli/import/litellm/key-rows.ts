/**
 * Reads the rows of LiteLLM's tables of keys, teams, organizations and users as JSON lines: `SELECT
 * to_jsonb(…)` of its database, or the keys of `GET /key/list`.
 */
import { readFileSync, statSync } from 'node:fs'
import { isObject, type JsonObject } from '../../../base/json.js'
import { codeWithAdvice } from '../../../base/file-access.js'
import { InvalidSource } from '../source.js'

const MAX_FILE_BYTES = 256 * 1024 * 1024

/** A line of the file, with its number. */
export interface KeyRow {
  readonly line: number
  readonly value: JsonObject
}

/** The rows of the file by kind. */
export interface KeyRows {
  readonly keys: readonly KeyRow[]
  readonly teams: readonly KeyRow[]
  readonly organizations: readonly KeyRow[]
  readonly users: readonly KeyRow[]
  /** Rows of no known kind. */
  readonly others: number
  /** Number of members without a meaning here. */
  readonly unknownMembers: number
}

/** Throws `InvalidSource` with the line, never with a value. */
export function readKeyRows(file: string): KeyRows {
  let text: string
  try {
    if (statSync(file).size > MAX_FILE_BYTES) throw new InvalidSource(`${file}:1:1: is larger than 256 MiB`)
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof InvalidSource) throw error
    throw new InvalidSource(`${file}:1:1: cannot be read (${codeWithAdvice(error)})`)
  }
  const found = {
    keys: [] as KeyRow[],
    teams: [] as KeyRow[],
    organizations: [] as KeyRow[],
    users: [] as KeyRow[],
    others: 0,
    unknownMembers: 0,
  }
  text.split('\n').forEach((line, at) => {
    if (line.trim() === '') return
    const row = { line: at + 1, value: objectIn(line, `${file}:${at + 1}:1`) }
    const kind = kindOf(row.value)
    if (kind === 'keys') assertDigest(row.value, `${file}:${at + 1}:1`)
    if (kind === null) found.others += 1
    else {
      found[kind].push(row)
      found.unknownMembers += Object.keys(row.value).filter((name) => !KNOWN.has(name)).length
    }
  })
  return found
}

/** Members that the documents or the report take into account. */
const KNOWN: ReadonlySet<string> = new Set(
  (
    'token key_alias key_name team_id team_alias organization_id organization_alias user_id user_email ' +
    'user_role models max_budget budget_duration spend litellm_budget_table rpm_limit tpm_limit tpd_limit ' +
    'max_parallel_requests expires blocked metadata members_with_roles soft_budget model_max_budget ' +
    'model_rpm_limit model_tpm_limit aliases allowed_routes permissions router_settings budget_id'
  ).split(' '),
)

function objectIn(line: string, place: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw new InvalidSource(`${place}: must be one JSON object a line`)
  }
  if (!isObject(value)) throw new InvalidSource(`${place}: must be a JSON object`)
  return value
}

function kindOf(value: JsonObject): 'keys' | 'teams' | 'organizations' | 'users' | null {
  if (value['token'] !== undefined) return 'keys'
  const hasTeam = value['members_with_roles'] !== undefined || value['team_alias'] !== undefined
  if (value['team_id'] !== undefined && hasTeam) return 'teams'
  if (value['organization_id'] !== undefined && value['organization_alias'] !== undefined)
    return 'organizations'
  return value['user_id'] === undefined ? null : 'users'
}

function assertDigest({ token }: JsonObject, place: string): void {
  if (typeof token === 'string' && /^[0-9a-fA-F]{64}$/.test(token)) return
  throw new InvalidSource(
    `${place}: "token" must be the SHA-256 of the key (64 hex digits), as in LiteLLM's database, not the key`,
  )
}
