/**
 * A client that writes any bytes, with any timing, and collects the replies.
 * It parses only as much HTTP as replies need.
 */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { stopwatch } from '../../helpers/stopwatch.js'

/** A parsed reply. */
export interface RawAnswer {
  status: number
  headers: Record<string, string>
  body: string
}

/** The bytes and replies of a connection until it closed or the time limit passed. */
export interface RawOutcome {
  answers: RawAnswer[]
  text: string
  /** False if the time limit passed first. */
  closed: boolean
  tookMs: number
  /** The part of the time in which this process could run, for upper limits. */
  ownMs: number
}

/** Sends the chunks in sequence and collects replies until the server closes or the time limit passes. */
export async function send(
  port: number,
  chunks: string | Buffer | (string | Buffer)[],
  options: { waitMs?: number; chunkEveryMs?: number } = {},
): Promise<RawOutcome> {
  const { waitMs = 3000, chunkEveryMs = 5 } = options
  const startedAt = performance.now()
  const watch = stopwatch()
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.on('error', () => undefined)
  const closed = new Promise<boolean>((resolve) => {
    socket.once('close', () => resolve(true))
    socket.setTimeout(waitMs, () => resolve(false))
  })
  void writeAll(socket, Array.isArray(chunks) ? chunks : [chunks], chunkEveryMs)
  const isClosed = await closed
  socket.destroy()
  return {
    answers: answersIn(text),
    text,
    closed: isClosed,
    tookMs: performance.now() - startedAt,
    ownMs: watch(),
  }
}

async function writeAll(socket: Socket, chunks: (string | Buffer)[], everyMs: number): Promise<void> {
  for (const [i, chunk] of chunks.entries()) {
    if (i > 0) await new Promise((resolve) => setTimeout(resolve, everyMs))
    if (!socket.writable) return
    socket.write(typeof chunk === 'string' ? Buffer.from(chunk, 'latin1') : chunk)
  }
}

/** Parses the replies in a text, each with a content-length; `100 Continue` is a reply without a body. */
function answersIn(text: string): RawAnswer[] {
  const answers: RawAnswer[] = []
  let rest = text
  for (;;) {
    const end = rest.indexOf('\r\n\r\n')
    const [line = '', ...lines] = rest.slice(0, end).split('\r\n')
    const status = /^HTTP\/1\.1 (\d{3})/.exec(line)?.[1]
    if (end === -1 || status === undefined) return answers
    const headers: Record<string, string> = {}
    for (const header of lines) {
      const colon = header.indexOf(':')
      headers[header.slice(0, colon).toLowerCase()] = header.slice(colon + 1).trim()
    }
    const length = Number(headers['content-length'] ?? 0)
    answers.push({
      status: Number(status),
      headers,
      body: rest.slice(end + 4, end + 4 + length),
    })
    rest = rest.slice(end + 4 + length)
  }
}
