/**
 * Sends a reply: the timing of its bytes, and the end of the connection.
 */
import type { ServerResponse } from 'node:http'
import type { Plan } from './content-faults.js'
import type { Fault } from './fault-table.js'
import { modeOf } from './fault-table.js'

/** How a body is cut into chunks: per unit, in one, per byte, every N bytes, or at these offsets. */
export type Chunking = 'events' | 'whole' | 'bytes' | number | readonly number[]

/** The progress of sending. */
interface SendProgress {
  /** Bytes of the body written to the connection. */
  bytesSent: number
  /** Becomes `faulted` if a fault truncates the reply. */
  outcome: 'open' | 'done' | 'client_closed' | 'faulted'
}

/** How a plan is to be sent. */
interface Pacing {
  readonly faults: readonly Fault[]
  /** Milliseconds between chunks. */
  readonly pace: number
  readonly chunking: Chunking
  readonly entry: SendProgress
}

/** Sends a reply without faults, unit by unit. */
export function sendAtOnce(response: ServerResponse, plan: Plan, entry: SendProgress): void {
  response.writeHead(plan.status, plan.headers)
  if (plan.units.length === 1) {
    const [unit = ''] = plan.units
    entry.bytesSent = Buffer.byteLength(unit)
    response.end(unit)
    return
  }
  response.cork()
  for (const unit of plan.units) {
    entry.bytesSent += Buffer.byteLength(unit)
    response.write(unit)
  }
  response.end()
}

/** Whether the faults change timing, chunks or the end of the connection. */
export function needsTime(faults: readonly Fault[], pace: number, chunking: Chunking): boolean {
  return pace > 0 || chunking !== 'events' || faults.some(({ kind }) => TIMED.has(kind))
}

const TIMED: ReadonlySet<string> = new Set([
  'delay',
  'drip',
  'chunks',
  'lump',
  'cut',
  'stall',
  'hang',
  'drop',
  'open',
  'extra',
  'empty',
])

/** Sends a reply with delays, truncation and abnormal ends. Resolves when nothing more will be sent. */
export async function sendPaced(response: ServerResponse, plan: Plan, pacing: Pacing): Promise<void> {
  const { faults, pace, entry } = pacing
  const paced = new PacedResponse(response, entry)
  const by = (kind: Fault['kind']): Fault | undefined => faults.find((fault) => fault.kind === kind)
  if (by('hang') !== undefined) {
    await paced.closed
    return
  }
  await paced.wait(delayOf(faults, 'headers'))
  if (by('drop') !== undefined) {
    await paced.cut('reset', Buffer.alloc(0))
    return
  }
  const units = plan.units.map((unit) => Buffer.from(unit))
  const body = Buffer.concat(units)
  const cut = by('cut')
  const stall = by('stall')
  const limit = Math.min(limitOf(cut, units, body.length), limitOf(stall, units, body.length))
  if (!paced.isGone()) {
    writeHead(response, plan, { cut, bodyBytes: body.length })
  }
  await paced.wait(delayOf(faults, 'first'))
  const between = pace + delayOf(faults, 'each') + (by('drip')?.ms ?? 0)
  const offsets = offsetsOf(units, body.length, chunkingOf(faults, pacing.chunking))
  let from = 0
  for (const offset of offsets) {
    const to = Math.min(offset, limit)
    if (paced.isGone() || to <= from) {
      break
    }
    if (from > 0) {
      await paced.wait(between)
    }
    await paced.write(body.subarray(from, to))
    from = to
  }
  if (stall !== undefined || by('open') !== undefined) {
    await paced.closed
  } else if (cut !== undefined) {
    await paced.cut(modeOf(cut), body.subarray(from))
  } else {
    const extra = by('extra')
    const again = units.at(-1 - plan.terminators) ?? Buffer.from('\n')
    while (extra !== undefined && !paced.isGone()) {
      await paced.wait(extra.ms ?? 10)
      await paced.write(again)
    }
    paced.finish()
  }
}

function delayOf(faults: readonly Fault[], mode: string): number {
  return faults
    .filter((fault) => fault.kind === 'delay' && modeOf(fault) === mode)
    .reduce((sum, { ms }) => sum + (ms ?? 0), 0)
}

function chunkingOf(faults: readonly Fault[], chunking: Chunking): Chunking {
  const sized = faults.find(({ kind }) => kind === 'drip' || kind === 'chunks')
  if (sized !== undefined) {
    return sized.bytes ?? 1
  }
  return faults.some(({ kind }) => kind === 'lump') ? 'whole' : chunking
}

