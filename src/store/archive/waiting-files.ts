/**
 * Batches of entries that wait for the archive in files, because the store has no room for them: one file for
 * each batch, in a folder that the gateways of a machine share. Each line has a checksum. A file is complete
 * and synced once it has its name, and writing a batch again changes nothing.
 */
import {
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createFolder } from '../../base/private-files.js'
import { checksummedLines, readSegment } from '../../ledger/spool.js'
import type { FedEntries } from '../archive-feed.js'
import { readEntry, writeEntry } from '../records/entry-text.js'

const DIGITS = 15
/** Before the text of an entry that replaces one which the archive may have. */
const CORRECTED = '+'

/** A batch in a file. */
interface WaitingBatch extends FedEntries {
  readonly batch: number
  /** Lines that are damaged, whose entries are lost. */
  readonly damaged: number
}

/** The files of one store on this machine. Methods throw the errors of the file system. */
export class WaitingFiles {
  private readonly folder: string
  private readonly prefix: string
  private readonly maxBytes: number

  constructor(folder: string, storeId: string, maxBytes: number) {
    this.folder = folder
    this.prefix = `batch-${storeId}-`
    this.maxBytes = maxBytes
  }

  /** Their size. */
  get bytes(): number {
    const sizes = this.names().map(
      (name) => statSync(join(this.folder, name), { throwIfNoEntry: false })?.size,
    )
    return sizes.reduce<number>((sum, size = 0) => sum + size, 0)
  }

  /** Whether there was room for the batch. */
  write(batch: number, { entries, corrected }: FedEntries): boolean {
    const lines = checksummedLines(
      entries.map((entry) => (corrected.has(entry.requestId) ? CORRECTED : '') + writeEntry(entry)),
    )
    if (this.bytes + lines.length > this.maxBytes) return false
    createFolder(this.folder)
    const path = this.pathOf(batch)
    const part = `${path}.part`
    const file = openSync(part, 'w', 0o600)
    try {
      writeFileSync(file, lines)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(part, path)
    const folder = openSync(this.folder, 'r')
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
    return true
  }

  /** The oldest batch up to a number: a later one is not declared to be in a file yet. */
  oldest(upTo: number): WaitingBatch | null {
    const [name] = this.names()
    const batch = Number(name?.slice(this.prefix.length, this.prefix.length + DIGITS))
    if (name === undefined || batch > upTo) return null
    const segment = readSegment(join(this.folder, name))
    const corrected = new Set<string>()
    const entries = segment.lines().map((line) => {
      const isCorrected = line.startsWith(CORRECTED)
      const entry = readEntry(isCorrected ? line.slice(CORRECTED.length) : line)
      if (isCorrected) corrected.add(entry.requestId)
      return entry
    })
    return { batch, entries, corrected, damaged: segment.damaged }
  }

  remove(batch: number): void {
    rmSync(this.pathOf(batch), { force: true })
  }

  private pathOf(batch: number): string {
    return join(this.folder, `${this.prefix}${String(batch).padStart(DIGITS, '0')}.spool`)
  }

  /** Oldest first. */
  private names(): string[] {
    try {
      return readdirSync(this.folder)
        .filter((name) => name.startsWith(this.prefix) && name.endsWith('.spool'))
        .sort()
    } catch {
      // The folder is made with its first file.
      return []
    }
  }
}
