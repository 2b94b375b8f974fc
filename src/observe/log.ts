/**
 * The log: JSON lines by pino, with fields of two closed lists, one line per exchange. Texts that look like
 * keys are replaced in each finished line.
 */
import { closeSync, fstatSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { pino } from 'pino'
import { GatewayError, rowOf } from '../errors.js'
import { hideSecrets } from '../hide-secrets.js'
import {
  eventFields,
  exchangeFields,
  clip,
  clipMiddle,
  type EventFields,
  type ExchangeLine,
} from './log-fields.js'

/** The minimum level. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Writes lines; never throws and never blocks. */
export interface Logger {
  /** The one line of an exchange: `warn` for a failure of the gateway or a provider, `info` otherwise. */
  exchangeLine(fields: ExchangeLine): void
  debug(event: string, fields?: EventFields): void
  info(event: string, fields?: EventFields): void
  warn(event: string, fields?: EventFields): void
  /** Logs the kind, code and message of `error`, without secrets; its stack at level `debug` only. */
  error(event: string, error: unknown, fields?: EventFields): void
  /**
   * Resolves when all lines are written, or after `timeoutMs` (1000). A destination that accepted nothing
   * during one flush is not waited for again until it accepts a line.
   */
  flush(timeoutMs?: number): Promise<void>
  /**
   * Opens the log's file again after it was renamed, and logs that. False if the destination is not a file.
   * If the path cannot be opened, the former file stays in use, with a line about the failure.
   */
  reopen(): boolean
  /** Changes level and destination. Throws if the path cannot be opened; then nothing changes. */
  changeTo(options: Pick<LoggerOptions, 'level' | 'file'>): void
}

/** How to open a log. */
interface LoggerOptions {
  readonly level: LogLevel
  /** The path of a file; null or absent: `destination`. */
  readonly file?: string | null
  /** Standard output by default. */
  readonly destination?: LogDestination
  /** Called with the number of lines that were dropped. */
  readonly onLost?: (lines: number) => void
}

/** Opens the log. Throws if a path cannot be opened. */
export function createLogger(options: LoggerOptions): Logger {
  const onLost = options.onLost ?? (() => undefined)
  const destinationOf = (file: string | null | undefined) => file ?? options.destination ?? 1
  let destination = destinationOf(options.file)
  let sink = openSink(destination, onLost)
  /** The fields of the line that is being written if it is one of an exchange. */
  let exchange = ''
  const out = pino(
    {
      level: options.level,
      base: { pid: process.pid },
      timestamp,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: (line) => hideSecrets(withFields(line, exchange), '***') },
    },
    { write: (line: string) => sink.write(line) },
  )
  const logger: Logger = {
    exchangeLine(fields) {
      const { cause, status } = fields
      const isSerious = cause === 'gateway' || cause === 'provider' || status >= 500
      const level = isSerious ? 'warn' : 'info'
      if (!out.isLevelEnabled(level)) return
      // Twice as fast as pino's loop over 50 fields, with the same text.
      exchange = JSON.stringify(exchangeFields(fields)).slice(1, -1)
      out[level]('exchange')
      exchange = ''
    },
    debug: (event, fields = {}) => out.debug(eventFields(fields), event),
    info: (event, fields = {}) => out.info(eventFields(fields), event),
    warn: (event, fields = {}) => out.warn(eventFields(fields), event),
    error(event, error, fields = {}) {
      out.error({ ...eventFields(fields), error: describeError(error, out.isLevelEnabled('debug')) }, event)
    },
    flush: (timeoutMs) => sink.flush(timeoutMs),
    reopen() {
      try {
        if (!sink.reopen()) return false
        logger.info('log file reopened')
      } catch (error) {
        logger.error('log file not reopened; writing to the former one', error)
      }
      return true
    },
    changeTo({ level, file }) {
      const wanted = destinationOf(file)
      if (wanted !== destination) {
        const former = sink
        sink = openSink(wanted, onLost)
        destination = wanted
        void former.flush()
      }
      out.level = level
    },
  }
  return logger
}

/** The end of pino's line of an exchange. */
const EXCHANGE_END = ',"msg":"exchange"}\n'

/** The line with the fields before its message. */
function withFields(line: string, fields: string): string {
  if (fields === '') return line
  return `${line.slice(0, -EXCHANGE_END.length)},${fields}${EXCHANGE_END}`
}

let lastMs = 0
let lastTime = ''

/**
 * The member `time` in the format of pino's `isoTime`, cached per millisecond; uncached, it costs 0.6 µs per
 * line.
 */
function timestamp(): string {
  const nowMs = Date.now()
  if (nowMs !== lastMs) {
    lastMs = nowMs
    lastTime = `,"time":"${new Date(nowMs).toISOString()}"`
  }
  return lastTime
}

/** An error as it appears in the log. */
interface ErrorDescription {
  kind: string
  message: string
  code?: string
  cause?: ErrorDescription
  stack?: string[]
}

/** Maximum depth of logged causes. */
const MAX_CAUSES = 3

/**
 * Describes an error for the log, without secrets and without content from clients or upstreams.
 * `formats/wire/upstream-errors.ts` is stricter and makes an upstream's message safe for clients.
 */
function describeError(error: unknown, withStack: boolean, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) return { kind: typeof error, message: 'not an Error' }
  const described: ErrorDescription = { kind: kindOf(error), message: messageOf(error) }
  if ('code' in error && typeof error.code === 'string') described.code = clip(error.code)
  if (error.cause !== undefined && depth < MAX_CAUSES) {
    described.cause = describeError(error.cause, withStack, depth + 1)
  }
  if (withStack && error.stack !== undefined) {
    const frames = error.stack.split('\n').filter((line) => /^\s+at /.test(line))
    described.stack = frames.map((line) => line.trim())
  }
  return described
}

function kindOf(error: Error): string {
  return error instanceof GatewayError ? error.kind : clip(error.name)
}

/**
 * Messages about content of a client or upstream may quote it, so only the gateway's own messages are logged.
 * V8 quotes the text that JSON.parse failed on, and Node the invalid argument.
 */
function messageOf(error: Error): string {
  if (error instanceof GatewayError && rowOf(error.kind).source !== 'gateway') {
    return `see the kind '${error.kind}'`
  }
  const message = error instanceof SyntaxError ? error.message.replace(/"[^]*"/, '"…"') : error.message
  return clipMiddle(hideSecrets(message.replace(/Received [^]*/, 'Received …'), '***'))
}

// Writes log lines asynchronously in batches, with at most 8 MiB waiting. A slow destination neither blocks
// the event loop nor delays exit; lines that it does not accept in time are dropped and counted.
//
// Pipes and sockets are written through `process.stdout`, which does not block for these. `fs` would occupy a
// thread of the pool until the reader reads, and Node joins those threads before it exits.

/** A file descriptor, the path of a file, or an object that takes whole lines. */
type LogDestination = number | string | { write(line: string): void }

/** Accepts lines; never throws. */
interface Sink {
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
function openSink(destination: LogDestination, onLost: OnLost): Sink {
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