function limitOf(fault: Fault | undefined, units: readonly Buffer[], whole: number): number {
  if (fault === undefined) {
    return whole
  }
  if (fault.bytes !== undefined) {
    return Math.min(fault.bytes, whole)
  }
  return units.slice(0, fault.event ?? 0).reduce((sum, { length }) => sum + length, 0)
}

/** The end offset of each chunk, ascending; the last one is the end of the body. */
function offsetsOf(units: readonly Buffer[], whole: number, chunking: Chunking): number[] {
  const offsets: number[] = []
  if (typeof chunking === 'object') {
    offsets.push(...chunking.filter((offset) => offset > 0 && offset < whole))
    offsets.sort((left, right) => left - right)
  } else if (chunking === 'events') {
    let at = 0
    for (const { length } of units) {
      at += length
      offsets.push(at)
    }
    return offsets
  } else if (chunking !== 'whole') {
    const size = chunking === 'bytes' ? 1 : Math.max(1, chunking)
    for (let at = size; at < whole; at += size) {
      offsets.push(at)
    }
  }
  offsets.push(whole)
  return offsets
}

function writeHead(
  response: ServerResponse,
  plan: Plan,
  { cut, bodyBytes }: { cut: Fault | undefined; bodyBytes: number },
): void {
  const mode = cut === undefined ? '' : modeOf(cut)
  const headers = { ...plan.headers }
  if (mode === 'length') {
    headers['content-length'] = String(bodyBytes)
  }
  if (mode === 'close') {
    // Without chunked encoding or a length, the end of the connection ends the body.
    response.useChunkedEncodingByDefault = false
    response.shouldKeepAlive = false
  }
  response.writeHead(plan.status, headers)
  response.flushHeaders()
}

const RESET_AFTER_MS = 10

/** A response with waits that end early if the client disconnects. */
class PacedResponse {
  /** Resolves when either side has closed the connection. */
  readonly closed: Promise<void>
  readonly #response: ServerResponse
  readonly #entry: SendProgress
  #gone = false
  #wake: (() => void) | undefined

  constructor(response: ServerResponse, entry: SendProgress) {
    this.#response = response
    this.#entry = entry
    this.closed = new Promise((resolve) => {
      const leave = (): void => {
        this.#gone = true
        this.#wake?.()
        resolve()
      }
      if (response.destroyed) {
        leave()
      } else {
        response.once('close', leave)
      }
    })
  }

  isGone(): boolean {
    return this.#gone
  }

  /** Waits `ms`, or until the client disconnects. */
  wait(ms: number): Promise<void> {
    if (ms <= 0 || this.#gone) {
      return Promise.resolve()
    }
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Resolves when the connection accepts more data. */
  write(bytes: Buffer): Promise<void> {
    if (this.#gone) {
      return Promise.resolve()
    }
    this.#entry.bytesSent += bytes.length
    if (this.#response.write(bytes)) {
      return Promise.resolve()
    }
    return new Promise((resolve) => {
      this.#wake = resolve
      this.#response.once('drain', resolve)
    })
  }

  finish(): void {
    this.#response.end()
  }

  /** Ends the connection in the given mode; `rest` is the unsent part of the body. */
  async cut(mode: string, rest: Buffer): Promise<void> {
    const { socket } = this.#response
    if (this.#gone) {
      return
    }
    this.#entry.outcome = 'faulted'
    if (mode === 'eof') {
      this.finish()
      return
    }
    if (socket === null) {
      return
    }
    await flushed(this.#response)
    if (mode === 'reset' && this.#entry.bytesSent > 0) {
      // libuv reports a reset directly after data as a normal end, so the client must read first.
      await this.wait(RESET_AFTER_MS)
    }
    if (mode === 'chunk') {
      // A chunk header with a larger size than the chunk.
      const part = rest.subarray(0, Math.ceil(rest.length / 2))
      this.#entry.bytesSent += part.length
      socket.write(Buffer.concat([Buffer.from(`${(rest.length + 16).toString(16)}\r\n`), part]))
    }
    if (mode === 'reset') {
      socket.resetAndDestroy()
    } else {
      socket.end()
    }
  }
}

/** Resolves when all written data has left the process. */
function flushed(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const { socket } = response
    if (socket === null || socket.destroyed) {
      resolve()
      return
    }
    // The callback of an empty write runs after all previous writes.
    socket.write('', () => resolve())
  })
}
