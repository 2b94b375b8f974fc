/**
 * The results of a batch while it runs, in the order in which they come: each is durable once `add` resolves,
 * and a process that takes over finds what others have written. Two results of a line: the first counts.
 */
import { numberOf, objectOf, stringOf } from '../../base/json.js'
import type { Usage } from '../../formats/chat/usage.js'
import type { UsageSource } from '../../ledger/entry.js'
import type { FileStore, StoredFile } from '../../policy/file-store.js'
import { ResultPlaces, type ResultPlace } from './result-places.js'

/** The result of one line. */
export interface LineResult {
  /** The number of the line. */
  readonly number: number
  readonly requestId: string
  readonly status: number
  /** JSON in the client's format. */
  readonly body: string
  /** It is the vendor's own reply, which is not translated yet. */
  readonly isRaw?: true
  /** Why there is no reply: a code of OpenAI's error files. */
  readonly error?: { readonly code: string; readonly message: string }
  /** What it used; absent if it has a ledger entry of its own. */
  readonly used?: LineUse
}

/** What a line used. */
export interface LineUse {
  readonly usage: Usage
  readonly source: UsageSource
  /** Null if the price is not known. */
  readonly nanoUsd: number | null
}

/** The place of a result that was added after the journal was opened. */
const ADDED: ResultPlace = { chunk: -1, begin: 0, end: 1 }

/** The journal of one batch. */
export class Journal {
  completed = 0
  failed = 0
  private readonly files: FileStore
  private readonly file: StoredFile
  private readonly places = new ResultPlaces()
  private last: { readonly place: number; readonly bytes: Buffer } | null = null

  private constructor(files: FileStore, file: StoredFile) {
    this.files = files
    this.file = file
  }

  /** Opens the journal in a file, with the results that it has. */
  static async open(files: FileStore, file: StoredFile): Promise<Journal> {
    const journal = new Journal(files, file)
    for await (const { place, bytes } of files.readChunks(file)) journal.read(place, bytes)
    return journal
  }

  /** Whether the line has a result. */
  has(number: number): boolean {
    return this.places.has(number)
  }

  /** Adds results. They are found by `open` only. */
  async add(results: readonly LineResult[]): Promise<void> {
    const fresh = results.filter(({ number }) => !this.places.has(number))
    if (fresh.length === 0) return
    for (const result of fresh) {
      this.places.set(result.number, ADDED)
      this.count(result)
    }
    const text = fresh.map((result) => `${JSON.stringify(result)}\n`).join('')
    await this.files.append(this.file, Buffer.from(text))
  }

  /** The result of a line of a journal that was opened; null if it has none. */
  async find(number: number): Promise<LineResult | null> {
    const place = this.places.find(number)
    if (place === null) return null
    const { chunk, begin, end } = place
    if (this.last?.place !== chunk) {
      this.last = { place: chunk, bytes: await this.files.chunkAt(this.file, chunk) }
    }
    // `add` wrote the text, which is authenticated.
    return JSON.parse(this.last.bytes.subarray(begin, end).toString('utf8')) as LineResult
  }

  private read(place: number, bytes: Buffer): void {
    for (let begin = 0; begin < bytes.length;) {
      const at = bytes.indexOf(0x0a, begin)
      const end = at === -1 ? bytes.length : at
      const { number, status, error } = objectOf(JSON.parse(bytes.subarray(begin, end).toString('utf8')))
      const line = numberOf(number) ?? 0
      if (!this.places.has(line)) {
        this.places.set(line, { chunk: place, begin, end })
        const { code } = objectOf(error)
        this.count({ status: numberOf(status) ?? 0, isMissing: stringOf(code) !== undefined })
      }
      begin = end + 1
    }
  }

  private count(result: {
    readonly status: number
    readonly error?: unknown
    readonly isMissing?: boolean
  }): void {
    const isMissing = result.isMissing ?? result.error !== undefined
    if (result.status < 400 && !isMissing) this.completed += 1
    else this.failed += 1
  }
}
