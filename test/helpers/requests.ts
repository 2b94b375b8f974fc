/**
 * Reads request bodies in handlers of tests.
 */
import type { HttpRequest } from '../../src/http/message.js'

/** Calls `done` with the whole body. */
export function bodyOf(req: HttpRequest, done: (body: Buffer) => void): void {
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => done(Buffer.concat(chunks)))
}
