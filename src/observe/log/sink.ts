/**
 * Where log lines go: asynchronously, gathered into large writes, with at most 8 MiB waiting. No destination can
 * block the event loop or keep the process from ending; lines that it does not take in time are dropped and counted.
 *
 * A pipe or socket is written through `process.stdout`, which never blocks for these. Writing to it with `fs` would
 * occupy a thread of the pool until somebody reads, and Node joins those threads before it exits.
 */
import { fstatSync } from 'node:fs'
import { pino } from 'pino'

/** A file descriptor, the path of a file, or an object that takes whole lines. */
export type LogDestination = number | string | { write(line: string): void }

/** Takes lines; never throws. */
export interface Sink {
  write(line: string): void
  /** Resolves when what was written has left, or after `timeoutMs` (1000). */
  flush(timeoutMs?: number): Promise<void>
}

/** Called with a number of lines that were dropped. */
type OnLost = (lines: number) => void

/** Takes many lines at once. */
interface Outlet {
  write(batch: string, lines: number): void
  /** Resolves when everything has left. */
  flushed(): Promise<void>
  /** Called when a flush takes too long. */
  gaveUp(): void
}

const MAX_WAITING_BYTES = 8 * 1024 * 1024
/** A write per 64 KiB or per 100 ms, whichever comes first. */
const BATCH_BYTES = 65_536
const BATCH_MS = 100
const FLUSH_MS = 1000

/** Opens the destination. Throws when a path cannot be opened. `onLost` is called with a number of lines. */
export function openSink(destination: LogDestination, onLost: OnLost): Sink {
  if (typeof destination === 'object') {
    return { write: (line) => destination.write(line), flush: () => Promise.resolve() }
  }
  const isPiped = destination === 1 && isStream(1)
  return new BatchSink(isPiped ? new StandardOutput(onLost) : openFile(destination, onLost))
}

function isStream(fd: number): boolean {
  const stat = fstatSync(fd)
  return stat.isFIFO() || stat.isSocket()
}

/** Gathers lines into batches. */
class BatchSink implements Sink {
  private readonly outlet: Outlet
  private batch = ''
  private lines = 0
  private timer: NodeJS.Timeout | null = null

  constructor(outlet: Outlet) {
    this.outlet = outlet
    process.once('exit', () => this.pass())
  }

  write(line: string): void {
    this.batch += line
    this.lines += 1
    if (this.batch.length >= BATCH_BYTES) this.pass()
    else this.timer ??= setTimeout(() => this.pass(), BATCH_MS).unref()
  }

  async flush(timeoutMs = FLUSH_MS): Promise<void> {
    this.pass()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.outlet.gaveUp()
        resolve()
      }, timeoutMs)
    })
    await Promise.race([this.outlet.flushed(), late]).finally(() => clearTimeout(timer))
  }

  private pass(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    const { batch, lines } = this
    if (lines === 0) return
    this.batch = ''
    this.lines = 0
    this.outlet.write(batch, lines)
  }
}

/** A pipe or socket on descriptor 1. */
class StandardOutput implements Outlet {
  private readonly onLost: OnLost
  private writes = 0
  private isStuck = false
  private onIdle: () => void = () => undefined

  constructor(onLost: OnLost) {
    this.onLost = onLost
    // A reader that has gone must not end the gateway: the callback of each write counts its lines.
    process.stdout.on('error', () => undefined)
  }

  write(batch: string, lines: number): void {
    if (process.stdout.writableLength + batch.length > MAX_WAITING_BYTES) {
      this.onLost(lines)
      return
    }
    this.writes += 1
    process.stdout.write(batch, (error) => {
      if (error !== null && error !== undefined) this.onLost(lines)
      this.isStuck = false
      this.writes -= 1
      if (this.writes === 0) this.onIdle()
    })
  }

  async flushed(): Promise<void> {
    if (this.writes === 0 || this.isStuck) return
    await new Promise<void>((resolve) => (this.onIdle = resolve))
  }

  /** Nobody reads: later flushes do not wait until somebody does. */
  gaveUp(): void {
    this.isStuck = true
  }
}

/** A file, a terminal or a device. */
function openFile(dest: number | string, onLost: OnLost): Outlet {
  // Without a least length the stream has no flush.
  const options = { dest, sync: false, minLength: 1, maxLength: MAX_WAITING_BYTES }
  const stream = pino.destination(options)
  const state: { is: 'open' | 'failing' | 'closed' } = { is: 'open' }
  stream.on('drop', (batch: string) => onLost(linesIn(batch)))
  // A full disk must not end the gateway; its lines are lost.
  stream.on('error', () => {
    onLost(1)
    if (state.is === 'open') state.is = 'failing'
  })
  stream.on('write', () => {
    if (state.is === 'failing') state.is = 'open'
  })
  /** The stream's own flush at exit would try for ever when the disk is full. */
  const closeIfFailing = (): void => {
    if (state.is !== 'failing') return
    state.is = 'closed'
    stream.destroy()
  }
  return {
    write(batch, lines) {
      if (state.is === 'closed') onLost(lines)
      else stream.write(batch)
    },
    async flushed() {
      if (state.is === 'closed') return
      await new Promise<void>((resolve) => stream.flush(() => resolve()))
      closeIfFailing()
    },
    gaveUp: closeIfFailing,
  }
}

function linesIn(batch: string): number {
  return batch.split('\n').length - 1
}
