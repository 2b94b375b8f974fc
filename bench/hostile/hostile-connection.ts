/** One hostile connection: sends raw bytes and returns a short result. */
import { createConnection, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** The address and the key of hostile clients. */
export interface Target {
  readonly port: number
  /** Their own address, so that throttling by address does not affect ordinary clients. */
  readonly from: string
  readonly secret: string
}

/** How long a hostile client waits for a reply. */
const REPLY_LIMIT_MS = 20_000

/** Opens a connection; errors after that only close it. Null if it was refused. */
export async function connect({ port, from }: Target): Promise<Socket | null> {
  const socket = createConnection({ port, host: '127.0.0.1', localAddress: from })
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(socket))
    socket.on('error', () => resolve(null))
  })
}

/** Sends the bytes on a new connection and returns the status of each reply until it closes or is silent. */
export async function send(target: Target, bytes: Buffer | string, quietMs = 0): Promise<string> {
  const socket = await connect(target)
  if (socket === null) return 'refused'
  const answers = statuses(socket, quietMs)
  socket.write(bytes)
  const found = await answers
  socket.destroy()
  return found
}

/**
 * The statuses of the replies, joined by `+`. Ends when the connection closes, after the first whole head if
 * `quietMs` is 0, otherwise after `quietMs` of silence.
 */
export function statuses(socket: Socket, quietMs: number): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const end = (word: string): void => {
      clearTimeout(timer)
      const found = [...text.matchAll(/(?:^|\n|\})HTTP\/1\.1 (\d{3})/g)].map(([, code]) => code)
      resolve(found.length === 0 ? word : found.join('+'))
    }
    let timer = setTimeout(() => end('no answer'), REPLY_LIMIT_MS)
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1').slice(0, 100_000)
      if (quietMs === 0 && text.includes('\r\n\r\n')) return end('')
      if (quietMs === 0) return
      clearTimeout(timer)
      timer = setTimeout(() => end('no answer'), quietMs)
    })
    socket.once('close', () => end('closed'))
  })
}

/** The bytes of a POST, by default of a chat. */
export function post(
  secret: string,
  body: Buffer | string,
  headers = '',
  path = '/v1/chat/completions',
): Buffer {
  const bytes = Buffer.from(body)
  const head =
    `POST ${path} HTTP/1.1\r\n` +
    'host: gateway\r\ncontent-type: application/json\r\n' +
    `authorization: Bearer ${secret}\r\ncontent-length: ${bytes.length}\r\n${headers}\r\n`
  return Buffer.concat([Buffer.from(head), bytes])
}

/** Writes a text a few bytes at a time until it is written, the connection closes or the time is over. */
export async function drip(
  socket: Socket,
  text: string,
  { everyMs, forMs }: { everyMs: number; forMs: number },
): Promise<void> {
  const until = performance.now() + forMs
  for (let at = 0; at < text.length && !socket.destroyed && performance.now() < until; at += 1) {
    socket.write(text.slice(at, at + 1))
    await sleep(everyMs)
  }
}
