/**
 * What makes the ledger's file survive the machine: it is never synced while anybody waits for it, and
 * yet can never be found damaged. Knows no table of it.
 *
 * With `noSync` a commit is safe from the death of every process at once, since it is in the system's
 * memory, but after a crash of the machine any of its pages may be old or new: the engine then follows
 * a torn tree. The engine's own answer, `overlappingSync`, resolves a commit only once the disk has it
 * (lmdb 3.5.6 here: 223 transactions a second and 3 to 50 ms each, against 36,000 and 0.02 ms).
 *
 * So, a few times a second and off the event loop: hold a read transaction, which keeps the engine from
 * reusing a page of that snapshot; sync the file; note the snapshot's root in a small synced file; let
 * go of the snapshot before. Where the machine has been started anew since, the root that was noted
 * is made the last one again, before anybody opens the file. Every process does this for itself, and
 * writes only after its first time; the noted root only goes forward, so it is always held by any
 * process that lives.
 */
import { closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs'
import { open as openFile, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { open, type RootDatabase, type Transaction } from 'lmdb'
import { quietly, reasonOf } from './lmdb-failure.js'
import { goBackTo, lastSnapshot, type Snapshot } from './lmdb-meta.js'
import { transact } from './lmdb-transaction.js'

/** A second is what may be lost; two of these and a sync are less. */
const EVERY_MS = 300
/** A note of another process that is younger is waited for instead of made anew. */
const FRESH_MS = 200
const NOTE = 'note'
/** Changes with every start of the machine; where the system has none, nothing is ever gone back to. */
const BOOT_ID_FILE = '/proc/sys/kernel/random/boot_id'

/** The last snapshot known to be on the disk; `meta` is null before the first. */
interface Note {
  readonly boot: string
  readonly txn: number
  readonly atMs: number
  readonly meta: string | null
}

/** A snapshot that the engine may not overwrite. */
interface Held extends Snapshot {
  readonly reader: Transaction
}

/** The name of the machine's present start, or nothing. */
export function thisBoot(): string {
  return existsSync(BOOT_ID_FILE) ? readFileSync(BOOT_ID_FILE, 'utf8').trim() : ''
}

/** Those of one process. */
export class Checkpoints {
  /** Why the last checkpoint failed; nothing may be promised while it is so. */
  failure: Error | null = null
  private readonly notes: RootDatabase<string>
  private readonly boot: string
  private readonly path: string
  private root: RootDatabase<Buffer, string> | null = null
  private file: FileHandle | null = null
  /** At or before the noted snapshot. */
  private held: Held | null = null
  /** After it: held until it, or a later one, is noted. */
  private next: Held | null = null
  private timer: NodeJS.Timeout | null = null
  private running: Promise<void> = Promise.resolve()

  /** `folder` is the ledger's; `boot` is what a test may pretend. */
  constructor(folder: string, boot: string = thisBoot()) {
    this.path = join(folder, 'data.mdb')
    this.boot = boot
    this.notes = open<string>({
      path: join(folder, 'synced'),
      noSubdir: false,
      encoding: 'string',
      overlappingSync: false,
      eventTurnBatching: false,
      mapSize: 1024 ** 2,
      maxReaders: 512,
    })
  }

  /** Puts the file right after a start of the machine; before the engine opens it. */
  async recover(): Promise<void> {
    await transact(this.notes, () => {
      const note = this.note()
      if (note !== null && (note.boot === this.boot || this.boot === '')) return
      if (note !== null && existsSync(this.path)) this.goBack(note)
      this.put({ txn: 0, atMs: 0, meta: null, ...note, boot: this.boot })
    })
  }

  /** Makes the first checkpoint, and goes on making them; before the first write. */
  async start(root: RootDatabase<Buffer, string>): Promise<void> {
    this.root = root
    this.file ??= await openFile(this.path, 'r+')
    await this.checkpoint(true)
    this.plan()
  }

  /** Leaves everything on the disk. */
  async close(): Promise<void> {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    await this.running
    try {
      if (this.file !== null) await this.checkpoint(true)
    } finally {
      this.held?.reader.done()
      this.next?.reader.done()
      await this.file?.close()
      await this.notes.close()
    }
  }

  private plan(): void {
    const jittered = EVERY_MS * (0.75 + Math.random() / 4)
    this.timer = setTimeout(() => {
      this.running = this.checkpoint(false)
        .then(
          () => (this.failure = null),
          async (error: unknown) => {
            const reason = await reasonOf(error)
            this.failure = reason instanceof Error ? reason : new Error(String(reason))
          },
        )
        .then(() => (this.timer === null ? undefined : this.plan()))
    }, jittered).unref()
  }

  /** Has the last commit noted, by us or by another process; `now` does not wait for the other. */
  private async checkpoint(now: boolean): Promise<void> {
    const { root, file } = this
    if (root === null || file === null) throw new Error('the ledger is not open')
    const last = lastSnapshot(file.fd).txn
    if (!now && this.next === null && this.held?.txn === last) return
    if (now) this.letGo()
    this.next ??= await hold(root, file)
    const note = this.note()
    if (note === null || note.txn < this.next.txn) {
      if (!now && Date.now() - (note?.atMs ?? 0) < FRESH_MS) return
      // What a killed process held would keep the file growing until somebody opens it anew.
      root.readerCheck()
      await file.datasync()
      await this.write(this.next)
    }
    this.held?.reader.done()
    this.held = this.next
    this.next = null
  }

  private letGo(): void {
    this.next?.reader.done()
    this.next = null
  }

  private async write({ txn, meta }: Snapshot): Promise<void> {
    await transact(this.notes, () => {
      if ((this.note()?.txn ?? -1) >= txn) return
      this.put({ boot: this.boot, txn, atMs: Date.now(), meta: meta.toString('base64') })
    })
  }

  private goBack(note: Note): void {
    if (note.meta === null) {
      // Nothing in it was ever promised.
      rmSync(this.path)
      return
    }
    const file = openSync(this.path, 'r+')
    try {
      goBackTo(file, { txn: note.txn, meta: Buffer.from(note.meta, 'base64') })
    } finally {
      closeSync(file)
    }
  }

  private note(): Note | null {
    const text = this.notes.get(NOTE)
    return text === undefined ? null : readNote(text)
  }

  private put(note: Note): void {
    quietly(this.notes.put(NOTE, JSON.stringify(note)))
  }
}

/** A snapshot at or after the one that the reader holds, which keeps both. */
async function hold(root: RootDatabase<Buffer, string>, file: FileHandle): Promise<Held> {
  root.resetReadTxn()
  const reader = root.useReadTransaction()
  try {
    const snapshot = await transact(root, () => lastSnapshot(file.fd))
    return { ...snapshot, reader }
  } catch (error) {
    reader.done()
    throw error
  }
}

function readNote(text: string): Note {
  const value: unknown = JSON.parse(text)
  if (typeof value === 'object' && value !== null && 'boot' in value && 'txn' in value) {
    const { boot, txn } = value
    const meta = 'meta' in value && typeof value.meta === 'string' ? value.meta : null
    const atMs = 'atMs' in value && typeof value.atMs === 'number' ? value.atMs : 0
    if (typeof boot === 'string' && typeof txn === 'number') return { boot, txn, atMs, meta }
  }
  throw new Error("the note of the ledger's last checkpoint is damaged")
}
