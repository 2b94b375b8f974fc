/** The encrypted chunks of files: in a folder, one file each, or in the store, one record each. */
import { open, readdir, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { createFolder } from '../base/private-files.js'
import type { SealedRecords } from '../store/sealed-records.js'
import { isMissing } from '../base/file-access.js'

/** The file of a chunk. */
interface ChunkOwner {
  readonly id: string
  readonly accountId: string
  readonly expiresAtMs: number
}

/** The place of chunks. */
export interface Chunks {
  /** Appends a chunk. It survives the end of this process once this resolves. */
  append(of: ChunkOwner, sealed: Buffer): Promise<void>
  /** The chunk at a place, from 0; null if there is none, or only a part of one whose process ended. */
  at(of: ChunkOwner, place: number): Promise<Buffer | null>
  /** The place behind the chunk at a place. */
  placeAfter(place: number, sealed: Buffer): number
  remove(id: string): Promise<void>
  /** Removes the chunks of files that do not exist; those of the store expire by themselves. */
  sweep(exists: (id: string) => Promise<boolean>): Promise<void>
}

const LENGTH_BYTES = 4
const ID = /^file-[A-Za-z0-9]{24}$/

/** Chunks in a folder: each file of a client is one file, whose chunks begin with their length. */
export class FolderChunks implements Chunks {
  private readonly folder: string
  /** Resolves when a file has whole chunks only; of files to which this process appends. */
  private readonly repaired = new Map<string, Promise<void>>()

  constructor(folder: string) {
    this.folder = folder
  }

  async append({ id }: ChunkOwner, sealed: Buffer): Promise<void> {
    const bytes = Buffer.allocUnsafe(LENGTH_BYTES + sealed.length)
    bytes.writeUInt32BE(sealed.length)
    sealed.copy(bytes, LENGTH_BYTES)
    createFolder(this.folder)
    const file = await open(this.pathOf(id), 'a+', 0o600)
    try {
      // A process may have been killed in the middle of a chunk. No other chunk is written meanwhile.
      const repairing = this.repaired.get(id) ?? repair(file)
      this.repaired.set(id, repairing)
      await repairing
      await file.appendFile(bytes)
    } finally {
      await file.close()
    }
  }

  async at({ id }: ChunkOwner, place: number): Promise<Buffer | null> {
    const file = await this.open(id)
    if (file === null) return null
    try {
      return await chunkAt(file, place)
    } finally {
      await file.close()
    }
  }

  placeAfter(place: number, sealed: Buffer): number {
    return place + LENGTH_BYTES + sealed.length
  }

  remove(id: string): Promise<void> {
    this.repaired.delete(id)
    return rm(this.pathOf(id), { force: true })
  }

  async sweep(exists: (id: string) => Promise<boolean>): Promise<void> {
    const names = await readdir(this.folder).catch(() => [])
    for (const name of names) if (ID.test(name) && !(await exists(name))) await this.remove(name)
  }

  /** Null if there is no such file. */
  private open(id: string): Promise<FileHandle | null> {
    return open(this.pathOf(id), 'r').catch((error: unknown) => {
      if (isMissing(error)) return null
      throw error
    })
  }

  private pathOf(id: string): string {
    if (!ID.test(id)) throw new Error('not an id of a file')
    return join(this.folder, id)
  }
}

/** Removes a chunk at the end that is not whole. */
async function repair(file: FileHandle): Promise<void> {
  const { size } = await file.stat()
  for (let place = 0; ;) {
    const head = await bytesAt(file, place, LENGTH_BYTES)
    const end = place + LENGTH_BYTES + (head?.readUInt32BE() ?? 0)
    if (head === null || end > size) {
      if (place < size) await file.truncate(place)
      return
    }
    place = end
  }
}

async function chunkAt(file: FileHandle, place: number): Promise<Buffer | null> {
  const head = await bytesAt(file, place, LENGTH_BYTES)
  return head === null ? null : bytesAt(file, place + LENGTH_BYTES, head.readUInt32BE())
}

/** Null if the file ends before. */
async function bytesAt(file: FileHandle, at: number, length: number): Promise<Buffer | null> {
  const bytes = Buffer.allocUnsafe(length)
  for (let read = 0; read < length;) {
    const { bytesRead } = await file.read(bytes, read, length - read, at + read)
    if (bytesRead === 0) return null
    read += bytesRead
  }
  return bytes
}

/** Chunks in the store, by the id of the file and their number. */
export class StoredChunks implements Chunks {
  private readonly records: SealedRecords
  /** The number of the next chunk of files that this process writes. */
  private readonly next = new Map<string, number>()

  constructor(records: SealedRecords) {
    this.records = records
  }

  async append(of: ChunkOwner, sealed: Buffer): Promise<void> {
    const { id, accountId, expiresAtMs } = of
    const owner = { kind: 'chunk' as const, accountId, keyId: '', model: '', atMs: Date.now(), expiresAtMs }
    // Another process may have written chunks meanwhile.
    for (let number = this.next.get(id) ?? (await this.count(of)); ; number += 1) {
      const record = { ...owner, id: chunkId(id, number), info: '', value: sealed }
      if (!(await this.records.replace(record, null))) continue
      this.next.set(id, number + 1)
      return
    }
  }

  async at({ id }: ChunkOwner, place: number): Promise<Buffer | null> {
    const chunk = await this.records.find('chunk', chunkId(id, place), Date.now())
    return chunk === null ? null : Buffer.from(chunk.value)
  }

  placeAfter(place: number): number {
    return place + 1
  }

  async remove(id: string): Promise<void> {
    this.next.delete(id)
    for (let number = 0; ; number += 1) {
      if ((await this.records.remove('chunk', { id: chunkId(id, number) })) === 0) return
    }
  }

  async sweep(exists: (id: string) => Promise<boolean>): Promise<void> {
    for (const id of this.next.keys()) if (!(await exists(id))) this.next.delete(id)
  }

  private async count({ id }: ChunkOwner): Promise<number> {
    let number = 0
    while ((await this.records.find('chunk', chunkId(id, number), Date.now())) !== null) number += 1
    return number
  }
}

function chunkId(id: string, number: number): string {
  return `${id}.${number}`
}
