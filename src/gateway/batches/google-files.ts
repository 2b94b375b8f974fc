/**
 * The gateway's own files as Google's clients upload, read and list them: the JSON lines of their batches,
 * and the results. Other files of these clients are at an upstream (`native/vendor-files.ts`).
 *
 * Source: `_api_client` of SDK `google-genai` 3.6.1 and `@google/genai` 3.3.0; a resumable upload begins with
 * `start`, whose reply has the address of its parts, and ends with `upload, finalize`.
 */
import type { Identity } from '../../accounts/account.js'
import { stringOf, objectOf, type JsonObject } from '../../base/json.js'
import { Pacer } from '../../base/pacer.js'
import { GatewayError, malformed, bodyTooLarge } from '../../errors.js'
import { parseObject } from '../../formats/wire/json/parse-body.js'
import { codingOf } from '../../http/content-encoding.js'
import { headerOf, type HttpRequest } from '../../http/message.js'
import { guardTrailers } from '../../http/request-guard.js'
import type { FileStore, StoredFile } from '../../policy/file-store.js'
import type { Exchange } from '../client-exchange.js'
import type { Delivery } from '../phases/phase-results.js'
import { sendObject } from '../phases/relay.js'
import { uploadAddress } from '../upload-ticket.js'
import { chunksOf } from './body-chunks.js'
import { LineLengths } from './line-lengths.js'
import { googlePageOf, queryOf } from './object-page.js'

/** Whether an id is one of the gateway. */
export function isOwnFile(id: string | null | undefined): boolean {
  return typeof id === 'string' && /^file-[A-Za-z0-9]{24}$/.test(id)
}

/** Media types of JSON lines; Google's documentation of batches uploads with the first one. */
const JSON_LINES = /^(?:jsonl|(?:application|text)\/(?:x-)?(?:jsonl|jsonlines|json-lines|ndjson))\s*(?:;|$)/i

/** Whether a request uploads JSON lines, the requests of a batch, which the gateway keeps. */
export function isUploadOfLines(req: HttpRequest, path: string): boolean {
  if (req.method !== 'POST' || !path.startsWith('/upload/')) return false
  const uploadId = new URLSearchParams((req.url ?? '').slice(path.length + 1)).get('upload_id')
  if (uploadId !== null) return isOwnFile(uploadId)
  const isStart = /\bstart\b/i.test(headerOf(req, 'x-goog-upload-command') ?? '')
  return isStart && JSON_LINES.test(headerOf(req, 'x-goog-upload-header-content-type') ?? '')
}

/** The file as the Gemini API shows one. */
export function googleFile({ id, name, bytes, purpose, createdAtMs, expiresAtMs }: StoredFile): JsonObject {
  const [at, expirationTime] = [createdAtMs, expiresAtMs].map((ms) => new Date(ms).toISOString())
  return {
    ...{ name: `files/${id}`, displayName: name, mimeType: 'application/jsonl', sizeBytes: String(bytes) },
    ...{ createTime: at, updateTime: at, expirationTime, state: 'ACTIVE' },
    source: purpose === 'batch' ? 'UPLOADED' : 'GENERATED',
  }
}

/** A page of files as the Gemini API lists them. */
export function googlePage(x: Exchange, files: readonly StoredFile[]): JsonObject {
  const { items, next } = googlePageOf(files, queryOf(x), { maxLimit: 100, usualLimit: 10 })
  return { files: items.map(googleFile), ...next }
}

/** What files are kept with. */
interface Kept {
  readonly identity: Identity
  readonly files: FileStore
}

/** Answers one request of a resumable upload. Rejects with `GatewayError`. */
export async function serveGoogleUpload(x: Exchange, kept: Kept): Promise<Delivery> {
  if (codingOf(x.req) !== null) {
    throw new GatewayError('unsupported_media_type', 'An upload must have no content-encoding.')
  }
  const uploadId = queryOf(x).get('upload_id')
  return uploadId === null ? start(x, kept) : goOn(x, uploadId, kept)
}

/** Begins the file. */
async function start(x: Exchange, { identity, files }: Kept): Promise<Delivery> {
  const { maxBytes, keepMs } = files.settings
  const length = Number(headerOf(x.req, 'x-goog-upload-header-content-length') ?? 0)
  if (length > maxBytes) throw bodyTooLarge(maxBytes, 'A file')
  const name = (await nameIn(x)) ?? headerOf(x.req, 'x-goog-upload-file-name') ?? 'upload'
  const expiresAtMs = Date.now() + keepMs
  const expectedBytes = length > 0 ? length : maxBytes
  const file = { name: name.slice(0, MAX_NAME_CHARS), purpose: 'batch' as const, expiresAtMs, expectedBytes }
  const { id } = await (await files.begin(identity, file)).pause()
  const url = uploadAddress(x, new URLSearchParams({ upload_id: id, upload_protocol: 'resumable' }))
  if (url === null) throw malformed('The host header is required.', 'host')
  return sendObject(x, '{}', ['x-goog-upload-status', 'active', 'x-goog-upload-url', url])
}

