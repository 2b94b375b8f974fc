/**
 * The emulator: an HTTP server for the formats of all three providers, with scripted faults. It shares no
 * codec with the gateway, so that each format has two independent implementations.
 */
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Handler } from './handle-request.js'
import { Ledger } from './ledger.js'
import { Script } from './faults/fault-script.js'
import type { EmulatorOptions } from './handle-request.js'
import type { LedgerEntry } from './ledger.js'
import type { Recording, ScriptEntry } from './faults/fault-script.js'
import type { Chunking } from './faults/timing-faults.js'

/** Options of a replay. */
export interface ReplayOptions {
  readonly match?: ScriptEntry['match']
  /** Number of requests; default 1. */
  readonly times?: number
  /** Default `whole`. */
  readonly chunking?: Chunking
  readonly fault?: ScriptEntry['fault']
}

/** A recorded reply in the form of the fixtures. */
export interface RecordedReply {
  readonly status: number
  readonly stream?: boolean
  readonly response_headers: Readonly<Record<string, string>>
  readonly response_body: string
}

/** A running emulator. */
export interface Emulator {
  readonly port: number
  readonly origin: string
  readonly baseUrls: {
    readonly openai: string
    readonly anthropic: string
    readonly gemini: string
  }
  /** The recorded requests, oldest first. */
  readonly ledger: readonly LedgerEntry[]
  /** Requests in flight. */
  open(): number
  /** Scripts a fault; returns a function that removes it. Without `times` it applies to all requests. */
  script(entry: Pick<ScriptEntry, 'match' | 'times' | 'fault'>): () => void
  /** Replies to the next request with exactly these bytes. */
  replay(recording: Recording | RecordedReply, options?: ReplayOptions): () => void
  /** Clears the script and the ledger. */
  reset(): void
  /** Closes all connections. Resolves when the port is free. */
  close(): Promise<void>
}

/** Starts an emulator. Rejects if the port is not available. */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const ledger = new Ledger(options.ledger ?? 10_000)
  const script = new Script()
  const handler = new Handler(script, ledger, options)
  const server = createServer({ keepAlive: true, noDelay: true }, (request, response) => {
    serve(handler, request, response)
  })
  server.keepAliveTimeout = 60_000
  server.requestTimeout = 0
  const host = options.host ?? '127.0.0.1'
  const port = await listen(server, options.port ?? 0, host)
  const origin = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  return {
    port,
    origin,
    baseUrls: {
      openai: `${origin}/openai/v1`,
      anthropic: `${origin}/anthropic/v1`,
      gemini: `${origin}/gemini/v1beta`,
    },
    get ledger() {
      return ledger.entries
    },
    open: () => handler.open,
    script: (entry) => script.add(entry),
    replay: (recording, replay = {}) =>
      script.add({
        ...replay,
        times: replay.times ?? 1,
        chunking: replay.chunking ?? 'whole',
        replay: recordedOf(recording),
      }),
    reset: () => {
      script.clear()
      ledger.clear()
      handler.forget()
    },
    close: () => close(server),
  }
}

function serve(handler: Handler, request: IncomingMessage, response: ServerResponse): void {
  handler.handle(request, response).catch(() => response.destroy())
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, 1024, () => {
      server.removeListener('error', reject)
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

/** Hop-by-hop headers of a recording, which are not replayed. */
const HOP = new Set([
  'transfer-encoding',
  'content-length',
  'content-encoding',
  'connection',
  'date',
])

function recordedOf(recording: Recording | RecordedReply): Recording {
  if ('body' in recording) {
    return recording
  }
  const { status, stream, response_headers, response_body } = recording
  const headers = Object.fromEntries(
    Object.entries(response_headers).filter(([name]) => !HOP.has(name.toLowerCase())),
  )
  headers['content-type'] ??= stream === true ? 'text/event-stream' : 'application/json'
  return { status, headers, body: response_body }
}
