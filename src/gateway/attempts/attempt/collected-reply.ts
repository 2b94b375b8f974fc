/**
 * Collects a body that is read before the client gets any of it: a whole reply, or the error of an upstream.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { WireError } from '../../../errors.js'
import { joinChunks } from '../../bodies/join-chunks.js'
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
    return true
  }

  /** Reads the whole reply; `begun` has the earlier parts, null if there are none. Throws as `readReply`. */
  read(prepared: PreparedRequest, begun: WholeReply | null): ReadReply | Promise<ReadReply> {
    const beganMs = performance.now()
    const bytes = joinChunks(this.chunks)
    const reply = { bytes, target: this.target, isEvents: isEventStream(this.headers), begun }
    const read = readReply(reply, prepared, this.owner)
    this.owner.translated(performance.now() - beganMs)
    return read
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
