/**
 * Reads raw HTTP exchanges and server-sent events, for tests that check bytes. The reader of events is simple
 * on purpose and accepts only well-formed streams.
 */
import { connect } from 'node:net'
import { once } from 'node:events'

/** The bytes that a raw connection received until it ended. */
export interface RawReply {
  /** Everything, head included. */
  readonly bytes: Buffer
  readonly head: string
  /** After the head, chunk framing included. */
  readonly body: Buffer
  /** How the connection ended: an orderly FIN, a reset, or the time limit of the test. */
  readonly ended: 'fin' | 'reset' | 'timeout'
}

/** A POST that is written as bytes. */
export interface RawRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Maximum time until the connection closes; default: 2000. */
  readonly limitMs?: number
}

/** Sends a POST over a plain socket and returns every byte that arrives within `limitMs`. */
export async function rawPost(
  port: number,
  { path, headers, body, limitMs = 2000 }: RawRequest,
): Promise<RawReply> {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  let ended: RawReply['ended'] = 'fin'
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.on('error', () => {
    ended = 'reset'
  })
  const lines = Object.entries({
    host: 'emulator',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
  const timer = setTimeout(() => {
    ended = 'timeout'
    socket.destroy()
  }, limitMs)
  await once(socket, 'close').catch(() => undefined)
  clearTimeout(timer)
  const bytes = Buffer.concat(chunks)
  const split = bytes.indexOf('\r\n\r\n')
  const at = split < 0 ? bytes.length : split + 4
  return { bytes, head: bytes.subarray(0, at).toString('latin1'), body: bytes.subarray(at), ended }
}

/** The chunks of a chunked body, and whether the final chunk arrived. */
export function chunksOf(body: Buffer): { chunks: Buffer[]; complete: boolean } {
  const chunks: Buffer[] = []
  let at = 0
  for (;;) {
    const line = body.indexOf('\r\n', at)
    if (line < 0) {
      return { chunks, complete: false }
    }
    const size = Number.parseInt(body.toString('latin1', at, line), 16)
    if (size === 0) {
      return { chunks, complete: true }
    }
    if (body.length < line + 2 + size + 2) {
      return { chunks, complete: false }
    }
    chunks.push(body.subarray(line + 2, line + 2 + size))
    at = line + 2 + size + 2
  }
}

/** One event of a well-formed stream. */
export interface Event {
  /** `''` if it has none. */
  readonly name: string
  readonly data: string
}

/** The events of a well-formed stream, without comments. */
export function eventsOf(text: string): Event[] {
  return text
    .split(/\r\n\r\n|\n\n/)
    .map((block) => block.split(/\r\n|\n/))
    .map((lines) => ({
      name: field(lines, 'event').join(''),
      data: field(lines, 'data').join('\n'),
    }))
    .filter(({ data }) => data !== '')
}

function field(lines: readonly string[], name: string): string[] {
  return lines
    .filter((line) => line.startsWith(`${name}:`))
    .map((line) => line.slice(name.length + 1).replace(/^ /, ''))
}

/** The text of a body up to the end or the loss of its connection. */
export async function textUntilEnd(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of response.body ?? []) {
      if (chunk instanceof Uint8Array) text += decoder.decode(chunk, { stream: true })
    }
  } catch {
    // The gateway closes the connection after an error event.
  }
  return text
}
