/**
 * Bodies of requests that have come through the listener, for handlers in tests.
 */
import type { HttpRequest } from '../../src/http/message.js'

/** Calls back with the body once it is whole. */
export function bodyOf(req: HttpRequest, done: (body: Buffer) => void): void {
  const pieces: Buffer[] = []
  req.on('data', (piece: Buffer) => pieces.push(piece)).on('end', () => done(Buffer.concat(pieces)))
}
