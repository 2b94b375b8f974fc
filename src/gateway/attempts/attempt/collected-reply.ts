/**
 * Collects a body that is read before the client gets any of it: a whole reply, or the error of an upstream.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { WireError } from '../../../errors.js'
import { isAscii } from 'node:buffer'
import { ReplyScan } from '../../../wire/json/scan/reply-scan.js'
import type { Steps } from '../../../wire/steps.js'
import { inTurns } from '../../bodies/in-turns.js'
import { joinChunks, LARGE_BYTES } from '../../bodies/join-chunks.js'
import type { Target } from '../../generation/generation.js'
import type { WholeReply } from '../../streams/whole-reply.js'
import { isEventStream } from '../reply/read-head.js'
import { readReply, roomFor, type ReadReply } from '../reply/read-reply.js'
import type { AttemptOwner, PreparedRequest } from './attempt-owner.js'

/** Collects the body of one reply. */
export class CollectedReply {
  headers: IncomingHttpHeaders = {}
  private readonly owner: Pick<AttemptOwner, 'exchange' | 'held' | 'translated'>
  private readonly target: Target
  private chunks: Buffer[] = []
  private bytes = 0
  /** Set for a large reply in JSON, which is scanned while it arrives. */
  private scan: ReplyScan | null = null
  /** Number of chunks that were scanned. */
  private scanned = 0
  private isScanning = false

  constructor(
    owner: Pick<AttemptOwner, 'exchange' | 'held' | 'translated'>,
    target: CollectedReply['target'],
  ) {
    this.owner = owner
    this.target = target
  }

  /** Keeps a chunk; false if the body exceeds its limit. Throws `overloaded` if there is no memory for it. */
  keep(chunk: Buffer, isReply: boolean): boolean {
    this.owner.held.takeReply(chunk.length)
    this.bytes += chunk.length
    if (this.bytes > roomFor(isReply)) return false
    this.chunks.push(chunk)
    if (this.bytes > LARGE_BYTES && isReply && !isEventStream(this.headers)) this.startScan()
    return true
  }

  /** Scans what has arrived, in turns of the event loop of its own. */
  private startScan(): void {
    this.scan ??= new ReplyScan()
    if (this.isScanning) return
    this.isScanning = true
    void inTurns(this.scanSteps(this.scan)).finally(() => {
      this.isScanning = false
    })
  }

  private *scanSteps(scan: ReplyScan): Steps<ReplyScan> {
    for (;;) {
      const chunk = this.chunks[this.scanned]
      if (chunk === undefined) return scan
      this.scanned += 1
      scan.add(chunk.toString('latin1'), isAscii(chunk))
      yield
    }
  }

  /** Reads the whole reply; `begun` has the earlier parts, null if there are none. Throws as `readReply`. */
  read(prepared: PreparedRequest, begun: WholeReply | null): ReadReply | Promise<ReadReply> {
    const beganMs = performance.now()
    const { chunks, bytes, target, owner } = this
    const scan = this.scan === null ? null : this.scanSteps(this.scan)
    const isEvents = isEventStream(this.headers)
    const { exchange, held } = owner
    const read = readReply(
      { chunks, bytes, scan, target, isEvents, begun },
      { prepared, exchange, held },
    )
    const translated = (): void => owner.translated(performance.now() - beganMs)
    if (!(read instanceof Promise)) translated()
    return read instanceof Promise ? read.finally(translated) : read
  }

  /** The error in the body. Throws what the codec throws. */
  refusal(status: number): WireError {
    const text = joinChunks(this.chunks).toString('utf8')
    return this.target.egress.decodeError(status, withDate(this.headers), text)
  }

  /** Drops the body. */
  drop(): void {
    this.chunks = []
  }
}

/** The headers with a date: a `retry-after` that is a date is relative to it. */
function withDate(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const isDated = !Number.isNaN(Date.parse(headers.date ?? ''))
  return isDated ? headers : { ...headers, date: new Date().toUTCString() }
}
