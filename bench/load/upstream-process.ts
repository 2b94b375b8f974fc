/**
 * The process of the provider of streams: `node upstream-process.js '{"port":…,…}'`. Writes prepared bytes to
 * plain sockets and reads as little of a request as possible, so that it costs as little as a provider in C.
 */
import { createServer, type Socket } from 'node:net'
import { PATHS, streamFrames, wholeReply, type Shape } from './sample-traffic.js'
import { numberField, RequestReader } from './raw-http.js'

/** How the fragments of a stream are sent. */
interface Plan {
  readonly port: number
  readonly fragments: number
  /** Milliseconds between two fragments; 0 sends all at once. */
  readonly everyMs: number
}

interface Rendered {
  readonly whole: Buffer
  readonly burst: Buffer
  readonly opening: Buffer
  readonly fragments: readonly Buffer[]
  readonly closing: Buffer
}

/** A running stream and its next fragment. */
interface Stream {
  readonly socket: Socket
  readonly rendered: Rendered
  next: number
}

/** Interval of the timer; each stream gets one fragment in `everyMs`. */
const TICK_MS = 2
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
const END = '0\r\n\r\n'

function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
}

function render(shape: Shape, fragments: number): Rendered {
  const frames = streamFrames(shape, fragments)
  const opening = HEAD + frames.before.map(chunk).join('')
  const closing = frames.after.map(chunk).join('') + END
  const reply = wholeReply(shape)
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: '
  return {
    whole: Buffer.from(`${head}${Buffer.byteLength(reply)}\r\n\r\n${reply}`),
    burst: Buffer.from(opening + frames.fragments.map(chunk).join('') + closing),
    opening: Buffer.from(opening),
    fragments: frames.fragments.map((frame) => Buffer.from(chunk(frame))),
    closing: Buffer.from(closing),
  }
}

/** Writes one fragment to each stream every `everyMs`, a share of the streams at a time. */
class Pacer {
  private readonly buckets: Set<Stream>[]
  private newest = 0
  private at = 0

  constructor(everyMs: number) {
    this.buckets = Array.from({ length: Math.max(1, Math.round(everyMs / TICK_MS)) }, () => new Set())
    let due = performance.now()
    setInterval(() => {
      for (const now = performance.now(); due <= now; due += TICK_MS) this.tick()
    }, 1)
  }

  add(socket: Socket, rendered: Rendered): void {
    const stream: Stream = { socket, rendered, next: 0 }
    const bucket = this.buckets[this.newest++ % this.buckets.length]
    bucket?.add(stream)
    socket.once('close', () => bucket?.delete(stream))
    socket.write(rendered.opening)
  }

  private tick(): void {
    const bucket = this.buckets[this.at++ % this.buckets.length]
    for (const stream of bucket ?? []) {
      const fragment = stream.rendered.fragments[stream.next++]
      if (fragment !== undefined) {
        stream.socket.write(fragment)
        continue
      }
      stream.socket.write(stream.rendered.closing)
      bucket?.delete(stream)
    }
  }
}

function serve(plan: Plan): void {
  const rendered = new Map<string, Rendered>()
  for (const shape of ['anthropic', 'openai'] as const) {
    rendered.set(PATHS[shape], render(shape, plan.fragments))
  }
  const pacer = plan.everyMs === 0 ? null : new Pacer(plan.everyMs)
  const server = createServer((socket) => {
    socket.setNoDelay(true)
    const reader = new RequestReader((path, body) => {
      const reply = rendered.get(path)
      if (reply === undefined) socket.destroy()
      else if (!body.includes('"stream":true')) socket.write(reply.whole)
      else if (pacer === null) socket.write(reply.burst)
      else pacer.add(socket, reply)
    })
    socket.on('data', (bytes) => reader.write(bytes))
    socket.on('error', () => socket.destroy())
  })
  server.listen(plan.port, '127.0.0.1')
}

process.once('disconnect', () => process.exit(0))
const given = process.argv[2] ?? ''
serve({
  port: numberField(given, 'port'),
  fragments: numberField(given, 'fragments'),
  everyMs: numberField(given, 'everyMs'),
})
