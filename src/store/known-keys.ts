/**
 * The keys that a gateway has looked up, for an outage of the store: its processes share them in a file of
 * this machine, so that a key is known to all workers, to those of a rolling restart, and after a restart.
 *
 * The records are sealed; the secret is in the store and not on this machine. A record of an earlier run is
 * not used until this gateway has looked its key up again: the key may have been revoked in between. The file
 * may be lost at any time, and every failure is ignored after a warning.
 */
import { DAY_MS } from '../base/time-units.js'
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { createFolder } from '../base/private-files.js'
import { readAccount, readKey, writeAccount, writeKey } from './records/account-and-key-records.js'
import { connect, numberIn, textIn, type Connection, type Row } from './sqlite/driver.js'
import type { KeyLookup, Store } from './store.js'

const FILE = 'known-keys.db'
/** About 15 MB; the keys whose look-up is oldest are removed first. */
const MAX_KEYS = 20_000
/** Records of an earlier run that are older are not looked up again. */
const MAX_AGE_MS = 3_600_000
/** Time that a statement may wait for another process, which writes for less than a millisecond. */
const BUSY_MS = 5
const OPEN_BUSY_MS = 2_000
const RETRY_MS = 50
/** In sequence. */
const REPORTED_FAILURES = 10
/** Old records are removed with the first of this many writes. */
const TRIM_EVERY = 256
const SECRET_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16
const CIPHER = 'aes-256-gcm'

const SCHEMA = `
  PRAGMA busy_timeout = ${OPEN_BUSY_MS};
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = OFF;
  CREATE TABLE IF NOT EXISTS known_keys (
    name TEXT PRIMARY KEY,
    gateway TEXT NOT NULL,
    checked_ms REAL NOT NULL,
    at_ms REAL NOT NULL,
    sealed TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS known_keys_by_time ON known_keys (at_ms);
  PRAGMA busy_timeout = ${BUSY_MS};
`
const PUT =
  'INSERT OR REPLACE INTO known_keys (name, gateway, checked_ms, at_ms, sealed) VALUES (?, ?, ?, ?, ?)'
const TRIM = `DELETE FROM known_keys WHERE at_ms < ? OR name IN
  (SELECT name FROM known_keys ORDER BY at_ms DESC LIMIT -1 OFFSET ${MAX_KEYS})`

/** Options of `KnownKeys.open`. */
interface KnownKeysOptions {
  /** A folder of this machine that outlives the process. */
  readonly folder: string
  /** The id of this run of the gateway, the same for all its workers. */
  readonly gatewayId: string
  readonly store: Pick<Store, 'cache' | 'id'>
  /** Called with a message for the operator. */
  readonly warn: (message: string) => void
}

/** A look-up and its age. */
interface KnownKey {
  readonly lookup: KeyLookup
  readonly ageMs: number
}

/** Open until `close`. No method throws. */
export class KnownKeys {
  private readonly db: Connection
  private readonly gatewayId: string
  private readonly seal: KeySeal
  private readonly warn: (message: string) => void
  /** Look-ups to write, by digest; null removes one. */
  private changes = new Map<string, KeyLookup | null>()
  private isScheduled = false
  private writes = 0
  private hasWarned = false
  /** Failures since the last step that succeeded. */
  private failures = 0
  private isClosed = false

  private constructor(db: Connection, seal: KeySeal, { gatewayId, warn }: KnownKeysOptions) {
    this.db = db
    this.seal = seal
    this.gatewayId = gatewayId
    this.warn = warn
  }

  /** Null if the folder cannot be written or the store does not keep the secret. */
  static async open(options: KnownKeysOptions): Promise<KnownKeys | null> {
    const { folder, store, warn } = options
    try {
      const seal = new KeySeal(await secretOf(store), store.id)
      createFolder(folder)
      const path = join(folder, FILE)
      // SQLite would create the file with the mode of the umask.
      closeSync(openSync(path, 'a', 0o600))
      const db = connect(path)
      db.exec(SCHEMA)
      return new KnownKeys(db, seal, options)
    } catch (error) {
      warn(`keys are not shared for outages of the store: ${messageOf(error)}`)
      return null
    }
  }

  /** Records that the store has just returned this look-up. Other processes find it after this turn. */
  keep(lookup: KeyLookup): void {
    this.change(lookup.key.digest, lookup)
  }

  /** Removes a key that has changed, is revoked or does not exist. */
  forget(digest: string): void {
    this.change(digest, null)
  }

  /** The last look-up of a key by any process of this gateway; null if there is none. */
  find(digest: string): KnownKey | null {
    const change = this.changes.get(digest)
    if (change !== undefined) return change === null ? null : { lookup: change, ageMs: 0 }
    return this.attempt(() => {
      const select = this.db.prepare('SELECT * FROM known_keys WHERE name = ? AND gateway = ?')
      const row = select.get(this.seal.name(digest), this.gatewayId)
      const lookup = row === undefined ? null : this.lookupIn(row)
      if (row === undefined || lookup?.key.digest !== digest) return null
      const ageMs = monotonicMs() - numberIn(row, 'checked_ms')
      return ageMs < 0 ? null : { lookup, ageMs }
    })
  }

  /** The digests of the keys of earlier runs, the newest first: to be looked up before they are used. */
  unverified(): string[] {
    const found = this.attempt(() => {
      const select = this.db.prepare(
        'SELECT * FROM known_keys WHERE gateway <> ? AND at_ms > ? ORDER BY at_ms DESC',
      )
      return select.all(this.gatewayId, Date.now() - MAX_AGE_MS)
    })
    return (found ?? []).flatMap((row) => this.lookupIn(row)?.key.digest ?? [])
  }

