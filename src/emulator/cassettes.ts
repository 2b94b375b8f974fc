/**
 * Replays recorded replies of upstreams: a request that equals a recorded one in method, path and JSON body
 * gets its bytes.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { arrayOf, isObject, numberOf, objectOf, stringOf } from '../base/json.js'

interface Chunk {
  readonly atMs: number
  readonly bytes: Buffer
}

interface Cassette {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly chunks: readonly Chunk[]
}

/** The reply of a recording that `record.redact` left out. */
const REDACTED = '[redacted]'
/** Headers of a connection, which are not replayed. */
const HOP = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding'])
/** The prefixes of the emulated providers' base URLs. */
const PREFIX = /^\/(?:openai|anthropic|gemini|bedrock)(?=\/)/

/** The recorded replies of a file or a folder of files. */
export class Cassettes {
  private readonly replies = new Map<string, Cassette>()

  /** Throws an Error that names a file that is no cassette. */
  constructor(path: string) {
    const files = statSync(path).isDirectory()
      ? readdirSync(path)
          .filter((name) => name.endsWith('.json'))
          .map((name) => join(path, name))
      : [path]
    for (const file of files.sort()) this.add(file)
  }

  get size(): number {
    return this.replies.size
  }

  private add(file: string): void {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
    const { version, request, response } = objectOf(value)
    if (version !== 1 || !isObject(request) || !isObject(response)) {
      throw new Error(`${file} is no cassette of version 1`)
    }
    if (arrayOf(response['chunks']).some((chunk) => objectOf(chunk)['data'] === REDACTED)) {
      throw new Error(`${file} has a redacted reply, which cannot be replayed`)
    }
    const { method, path, body = null } = request
    const raw = typeof body === 'string' ? body : JSON.stringify(body)
    const key = keyOf(stringOf(method) ?? 'POST', stringOf(path) ?? '', raw)
    const headers: Record<string, string> = {}
    for (const [name, text] of Object.entries(objectOf(response['headers']))) {
      if (typeof text === 'string' && !HOP.has(name.toLowerCase())) headers[name] = text
    }
    this.replies.set(key, {
      status: numberOf(response['status']) ?? 200,
      headers,
      chunks: arrayOf(response['chunks']).map(chunkIn),
    })
  }

  /**
   * Answers a request; 404 if none was recorded. `paceMs`: time between two chunks; null: the recorded times.
   */
  async answer(
    request: IncomingMessage,
    raw: Buffer,
    { response, paceMs }: { readonly response: ServerResponse; readonly paceMs: number | null },
  ): Promise<void> {
    const key = keyOf(request.method ?? 'GET', request.url ?? '', raw.toString('utf8'))
    const reply = this.replies.get(key)
    if (reply === undefined) {
      const message = 'No cassette has this method, path and JSON body.'
      response.writeHead(404, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { message, type: 'not_found' } }))
      return
    }
    const beganMs = performance.now()
    const waitUntil = async (atMs: number): Promise<void> => {
      const waitMs = atMs - (performance.now() - beganMs)
      if (waitMs > 0) await delay(waitMs)
    }
    const [first] = reply.chunks
    if (paceMs === null) await waitUntil(first?.atMs ?? 0)
    response.writeHead(reply.status, reply.headers)
    for (const [at, { atMs, bytes }] of reply.chunks.entries()) {
      await waitUntil(paceMs === null ? atMs : at * paceMs)
      if (response.destroyed) return
      response.write(bytes)
    }
    response.end()
  }
}

function chunkIn(value: unknown): Chunk {
  const { at_ms: atMs, data, base64 } = objectOf(value)
  const bytes = typeof base64 === 'string' ? Buffer.from(base64, 'base64') : Buffer.from(stringOf(data) ?? '')
  return { atMs: numberOf(atMs) ?? 0, bytes }
}

function keyOf(method: string, path: string, body: string): string {
  return `${method.toUpperCase()} ${path.replace(PREFIX, '')}\n${canonical(body)}`
}

/** The JSON text with sorted members; other text unchanged. */
function canonical(text: string): string {
  try {
    return JSON.stringify(sorted(JSON.parse(text)))
  } catch {
    return text
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, member]) => [name, sorted(member)]))
}
