/**
 * The file with the tokens of the gateways that the user has signed in to, readable by the user alone:
 * `$XDG_CONFIG_HOME/sluice/login.json`. A lock beside it lets one process at a time renew a token, since a
 * refresh token works once.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { isObject, numberOf, stringOf } from '../../base/json.js'

/** The sign-in at one gateway. */
export interface LoginEntry {
  readonly email: string
  readonly accessToken: string
  readonly refreshToken: string
  /** When the access token expires, and from when on it is renewed, in ms since 1970. */
  readonly expiresAtMs: number
  readonly renewAtMs: number
}

/** By the address of the gateway. */
export type LoginEntries = ReadonlyMap<string, LoginEntry>

/** A lock that is older belongs to a process that has ended. */
const STALE_MS = 30_000
const WAIT_MS = 40_000
const RETRY_MS = 50

function folder(): string {
  const { XDG_CONFIG_HOME: configured = '' } = process.env
  return join(configured === '' ? join(homedir(), '.config') : configured, 'sluice')
}

/** The entries; none if there is no file, or its content is not valid. */
export function readLogins(): LoginEntries {
  const entries = new Map<string, LoginEntry>()
  let value: unknown
  try {
    value = JSON.parse(readFileSync(join(folder(), 'login.json'), 'utf8'))
  } catch {
    return entries
  }
  for (const [url, entry] of Object.entries(isObject(value) ? value : {})) {
    const read = entryIn(entry)
    if (read !== null) entries.set(url, read)
  }
  return entries
}

/** Replaces the entry of a gateway; null removes it. Only with the lock. */
export function writeLogin(url: string, entry: LoginEntry | null): void {
  const entries = new Map(readLogins())
  if (entry === null) entries.delete(url)
  else entries.set(url, entry)
  const path = join(folder(), 'login.json')
  const shown = [...entries].map(([name, { email, accessToken, refreshToken, expiresAtMs, renewAtMs }]) => {
    const times = { expires_at_ms: expiresAtMs, renew_at_ms: renewAtMs }
    return [name, { email, access_token: accessToken, refresh_token: refreshToken, ...times }] as const
  })
  const temporary = `${path}.${process.pid}`
  writeFileSync(temporary, `${JSON.stringify(Object.fromEntries(shown), undefined, 2)}\n`, { mode: 0o600 })
  renameSync(temporary, path)
}

/** Runs the work while no other process changes the file. Rejects if the lock stays taken. */
export async function withLock<T>(work: () => Promise<T>): Promise<T> {
  mkdirSync(folder(), { recursive: true, mode: 0o700 })
  const lock = join(folder(), 'login.json.lock')
  const untilMs = Date.now() + WAIT_MS
  while (!tookLock(lock)) {
    if (Date.now() > untilMs) throw new Error(`another process holds ${lock}: remove it if there is none`)
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
  try {
    return await work()
  } finally {
    rmSync(lock, { force: true })
  }
}

function tookLock(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if (!isObject(error) || error['code'] !== 'EEXIST') throw error
    const stat = statSync(lock, { throwIfNoEntry: false })
    if (stat !== undefined && Date.now() - stat.mtimeMs > STALE_MS) rmSync(lock, { force: true })
    return false
  }
}

function entryIn(value: unknown): LoginEntry | null {
  if (!isObject(value)) return null
  const accessToken = stringOf(value['access_token'])
  const refreshToken = stringOf(value['refresh_token'])
  if (accessToken === undefined || refreshToken === undefined) return null
  return {
    ...{ accessToken, refreshToken, email: stringOf(value['email']) ?? '' },
    expiresAtMs: numberOf(value['expires_at_ms']) ?? 0,
    renewAtMs: numberOf(value['renew_at_ms']) ?? 0,
  }
}
