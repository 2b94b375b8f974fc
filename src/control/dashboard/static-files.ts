/**
 * Serves the page that Vite has built: read once, compressed once, then served from memory.
 * Unknown paths get `index.html`, since the page has its own routing.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { headerOf, type HttpRequest, type HttpResponse } from '../../http/message.js'
import { sendReply } from '../../http/respond.js'
import { accepts } from '../compress.js'

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
}
const COMPRESSED = new Set(['.css', '.html', '.js', '.json', '.map', '.svg', '.txt'])

const NOT_BUILT =
  'The dashboard has not been built: run `npm run build` in the folder of sluice, then reload this page.\n'

interface StaticFile {
  readonly type: string
  readonly etag: string
  readonly bytes: Buffer
  /** Null if compression does not make it smaller. */
  readonly zipped: Buffer | null
  /** The name contains a digest of the content, so the file never changes. */
  readonly isImmutable: boolean
}

/** Files by their path below the folder, with `/`. */
type Files = ReadonlyMap<string, StaticFile>

const zip = promisify(gzip)

/** Serves one folder. */
export class StaticFiles {
  private readonly folder: string
  private loading: Promise<Files> | null = null

  /** The folder may be missing, and may change after it has been read. */
  constructor(folder: string) {
    this.folder = folder
  }

  /** Serves a path below `/dashboard/`, without a leading slash. Never rejects. */
  async answer(path: string, req: HttpRequest, res: HttpResponse): Promise<void> {
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      plain(res, 405, { text: 'This path takes GET and HEAD.\n', headers: ['allow', 'GET, HEAD'] })
      return
    }
    const files = await this.files()
    const isPage = !path.startsWith('assets/') && !files.has(path)
    const file = files.get(isPage ? 'index.html' : path)
    if (file === undefined) {
      if (isPage) plain(res, 503, { text: NOT_BUILT })
      else plain(res, 404, { text: 'There is no such file.\n' })
      return
    }
    const zipped = accepts('gzip', headerOf(req, 'accept-encoding')) ? file.zipped : null
    const headers = ['content-type', file.type, 'etag', file.etag, 'vary', 'accept-encoding']
    const life = file.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache'
    headers.push('cache-control', life)
    if (namesTag(headerOf(req, 'if-none-match'), file.etag)) {
      sendReply(res, { status: 304, headers, body: '' })
      return
    }
    if (zipped !== null) headers.push('content-encoding', 'gzip')
    sendReply(res, { status: 200, headers, body: zipped ?? file.bytes })
  }

  private async files(): Promise<Files> {
    this.loading ??= load(this.folder)
    const files = await this.loading
    // Not built yet: read the folder again with the next request.
    if (files.size === 0) this.loading = null
    return files
  }
}

async function load(folder: string): Promise<Files> {
  const listed = readdir(folder, { recursive: true, withFileTypes: true })
  const entries = await listed.catch(() => [])
  const files = new Map<string, StaticFile>()
  for (const entry of entries) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const name = relative(folder, path).split(sep).join('/')
    files.set(name, await fileOf(name, await readFile(path)))
  }
  // A build without index.html is incomplete and ignored.
  return files.has('index.html') ? files : new Map()
}

async function fileOf(name: string, bytes: Buffer): Promise<StaticFile> {
  const extension = extname(name)
  const zipped = COMPRESSED.has(extension) ? await zip(bytes, { level: 9 }) : null
  return {
    type: TYPES[extension] ?? 'application/octet-stream',
    // Weak, since both encodings share it.
    etag: `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
    bytes,
    zipped: zipped !== null && zipped.length < bytes.length ? zipped : null,
    isImmutable: name.startsWith('assets/') && isHashed(name),
  }
}

function namesTag(header: string | undefined, etag: string): boolean {
  return (header ?? '').split(',').some((part) => part.trim() === etag)
}

function plain(
  res: HttpResponse,
  status: number,
  { text, headers = [] }: { readonly text: string; readonly headers?: readonly string[] },
): void {
  const fixed = ['content-type', 'text/plain; charset=utf-8', 'cache-control', 'no-store']
  sendReply(res, { status, headers: [...fixed, ...headers], body: text })
}

/** Whether the name contains the build's content hash: `index-Bx12Yz89.js`. */
function isHashed(name: string): boolean {
  const hash = name.slice(name.indexOf('-') + 1, name.lastIndexOf('.'))
  return /^[\w-]{8,}$/.test(hash)
}

/** No content sniffing, no framing, no referrer to other sites. */
const EVERY_REPLY = [
  ...['x-content-type-options', 'nosniff'],
  ...['x-frame-options', 'DENY'],
  ...['referrer-policy', 'same-origin'],
  ...['cross-origin-opener-policy', 'same-origin'],
  ...['cross-origin-resource-policy', 'same-origin'],
  ...['permissions-policy', 'camera=(), geolocation=(), microphone=(), payment=(), usb=()'],
]

/**
 * Scripts, styles, pictures and requests of this origin only; no inline code, no frames.
 * Bundlers turn small pictures into `data:` URLs.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const PAGE = ['content-security-policy', PAGE_POLICY, ...EVERY_REPLY]
const API = [...['content-security-policy', "default-src 'none'; frame-ancestors 'none'"], ...EVERY_REPLY]

/** Whether the path, without its query, is below that of the dashboard's API. */
export function isApiPath(path: string): boolean {
  return path === '/dashboard/api' || path.startsWith('/dashboard/api/')
}

/**
 * Security headers for a reply to a path at or below `/dashboard`, without its query: names and values in
 * turn. They are set once per request before the reply, so that every reply has them.
 */
export function securityHeadersOf(path: string): readonly string[] {
  return isApiPath(path) ? API : PAGE
}
