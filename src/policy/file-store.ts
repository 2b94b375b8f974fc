/**
 * Files of accounts: what clients upload for batches, the results of batches, and what the gateway notes
 * while a batch runs. Their bytes are encrypted in chunks with a key of the account.
 */
import { randomBytes } from 'node:crypto'
import { isObject, numberOf, stringOf } from '../base/json.js'
import { Pacer } from '../base/pacer.js'
import type { FilesConfig } from '../config/config.js'
import { GatewayError } from '../errors.js'
import { parseOrNull } from '../formats/wire/json/full-scan.js'
import { Seal } from '../store/seal.js'
import {
  MAX_LISTED_RECORDS,
  type RecordFilter,
  type RecordHead,
  type SealedRecord,
  type SealedRecords,
} from '../store/sealed-records.js'
import { FolderChunks, StoredChunks, type Chunks } from './file-chunks.js'

/** `work`: a file of the gateway itself, which no client sees. */
type FilePurpose = 'batch' | 'batch_output' | 'work'

/** A file without its bytes. */
export interface StoredFile {
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly name: string
  readonly purpose: FilePurpose
  readonly bytes: number
  readonly createdAtMs: number
  readonly expiresAtMs: number
  /** It is being written, or its writer ended before. */
  readonly isPartial: boolean
  /** The bytes of a partial file whose next part may be written; null while one is written. */
  readonly written: number | null
}

/** The account and the key that a file belongs to. */
type FileOwner = Pick<StoredFile, 'accountId' | 'keyId'>

/** What is known of a file before it is written. */
interface NewFile extends Pick<StoredFile, 'name' | 'purpose' | 'expiresAtMs'> {
  /**
   * The room of its account that it takes while it is written, in bytes; it may have more if there is room.
   * Absent: it is written whether or not there is room.
   */
  readonly expectedBytes?: number
}

const CHUNK_BYTES = 1024 * 1024
/** A file whose writer ended before it is removed after this time. */
const PARTIAL_MS = 3_600_000
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const ID_CHARS = 24

/** A new id: the prefix and 24 letters and digits. */
export function newId(prefix: 'file-' | 'batch_' | 'msgbatch_'): string {
  let id: string = prefix
  while (id.length < prefix.length + ID_CHARS) {
    const [byte = 0] = randomBytes(1)
    // Without the bytes that would make some characters more likely.
    if (byte < ALPHABET.length * 4) id += ALPHABET.charAt(byte % ALPHABET.length)
  }
  return id
}

/** The place of files, and the secret that encrypts them. */
interface FileStoreOptions {
  readonly records: SealedRecords
  /** `escrow.key`. */
  readonly secret: string
  readonly settings: FilesConfig
}

/** The files of one configuration. */
export class FileStore {
  readonly settings: FilesConfig
  private readonly records: SealedRecords
  private readonly secret: string
  private readonly chunks: Chunks

  constructor({ records, secret, settings }: FileStoreOptions) {
    this.records = records
    this.secret = secret
    this.settings = settings
    this.chunks = settings.folder === null ? new StoredChunks(records) : new FolderChunks(settings.folder)
  }

  /**
   * Begins a file; its record exists before its first byte, and takes the room of the file, so that files
   * that are written at the same time have the room of the account once. Rejects with `body_too_large` if the
   * account has too many files; what is written beyond the room is refused.
   */
  async begin(owner: FileOwner, file: NewFile): Promise<FileWriter> {
    const nowMs = Date.now()
    const { accountId, keyId } = owner
    const { name, purpose, expectedBytes } = file
    const expiresAtMs = purpose === 'work' ? file.expiresAtMs : Math.min(nowMs + PARTIAL_MS, file.expiresAtMs)
    const bytes = Math.min(expectedBytes ?? 0, this.settings.maxBytes)
    const base = { id: newId('file-'), accountId, keyId, name, purpose, createdAtMs: nowMs, expiresAtMs }
    const partial: StoredFile = { ...base, bytes, isPartial: true, written: null }
    await this.record(partial)
    const limits = { room: Number.POSITIVE_INFINITY, expiresAtMs: file.expiresAtMs }
    if (expectedBytes === undefined) return new FileWriter(this, partial, limits)
    try {
      const room = await this.roomBeside(partial, nowMs)
      if (room < bytes) await this.record({ ...partial, bytes: room })
      return new FileWriter(this, partial, { ...limits, room })
    } catch (error) {
      await this.remove(partial).catch(() => undefined)
      throw error
    }
  }

