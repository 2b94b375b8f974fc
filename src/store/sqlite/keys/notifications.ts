/**
 * Notifies every process of changes that make cached key look-ups stale. A change is a row of the table
 * `changes`, written in the transaction of the change; each process reads new rows five times a second.
 */
import type { KeyChange } from '../../store.js'
import { textOrNull } from '../driver.js'
import type { Engine } from '../engine.js'
import { numberOf } from '../read-records.js'
import { ChangeRows } from './change-rows.js'

/** Less than half of the time that `Store.subscribe` promises, so that one late timer does not exceed it. */
const POLL_MS = 200

/** The changes of one store, written and received by one process. */
export class SqliteNotifications extends ChangeRows {
  private readonly engine: Engine
  private readonly listeners = new Set<(change: KeyChange) => void>()
  private timer: NodeJS.Timeout | null = null
  /** The last change that the listeners received. */
  private received = 0
  private hasFailed = false
  private isClosed = false

  constructor(engine: Engine, mostRows?: number) {
    super(engine, mostRows)
    this.engine = engine
  }

  /** Waits for a write, and passes its change to the listeners of this process at once. */
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
      this.received = this.engine.readNow('reading changes', () => this.lastPlace())
      this.timer = setInterval(() => this.poll(), POLL_MS).unref()
    }
    this.listeners.add(own)
    return () => {
      this.listeners.delete(own)
      if (this.listeners.size === 0) this.stop()
    }
  }

  /** Removes all listeners. */
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
      changes = this.engine.readNow('reading changes', () => this.newChanges())
      this.hasFailed = false
    } catch {
      // Listeners must drop their caches; their own look-ups report the failure.
      changes = this.hasFailed ? [] : [{ digest: null }]
      this.hasFailed = true
    }
    for (const change of changes) for (const listener of this.listeners) listener(change)
  }

  private newChanges(): readonly KeyChange[] {
    const last = this.lastPlace()
    const from = this.received
    if (last === from) return []
    this.received = last
    // The file was replaced if it has fewer changes than before; with too many, the oldest rows are removed
    // already.
    if (last < from || last - from > this.mostRows) return [{ digest: null }]
    const since = this.engine.prepare('SELECT digest FROM changes WHERE place > ? ORDER BY place')
    return since.all(from).map((row) => ({ digest: textOrNull(row, 'digest') }))
  }

  private lastPlace(): number {
    const last = this.engine.prepare('SELECT coalesce(max(place), 0) AS n FROM changes')
    return numberOf(last.get())
  }
}
