/**
 * News of changes that may make a cached look-up wrong: every change is a row of `changes`, written in the
 * transaction of the change itself; each process reads the new rows five times a second.
 */
import type { KeyChange } from '../../store.js'
import { numberIn, textOrNull, type Statement } from '../driver.js'
import type { Engine } from '../engine.js'

/** Rows kept: 4,096 in 200 ms is 20,000 key changes a second. */
const MOST_ROWS = 4_096
/** Half of what `Store.subscribe` promises, so that one late timer does not break it. */
const POLL_MS = 200

/** The changes of one store, as one process writes and hears them. */
export class KeyChanges {
  private readonly engine: Engine
  private readonly mostRows: number
  private readonly insert: Statement
  private readonly trim: Statement
  private readonly last: Statement
  private readonly since: Statement
  private readonly listeners = new Set<(change: KeyChange) => void>()
  private timer: NodeJS.Timeout | null = null
  /** The last change that the listeners have heard of. */
  private seen = 0
  private hasFailed = false
  private isClosed = false

  constructor(engine: Engine, mostRows = MOST_ROWS) {
    this.engine = engine
    this.mostRows = mostRows
    this.insert = engine.prepare('INSERT INTO changes (digest) VALUES (?)')
    this.trim = engine.prepare(
      'DELETE FROM changes WHERE place <= (SELECT max(place) FROM changes) - ?',
    )
    this.last = engine.prepare('SELECT coalesce(max(place), 0) AS place FROM changes')
    this.since = engine.prepare('SELECT place, digest FROM changes WHERE place > ? ORDER BY place')
  }

  /** Writes a change; null is "anything may have changed". Only inside a transaction. */
  note(digest: string | null): void {
    this.insert.run(digest)
    this.trim.run(this.mostRows)
  }

  /** The result of a write; this process's own listeners hear of its change at once. */
  async announced<T>(written: Promise<T>): Promise<T> {
    const result = await written
    if (this.timer !== null) this.poll()
    return result
  }

  /** See `Store.subscribe`. */
  subscribe(listener: (change: KeyChange) => void): () => void {
    // A wrapper, so that one function subscribed twice is called twice and stopped once.
    const own = (change: KeyChange) => listener(change)
    if (this.timer === null && !this.isClosed) {
      this.seen = this.engine.readNow('reading changes', () => this.lastPlace())
      this.timer = setInterval(() => this.poll(), POLL_MS).unref()
    }
    this.listeners.add(own)
    return () => {
      this.listeners.delete(own)
      if (this.listeners.size === 0) this.stop()
    }
  }

  /** Calls nobody back any more. */
  close(): void {
    this.isClosed = true
    this.listeners.clear()
    this.stop()
  }

  private stop(): void {
    if (this.timer !== null) clearInterval(this.timer)
    this.timer = null
  }

  private poll(): void {
    let changes: readonly KeyChange[]
    try {
      changes = this.engine.readNow('reading changes', () => this.unheard())
      this.hasFailed = false
    } catch {
      // Listeners must stop trusting what they hold; their own look-ups report the failure itself.
      changes = this.hasFailed ? [] : [{ digest: null }]
      this.hasFailed = true
    }
    for (const change of changes) for (const listener of this.listeners) listener(change)
  }

  private unheard(): readonly KeyChange[] {
    const last = this.lastPlace()
    const from = this.seen
    if (last === from) return []
    this.seen = last
    // Fewer than before: another file is in the place of this one. Too many: some rows are gone already.
    if (last < from || last - from > this.mostRows) return [{ digest: null }]
    return this.since.all(from).map((row) => ({ digest: textOrNull(row, 'digest') }))
  }

  private lastPlace(): number {
    const row = this.last.get()
    return row === undefined ? 0 : numberIn(row, 'place')
  }
}
