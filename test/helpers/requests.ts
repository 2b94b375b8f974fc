/**
 * Bodies of requests that have come through the front door, for handlers in tests.
 */
import type { Request } from '../../src/http/request.js'

/** Calls back with the body once it is whole. */
export function bodyOf(req: Request, done: (body: Buffer) => void): void {
  const pieces: Buffer[] = []
  req.read({
    data: (piece) => pieces.push(piece),
    end: () => done(Buffer.concat(pieces)),
  })
}