  /** Writes what is left and closes the file. */
  close(): void {
    this.flush()
    this.isClosed = true
    this.attempt(() => {
      this.db.close()
      return null
    })
  }

  private change(digest: string, lookup: KeyLookup | null): void {
    if (this.isClosed) return
    this.changes.set(digest, lookup)
    if (this.isScheduled) return
    this.isScheduled = true
    setImmediate(() => this.flush())
  }

  /** Writes all changes of this turn in one transaction. */
  private flush(): void {
    this.isScheduled = false
    const changes = this.changes
    if (changes.size === 0 || this.isClosed) return
    this.changes = new Map()
    const written = this.attempt(() => {
      this.db.exec('BEGIN IMMEDIATE')
      try {
        this.write(changes)
        this.db.exec('COMMIT')
      } catch (error) {
        this.db.exec('ROLLBACK')
        throw error
      }
      return true
    })
    if (written === true) return
    // Newer changes of the same keys win. A disk that stays full must not fill the memory.
    for (const [digest, lookup] of changes) {
      if (this.changes.size >= MAX_KEYS) break
      if (!this.changes.has(digest)) this.changes.set(digest, lookup)
    }
    this.isScheduled = true
    setTimeout(() => this.flush(), RETRY_MS).unref()
  }

  private write(changes: ReadonlyMap<string, KeyLookup | null>): void {
    const put = this.db.prepare(PUT)
    const remove = this.db.prepare('DELETE FROM known_keys WHERE name = ?')
    const atMs = Date.now()
    for (const [digest, lookup] of changes) {
      const name = this.seal.name(digest)
      if (lookup === null) remove.run(name)
      else put.run(name, this.gatewayId, monotonicMs(), atMs, this.seal.seal(name, textOf(lookup)))
    }
    if (this.writes % TRIM_EVERY === 0) this.db.prepare(TRIM).run(atMs - MAX_AGE_MS)
    this.writes += 1
  }

  /** Null for a record that was sealed with another secret, or is damaged. */
  private lookupIn(row: Row): KeyLookup | null {
    const text = this.seal.open(textIn(row, 'name'), textIn(row, 'sealed'))
    try {
      return text === null ? null : lookupOf(text)
    } catch {
      return null
    }
  }

  /** A process that is not scheduled may hold the file for long, so only several failures are reported. */
  private attempt<T>(step: () => T): T | null {
    try {
      const done = step()
      this.failures = 0
      return done
    } catch (error) {
      this.failures += 1
      if (this.failures < REPORTED_FAILURES || this.hasWarned) return null
      this.warn(`keys cannot be shared for outages: ${messageOf(error)}`)
      this.hasWarned = true
      return null
    }
  }
}

/** Monotonic time of the machine, which all processes share, in ms. */
function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function textOf({ key, account }: KeyLookup): string {
  // A password is not needed to authenticate a request.
  const record = { account: { ...account, passwordHash: '' }, order: 0, liveKeys: 0 }
  return `${writeKey(key)}\n${writeAccount(record)}`
}

function lookupOf(text: string): KeyLookup {
  const [key = '', account = ''] = text.split('\n')
  return { key: readKey(key), account: readAccount(account).account }
}

const SECRET_NAME = 'known-keys-secret'
const SECRET_DAYS = 3_650
/** The cache removes values that expire first, so this one stays. */
const ROOM = { entries: 100_000_000, bytes: 1e15 }

/** The secret in the store; of processes that start at the same time, the first to put one creates it. */
async function secretOf({ cache }: Pick<Store, 'cache'>): Promise<Uint8Array> {
  const read = async (): Promise<Uint8Array | undefined> =>
    (await cache.get([SECRET_NAME], Date.now()))[0]?.value
  const known = await read()
  if (known !== undefined) return known
  const expiresAtMs = Date.now() + SECRET_DAYS * DAY_MS
  const made = { name: SECRET_NAME, value: randomBytes(SECRET_BYTES), expiresAtMs }
  await cache.put(made, ROOM, Date.now(), 'kept')
  const kept = await read()
  if (kept === undefined) throw new Error('the store has not kept their secret')
  return kept
}

/** Encrypts records (AES-256-GCM) and derives their names (HMAC-SHA-256). */
class KeySeal {
  private readonly nameKey: Buffer
  private readonly textKey: Buffer

  constructor(secret: Uint8Array, storeId: string) {
    const derived = (use: string): Buffer =>
      Buffer.from(hkdfSync('sha256', secret, storeId, use, SECRET_BYTES))
    this.nameKey = derived('sluice known keys, names')
    this.textKey = derived('sluice known keys, records')
  }

  name(digest: string): string {
    return createHmac('sha256', this.nameKey).update(digest).digest('base64url')
  }

  seal(name: string, text: string): string {
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv(CIPHER, this.textKey, iv).setAAD(Buffer.from(name))
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64')
  }

  /** Null if it was sealed with another name or secret, or was changed. */
  open(name: string, sealed: string): string | null {
    const bytes = Buffer.from(sealed, 'base64')
    if (bytes.length < IV_BYTES + TAG_BYTES) return null
    try {
      const decipher = createDecipheriv(CIPHER, this.textKey, bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      })
      decipher.setAAD(Buffer.from(name)).setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
      const body = decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES))
      return Buffer.concat([body, decipher.final()]).toString('utf8')
    } catch {
      return null
    }
  }
}
