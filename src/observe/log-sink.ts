/**
 * Writes log lines asynchronously in batches, with at most 8 MiB waiting. A slow destination neither blocks
 * the event loop nor delays exit; lines that it does not accept in time are dropped and counted.
 *
 * Pipes and sockets are written through `process.stdout`, which does not block for these. `fs` would occupy a
 * thread of the pool until the reader reads, and Node joins those threads before it exits.
 */
import { closeSync, fstatSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { pino } from 'pino'

/** A file descriptor, the path of a file, or an object that takes whole lines. */
export type LogDestination = number | string | { write(line: string): void }

/** Accepts lines; never throws. */
export interface Sink {
  write(line: string): void
  /** Resolves when everything is written, or after `timeoutMs` (1000). */
  flush(timeoutMs?: number): Promise<void>
  /**
   * Opens the path again, for a file that was renamed: later lines go to a new file. False if the destination
   * is not a path; throws if it cannot be opened, and the former file stays in use.
   */
  reopen(): boolean
}

/** Called with the number of dropped lines. */
type OnLost = (lines: number) => void

/** Writes batches of lines. */
interface Outlet {
  write(batch: string, lines: number): void
  /** Resolves when everything is written. */
  flushed(): Promise<void>
  /** Called if a flush takes too long. */
  gaveUp(): void
  /** See `Sink`. */
  reopen(): boolean
}

const MAX_WAITING_BYTES = 8 * 1024 * 1024
/** A batch is written at 64 KiB or after 100 ms. */
const BATCH_BYTES = 65_536
const BATCH_MS = 100
const FLUSH_MS = 1000

/**
 * Opens the destination. Throws if a path cannot be opened. `onLost` is called with the number of dropped
 * lines.
 */
export function openSink(destination: LogDestination, onLost: OnLost): Sink {
  if (typeof destination === 'object') {
    const write = (line: string): void => destination.write(line)
    return { write, flush: () => Promise.resolve(), reopen: () => false }
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

  reopen(): boolean {
    this.pass()
    return this.outlet.reopen()
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
    // A closed reader must not end the gateway: the callback of each write counts its lines.
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

  /** Nothing is read: later flushes do not wait until a write succeeds. */
  gaveUp(): void {
    this.isStuck = true
  }

  reopen(): boolean {
    return false
  }
}

/** A file, a terminal or a device. */
function openFile(dest: number | string, onLost: OnLost): Outlet {
  if (typeof dest === 'string') assertWritable(dest)
  // pino's destination cannot flush without a minimum length.
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
  /** With a full disk, the stream's own flush at exit would retry forever. */
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
    reopen() {
      if (typeof dest === 'number') return false
      assertWritable(dest)
      if (state.is !== 'closed') stream.reopen()
      return true
    },
  }
}

/** pino opens the file later, where an error would only lose lines. Several processes append to it. */
function assertWritable(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true })
    // Opening a FIFO would wait for its reader.
    if (statSync(path, { throwIfNoEntry: false })?.isFIFO() === true) return
    closeSync(openSync(path, 'a'))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`The log file ${path} (log.file) cannot be opened: ${reason}`, { cause })
  }
}

function linesIn(batch: string): number {
  return batch.split('\n').length - 1
}