  /**
   * Goes on with a file that `FileWriter.pause` has left, in the room that it took at its beginning; null if
   * it is complete, or another one writes it.
   */
  async resume(file: StoredFile): Promise<FileWriter | null> {
    if (!file.isPartial || file.written === null) return null
    const partial = { ...file, written: null }
    if (!(await this.records.replace(recordOf(partial), infoOf(file)))) return null
    const limits = { room: file.bytes, expiresAtMs: file.createdAtMs + this.settings.keepMs }
    return new FileWriter(this, partial, limits, file.written)
  }

  /** The file of the account; null if it has none with this id. */
  async find(accountId: string, id: string): Promise<StoredFile | null> {
    const [head] = await this.records.list('file', { id, accountId }, Date.now())
    return head === undefined ? null : fileIn(head)
  }

  /** The complete files of the account that clients see, newest first. */
  async list(accountId: string): Promise<StoredFile[]> {
    const files = await this.filesOf({ accountId }, Date.now())
    return files.filter(({ purpose, isPartial }) => purpose !== 'work' && !isPartial)
  }

  /** The bytes, in chunks. Rejects if one is damaged, or the file is removed meanwhile. */
  async *read(file: StoredFile): AsyncIterable<Buffer> {
    for await (const { bytes } of this.readChunks(file)) yield bytes
  }

  /** The same, with the place of each chunk. With `room` each is valid until the next one. */
  async *readChunks(
    file: StoredFile,
    room?: Room,
  ): AsyncIterable<{ readonly place: number; readonly bytes: Buffer }> {
    let read = 0
    for (let place = 0; ;) {
      const chunk = await this.chunkFrom(file, place, room)
      if (chunk === null) break
      read += chunk.bytes.length
      yield { place, bytes: chunk.bytes }
      place = chunk.next
    }
    if (!file.isPartial && read < file.bytes) throw new Error(`${file.id} was removed while it was read`)
  }

  /** The chunk at a place of `readChunks`. */
  async chunkAt(file: StoredFile, place: number): Promise<Buffer> {
    const chunk = await this.chunkFrom(file, place)
    if (chunk === null) throw new Error(`${file.id} has no chunk at ${place}`)
    return chunk.bytes
  }

