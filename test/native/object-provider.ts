/**
 * A provider for tests of shared accounts: every path is a collection of objects, as OpenAI, Anthropic and
 * Gemini have them. It records every request that reaches it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { listen } from '../helpers/listen.js'

/** A request that arrived. */
export interface Arrived {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A running provider. */
export interface ObjectProvider {
  readonly origin: string
  readonly seen: Arrived[]
  /** Replies to `METHOD path` instead of the collections: a value, or a text of another type. */
  readonly replies: Map<string, unknown>
}

type Item = Record<string, unknown>

/** Listens on a free port until the test ends. */
export async function startObjectProvider(t: Test): Promise<ObjectProvider> {
  const seen: Arrived[] = []
  const replies = new Map<string, unknown>()
  const lists = new Map<string, Item[]>()
  const server = createServer((req, res) => void serve(req, res))
  const port = await listen(t, server)
  return { origin: `http://127.0.0.1:${port}`, seen, replies }

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = req
    const body = (await buffer(req).catch(() => Buffer.alloc(0))).toString()
    if (!req.complete) return
    seen.push({ method, url, headers, body })
    const path = url.split('?')[0] ?? ''
    if (headers['x-goog-upload-command'] === 'start') {
      const url = `https://upload.example.com${path}?upload_id=up-1&upload_protocol=resumable`
      res.writeHead(200, { 'x-goog-upload-url': url, 'x-goog-upload-status': 'active' }).end()
      return
    }
    const own = replies.get(`${method} ${path}`)
    if (own !== undefined) return send(res, own)
    const [collection, id] = split(path)
    const list = lists.get(collection) ?? []
    lists.set(collection, list)
    if (id !== null) {
      const item = list.find((entry) => entry['id'] === id || entry['name'] === id)
      if (method === 'DELETE' && item !== undefined) list.splice(list.indexOf(item), 1)
      send(res, item === undefined ? undefined : method === 'DELETE' ? { id, deleted: true } : item)
    } else if (method === 'POST') {
      const item = created(path, list.length + 1, body)
      list.push(item)
      send(res, path.startsWith('/upload/') ? { file: item } : item)
    } else send(res, page(path, list))
  }
}

/** The collection and the object that a path names. */
function split(path: string): [collection: string, id: string | null] {
  const [, google] = /^\/(?:upload\/)?v1beta\/([^/]+)\/?/.exec(path) ?? []
  if (google !== undefined) {
    const name = path.replace(/^\/(?:upload\/)?v1beta\//, '')
    return [google, name.includes('/') ? name : null]
  }
  const [, collection = path, id = null] =
    /^(\/v1\/(?:messages\/|fine_tuning\/)?[^/]+)(?:\/([^/]+))?/.exec(path) ?? []
  return [collection, id]
}

function created(path: string, number: number, body: string): Item {
  if (path.includes('v1beta')) {
    const [, collection = ''] = /v1beta\/([^/:]+)/.exec(path) ?? []
    return { name: `${collection}/g${number}`, displayName: 'a, "b"', bytes: body.length }
  }
  const kinds: Record<string, [prefix: string, object: string]> = {
    '/v1/files': ['file-', 'file'],
    '/v1/batches': ['batch_', 'batch'],
    '/v1/messages/batches': ['msgbatch_', 'message_batch'],
    '/v1/vector_stores': ['vs_', 'vector_store'],
    '/v1/responses': ['resp_', 'response'],
  }
  const [prefix, object] = kinds[path] ?? ['obj_', 'object']
  return { id: `${prefix}${number}`, object, note: 'a, "b"' }
}

function page(path: string, list: readonly Item[]): Item {
  if (path.includes('v1beta')) {
    const [, collection = ''] = /v1beta\/([^/]+)/.exec(path) ?? []
    return { [collection]: list }
  }
  const [first, last] = [list[0]?.['id'] ?? null, list.at(-1)?.['id'] ?? null]
  return { object: 'list', data: list, first_id: first, last_id: last, has_more: false }
}

function send(res: ServerResponse, value: unknown): void {
  const isEvents = typeof value === 'string' && value.startsWith('event:')
  const text = isEvents ? 'text/event-stream' : 'application/jsonl'
  const type = typeof value === 'string' ? text : 'application/json'
  res.writeHead(value === undefined ? 404 : 200, {
    'content-type': type,
    'openai-organization': 'org-operator',
    'anthropic-organization-id': 'org-operator',
    'x-ratelimit-limit-requests': '5000',
  })
  res.end(typeof value === 'string' ? value : JSON.stringify(value ?? { error: 'none' }))
}