/** As Google's own limit. */
const MAX_NAME_CHARS = 512
/** The file's members in the body of `start`. */
const MAX_START_BYTES = 65_536

/** The name that the body gives the file. */
async function nameIn(x: Exchange): Promise<string | undefined> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const chunk of chunksOf(x)) {
    bytes += chunk.length
    if (bytes > MAX_START_BYTES) throw malformed('The body of an upload’s start is too long.', 'file')
    parts.push(chunk)
  }
  if (bytes === 0) return undefined
  const file = objectOf(parseObject(Buffer.concat(parts)).value['file'])
  if (file['name'] !== undefined) {
    throw malformed('file.name must not be set: the gateway names the files of batches', 'file.name')
  }
  return stringOf(file['displayName'] ?? file['display_name'])
}

/** Writes the next part of the file, or tells how much of it there is. */
async function goOn(x: Exchange, id: string, { identity, files }: Kept): Promise<Delivery> {
  const command = (headerOf(x.req, 'x-goog-upload-command') ?? '').toLowerCase()
  const isUpload = /\bupload\b/.test(command)
  const isFinal = /\bfinalize\b/.test(command)
  const known = await files.find(identity.accountId, id)
  if (known === null || known.purpose !== 'batch') {
    throw new GatewayError('unknown_object', 'This account has no such upload: begin a new one.', {
      param: 'upload_id',
    })
  }
  const isQuery = /\bquery\b/.test(command)
  if (isQuery) return sendObject(x, '{}', sizeOf(known))
  if (/\bcancel\b/.test(command) && known.isPartial) {
    await files.remove(known)
    return sendObject(x, '{}', ['x-goog-upload-status', 'cancelled'])
  }
  if (!isUpload && !isFinal) {
    throw malformed(
      'x-goog-upload-command must be start, upload, finalize, query or cancel',
      'x-goog-upload-command',
    )
  }
  if (!known.isPartial) throw malformed('The upload is complete.', 'upload_id')
  const writer = await files.resume(known)
  if (writer === null) {
    throw malformed('Another request writes this upload, or was cut off: begin a new one.', 'upload_id')
  }
  try {
    const offset = headerOf(x.req, 'x-goog-upload-offset')
    if (isUpload && Number(offset ?? writer.bytes) !== writer.bytes) {
      throw malformed(
        `x-goog-upload-offset must be ${writer.bytes}: the upload has this many bytes`,
        'x-goog-upload-offset',
      )
    }
    const pacer = new Pacer()
    for await (const chunk of chunksOf(x)) {
      await pacer.pace()
      await writer.write(chunk)
    }
    x.cancellation.check()
    const refusal = guardTrailers(x.req)
    if (refusal !== null) throw new GatewayError(refusal.kind, refusal.message)
  } catch (error) {
    // What was stored of it stays: the client can query its size and continue.
    if (error instanceof GatewayError && error.kind === 'body_too_large') await writer.abort()
    else await writer.pause().catch(() => undefined)
    throw error
  }
  if (!isFinal) {
    await writer.pause()
    return sendObject(x, '{}', ['x-goog-upload-status', 'active'])
  }
  await checkLines(files, await writer.unfinished())
  const file = await writer.end()
  return sendObject(x, JSON.stringify({ file: googleFile(file) }), ['x-goog-upload-status', 'final'])
}

function sizeOf({ isPartial, written, bytes }: StoredFile): readonly string[] {
  const received = ['x-goog-upload-size-received', String(isPartial ? (written ?? 0) : bytes)]
  return ['x-goog-upload-status', isPartial ? 'active' : 'final', ...received]
}

/** Refuses, and removes, a file with a line that is too long. */
async function checkLines(files: FileStore, file: StoredFile): Promise<void> {
  const lengths = new LineLengths(files.settings.maxLineBytes)
  const pacer = new Pacer()
  for await (const chunk of files.read(file)) {
    const error = lengths.read(chunk)
    if (error !== null) {
      await files.remove(file)
      throw error
    }
    await pacer.pace()
  }
}
