/**
 * A provider for tests of native access: files, audio and realtime endpoints like OpenAI's, and paths that
 * misbehave. It records the head of every request.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { WebSocketServer } from 'ws'
import { IS_LONG } from '../helpers/long-suite.js'

/** The head of a request that arrived. */
export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
}

/** A running provider. */
export interface Provider {
  /** The value for `base_url`, with the version. */
  readonly baseUrl: string
  readonly seen: Seen[]
  /** Bytes of request bodies that have arrived. */
  receivedBytes(): number
  /** Bytes of `GET /v1/big` that have been written. */
  writtenBytes(): number
  /** Requests whose connection closed before their reply was complete. */
  aborted(): number
  /** WebSockets that are open. */
  readonly sockets: WebSocketServer['clients']
}

/** `API_KEY` of the configuration. */
export const UPSTREAM_KEY = 'sk-of-the-upstream'
export const BIG_BYTES = (IS_LONG ? 200 : 64) * 1024 * 1024
const CHUNK = Buffer.alloc(65_536, 'x')

/** Listens on a free port until the test ends. */
export async function startProvider(t: Test): Promise<Provider> {
  const seen: Seen[] = []
  const files = new Map<string, { readonly name: string; readonly body: Buffer }>()
  const counts = { received: 0, written: 0, aborted: 0 }
  const server: Server = createServer((req, res) => {
    const { method = '', url = '', headers } = req
    seen.push({ method, url, headers })
    if (url !== '/v1/unread') req.on('data', (chunk: Buffer) => (counts.received += chunk.length))
    res.once('close', () => {
      if (!res.writableFinished) counts.aborted += 1
    })
    void serve(req, res, { files, counts })
  })
  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (req: IncomingMessage, socket, head) => {
    seen.push({ method: 'GET', url: req.url ?? '', headers: req.headers })
    if (req.url === '/v1/denied') {
      const body = '{"error":"Incorrect API key provided: sk-of***eam"}'
      socket.end(`HTTP/1.1 401 Unauthorized\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
      return
    }
    if (!(req.url ?? '').startsWith('/v1/realtime')) {
      socket.end('HTTP/1.1 404 Not Found\r\nset-cookie: a=b\r\ncontent-length: 2\r\n\r\nno')
      return
    }
    sockets.handleUpgrade(req, socket, head, (client) => {
      client.send(JSON.stringify({ type: 'session.created', event_id: 'e1', session: {} }))
      client.on('message', (text: Buffer, isBinary) => client.send(text, { binary: isBinary }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const client of sockets.clients) client.terminate()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    seen,
    receivedBytes: () => counts.received,
    writtenBytes: () => counts.written,
    aborted: () => counts.aborted,
    sockets: sockets.clients,
  }
}

interface ProviderState {
  /** The uploaded files, by id. */
  readonly files: Map<string, { readonly name: string; readonly body: Buffer }>
  readonly counts: { written: number }
}

async function serve(
  req: IncomingMessage,
  res: ServerResponse,
  { files, counts }: ProviderState,
): Promise<void> {
  const { method = '', url = '' } = req
  const path = url.split('?')[0] ?? ''
  const [, id = '', part] = /^\/v1\/files\/([^/]+)(\/content)?$/.exec(path) ?? []
  const json = (status: number, value: unknown): void => {
    res.writeHead(status, {
      'content-type': 'application/json',
      'set-cookie': 'session=1',
      'x-api-key': 'leak',
      'x-request-id': 'req_upstream',
      'x-kept': 'yes',
    })
    res.end(JSON.stringify(value))
  }
  const file = (key: string): object => {
    const file = files.get(key)
    return { id: key, object: 'file', bytes: file?.body.length ?? 0, filename: file?.name ?? '' }
  }
  if (method === 'POST' && path === '/v1/files') {
    const body = await buffer(req).catch(() => null)
    if (body === null) return
    const key = `file-${files.size + 1}`
    files.set(key, { name: 'notes.jsonl', body })
    json(200, file(key))
  } else if (method === 'GET' && path === '/v1/files') {
    json(200, { object: 'list', data: [...files.keys()].map(file), has_more: false })
  } else if (files.has(id) && method === 'DELETE') {
    files.delete(id)
    json(200, { id, object: 'file', deleted: true })
  } else if (files.has(id) && part !== undefined) {
    res.writeHead(200, { 'content-type': 'application/octet-stream' })
    res.end(files.get(id)?.body)
  } else if (files.has(id)) {
    json(200, file(id))
  } else if (path === '/v1/audio/transcriptions') {
    await buffer(req)
    json(200, { text: 'hello', usage: { type: 'tokens', input_tokens: 14, output_tokens: 45 } })
  } else if (path === '/v1/audio/speech') {
    await buffer(req)
    res.writeHead(200, { 'content-type': 'audio/mpeg' })
    res.end(Buffer.from([0xff, 0xfb, 0x90, 0x64]))
  } else {
    await misbehave(path, { req, res }, counts)
  }
}

async function misbehave(
  path: string,
  { req, res }: { req: IncomingMessage; res: ServerResponse },
  counts: { written: number },
): Promise<void> {
  switch (path) {
    case '/v1/sink':
      req.on('end', () => res.end('{}'))
      req.resume()
      return
    case '/v1/unread':
      return
    case '/v1/silent':
      req.resume()
      return
    case '/v1/denied':
      res.writeHead(401).end('{"error":"Incorrect API key provided: sk-of***eam"}')
      return
    case '/v1/half':
      res.writeHead(200, { 'content-length': '100' })
      res.write('half')
      setTimeout(() => res.destroy(), 50)
      return
    case '/v1/big':
      res.writeHead(200, { 'content-type': 'application/octet-stream' })
      while (counts.written < BIG_BYTES && !res.destroyed) {
        counts.written += CHUNK.length
        if (res.write(CHUNK)) continue
        await new Promise<void>((resolve) => {
          const go = (): void => {
            res.off('drain', go).off('close', go)
            resolve()
          }
          res.on('drain', go).on('close', go)
        })
      }
      res.end()
      return
    default:
      res.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not here"}')
  }
}
