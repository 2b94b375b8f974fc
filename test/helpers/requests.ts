/**
 * Reads request bodies in handlers of tests, and repeats requests.
 */
import type { HttpRequest } from '../../src/http/message.js'

/** Calls `done` with the whole body. */
export function bodyOf(req: HttpRequest, done: (body: Buffer) => void): void {
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => done(Buffer.concat(chunks)))
}

/** Repeats a request until the status is the wanted one, for 20 s; the last status. */
export async function eventually(ask: () => Promise<number>, status: number): Promise<number> {
  for (let tries = 0; tries < 1_000; tries += 1) {
    if ((await ask()) === status) return status
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return ask()
}