  /**
   * The lines without their ends; each is valid until the next one. Other work has its turns between them,
   * what the reader does included.
   */
  async *lines(file: StoredFile): AsyncIterable<Buffer> {
    const pacer = new Pacer()
    // Each chunk is opened in the same memory: a chunk whose lines take long would outlive minor collections.
    const chunks = this.readChunks(file, new Room())
    let rest: Buffer[] = []
    for await (const { bytes: chunk } of chunks) {
      let begin = 0
      for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, begin)) {
        const last = chunk.subarray(begin, end)
        yield rest.length === 0 ? last : Buffer.concat([...rest, last])
        rest = []
        begin = end + 1
        await pacer.pace()
      }
      if (begin < chunk.length) rest.push(Buffer.from(chunk.subarray(begin)))
    }
    if (rest.length > 0) yield Buffer.concat(rest)
  }

  /** The chunk at a place, opened in `room` if there is one, and the next place; null at the end. */
  private async chunkFrom(
    file: StoredFile,
    place: number,
    room?: Room,
  ): Promise<{ readonly bytes: Buffer; readonly next: number } | null> {
    const sealed = await this.chunks.at(file, place)
    if (sealed === null) return null
    const bytes = this.sealOf(file.accountId).openBytes(file.id, sealed, room?.of(sealed.length))
    if (bytes === null) throw new Error(`a chunk of ${file.id} cannot be opened`)
    return { bytes, next: this.chunks.placeAfter(place, sealed) }
  }

  async remove({ id }: Pick<StoredFile, 'id'>): Promise<void> {
    await this.records.remove('file', { id })
    await this.chunks.remove(id)
  }

  /** Removes the bytes of files whose records have expired. */
  async sweep(): Promise<void> {
    const nowMs = Date.now()
    await this.records.sweep(nowMs)
    const heads = await this.records.list('file', {}, nowMs)
    const listed = new Set(heads.map(({ id }) => id))
    // A file may be newer than the list, or older than the longest one.
    await this.chunks.sweep(async (id) => {
      return listed.has(id) || (await this.records.find('file', id, nowMs)) !== null
    })
  }

  /** Encrypts a text of the account, such as the members of a batch. */
  seal(accountId: string, name: string, text: string): Buffer {
    return this.sealOf(accountId).seal(name, text)
  }

  /** Null if it was sealed for another account or name, or is damaged. */
  open(accountId: string, name: string, sealed: Uint8Array): string | null {
    return this.sealOf(accountId).open(name, sealed)
  }

  /** Appends bytes as one chunk. */
  async append(file: StoredFile, bytes: Buffer): Promise<void> {
    await this.chunks.append(file, this.sealOf(file.accountId).seal(file.id, bytes))
  }

  async record(file: StoredFile): Promise<void> {
    await this.records.put(recordOf(file), Number.MAX_SAFE_INTEGER, Date.now())
  }

  /** How many bytes the file may have beside all others. Rejects if its account has too many files. */
  private async roomBeside({ id, accountId }: StoredFile, nowMs: number): Promise<number> {
    const { maxBytesPerAccount, maxBytesTotal } = this.settings
    const own = await this.filesOf({ accountId }, nowMs)
    if (own.length >= MAX_LISTED_RECORDS) throw noRoom(`an account has at most ${MAX_LISTED_RECORDS}`)
    const bytesOf = (files: readonly StoredFile[]): number => {
      return files.reduce((sum, file) => sum + (file.id === id ? 0 : file.bytes), 0)
    }
    let allBytes = 0
    for await (const page of this.pages(nowMs)) allBytes += bytesOf(page)
    return Math.max(0, Math.min(maxBytesPerAccount - bytesOf(own), maxBytesTotal - allBytes))
  }

  /** All files, newest first, in pages as long as the longest list. */
  private async *pages(nowMs: number): AsyncIterable<StoredFile[]> {
    let untilMs = Number.MAX_SAFE_INTEGER
    let seen = new Set<string>()
    for (;;) {
      const page = await this.filesOf({ untilMs }, nowMs)
      yield page.filter(({ id }) => !seen.has(id))
      const oldestMs = page.at(-1)?.createdAtMs
      if (oldestMs === undefined || page.length < MAX_LISTED_RECORDS) return
      // The next page begins with the rest of the files of the same time.
      untilMs = oldestMs === untilMs ? oldestMs - 1 : oldestMs
      seen = new Set(page.flatMap(({ id, createdAtMs }) => (createdAtMs === oldestMs ? [id] : [])))
    }
  }

  /** The newest files, read in turns. */
  private async filesOf(filter: RecordFilter, nowMs: number): Promise<StoredFile[]> {
    const pacer = new Pacer()
    const files: StoredFile[] = []
    for (const head of await this.records.list('file', filter, nowMs)) {
      files.push(fileIn(head))
      if (files.length % 256 === 0) await pacer.pace()
    }
    return files
  }

  private sealOf(accountId: string): Seal {
    return new Seal(`${this.secret}\nfiles of ${accountId}`)
  }
}

/** Memory that is used again; it grows to the longest chunk. */
class Room {
  private bytes = Buffer.alloc(0)

  of(length: number): Buffer {
    if (this.bytes.length < length) this.bytes = Buffer.allocUnsafeSlow(length)
    return this.bytes
  }
}

function noRoom(limits: string): GatewayError {
  const message = `There is no room for this file: delete files that are no longer needed (${limits}).`
  return new GatewayError('body_too_large', message)
}

function recordOf(file: StoredFile): SealedRecord {
  const { id, accountId, keyId, createdAtMs, expiresAtMs } = file
  const head = { kind: 'file' as const, id, accountId, keyId, model: '', atMs: createdAtMs, expiresAtMs }
  return { ...head, info: infoOf(file), value: Buffer.alloc(0) }
}

function infoOf({ name, purpose, bytes, isPartial, written }: StoredFile): string {
  return JSON.stringify({ name, purpose, bytes, isPartial, ...(written !== null && { written }) })
}

function fileIn({ id, accountId, keyId, atMs, expiresAtMs, info }: RecordHead): StoredFile {
  const value = parseOrNull(info)
  const { name, purpose, bytes, isPartial, written } = isObject(value) ? value : {}
  return {
    ...{ id, accountId, keyId, createdAtMs: atMs, expiresAtMs },
    name: stringOf(name) ?? '',
    purpose: purpose === 'batch' || purpose === 'batch_output' ? purpose : 'work',
    bytes: numberOf(bytes) ?? 0,
    isPartial: isPartial === true,
    written: numberOf(written) ?? null,
  }
}

/** Writes one file. */
export class FileWriter {
  bytes: number
  private readonly store: FileStore
  private readonly partial: StoredFile
  private readonly limits: { readonly room: number; readonly expiresAtMs: number }
  /** What is not stored yet; used again for each chunk, so that a long file leaves no garbage. */
  private waiting = Buffer.alloc(0)
  private waitingBytes = 0

  constructor(
    store: FileStore,
    partial: StoredFile,
    limits: { readonly room: number; readonly expiresAtMs: number },
    bytes = 0,
  ) {
    this.bytes = bytes
    this.store = store
    this.partial = partial
    this.limits = limits
  }

  /** The file so far. */
  get file(): StoredFile {
    return this.partial
  }

  /** Rejects with `body_too_large`. */
  async write(bytes: Buffer): Promise<void> {
    this.bytes += bytes.length
    this.assertRoom()
    for (let at = 0; at < bytes.length;) {
      const length = Math.min(bytes.length - at, CHUNK_BYTES - this.waitingBytes)
      this.grow(this.waitingBytes + length)
      bytes.copy(this.waiting, this.waitingBytes, at, at + length)
      this.waitingBytes += length
      at += length
      if (this.waitingBytes === CHUNK_BYTES) await this.flush()
    }
  }

  /** Completes the file, which is kept for `lifeMs` from its creation, or until the end given to `begin`. */
  async end(lifeMs: number | null = null): Promise<StoredFile> {
    await this.flush()
    const expiresAtMs = lifeMs === null ? this.limits.expiresAtMs : this.partial.createdAtMs + lifeMs
    const file = { ...this.partial, bytes: this.bytes, expiresAtMs, isPartial: false, written: null }
    await this.store.record(file)
    return file
  }

  /** What was written, which only the gateway can read: no client sees the file before its end. */
  async unfinished(): Promise<StoredFile> {
    await this.flush()
    return this.partial
  }

  /** Leaves the file for its next part, which `FileStore.resume` writes. */
  async pause(): Promise<StoredFile> {
    await this.flush()
    const file = { ...this.partial, written: this.bytes }
    await this.store.record(file)
    return file
  }

  /** Removes what was written. */
  abort(): Promise<void> {
    this.waitingBytes = 0
    return this.store.remove(this.partial)
  }

  private async flush(): Promise<void> {
    if (this.waitingBytes === 0) return
    const bytes = this.waiting.subarray(0, this.waitingBytes)
    this.waitingBytes = 0
    // Chunks expire with the file.
    const file = { ...this.partial, expiresAtMs: this.limits.expiresAtMs }
    await this.store.append(file, bytes)
  }

  private grow(bytes: number): void {
    if (bytes <= this.waiting.length) return
    const grown = Buffer.allocUnsafeSlow(
      Math.min(CHUNK_BYTES, Math.max(2 * this.waiting.length, bytes, 65_536)),
    )
    this.waiting.copy(grown, 0, 0, this.waitingBytes)
    this.waiting = grown
  }

  private assertRoom(): void {
    const { maxBytes } = this.store.settings
    if (this.partial.purpose === 'batch' && this.bytes > maxBytes) {
      throw new GatewayError('body_too_large', `A file must not be larger than ${maxBytes} bytes.`)
    }
    if (this.bytes > this.limits.room) throw noRoom('files.max_bytes_per_account and files.max_bytes_total')
  }
}
