/** Serves `/v1/files`: clients upload the lines of batches, and read, list and delete files. */
import type { JsonObject } from '../../base/json.js'
import { Pacer } from '../../base/pacer.js'
import type { Identity } from '../../accounts/account.js'
import { GatewayError, malformed } from '../../errors.js'
import { boundaryIn, FormParser, type FormSink, type PartHead } from '../../formats/wire/media/form-parser.js'
import { codingOf } from '../../http/content-encoding.js'
import { headerOf } from '../../http/message.js'
import { guardTrailers } from '../../http/request-guard.js'
import type { Exchange } from '../client-exchange.js'
import { sendObject, type Delivery } from '../phases/relay.js'
import type { FileStore, FileWriter, StoredFile } from '../../policy/file-store.js'
import { chunksOf } from './body-chunks.js'
import { pageOf, queryOf } from './object-page.js'
import { sendBytes } from './send-bytes.js'

/** The error of an id that the account may not use; the same for ids of others and unknown ids. */
export function unknownId(what: 'file' | 'batch', id: string, param: string): GatewayError {
  const shown = /^[\w-]{1,100}$/.test(id) ? ` '${id}'` : ''
  return new GatewayError(
    'unknown_object',
    `This account has no ${what}${shown}: it is unknown, has expired, or was deleted.`,
    { param },
  )
}

/** Answers a request to `/v1/files`. Rejects with `GatewayError`. */
export async function serveFiles(
  x: Exchange,
  id: string | null,
  {
    identity,
    files,
    isGoogle,
  }: { readonly identity: Identity; readonly files: FileStore; readonly isGoogle: boolean },
): Promise<Delivery> {
  const { accountId } = identity
  if (id === null) {
    if (x.req.method === 'POST')
      return sendObject(x, JSON.stringify(shownFile(await upload(x, identity, files))))
    return sendObject(x, JSON.stringify(await listed(x, accountId, files)))
  }
  const file = await files.find(accountId, id)
  if (file === null || file.purpose === 'work' || file.isPartial) throw unknownId('file', id, 'file_id')
  if (x.req.method === 'DELETE') {
    await files.remove(file)
    return sendObject(x, JSON.stringify(isGoogle ? {} : { id, object: 'file', deleted: true }))
  }
  if (/(?:\/content|:download)$/.test(x.path)) {
    const chunks = files.read(file)
    return sendBytes(x, { type: 'application/octet-stream', bytes: file.bytes, chunks })
  }
  return sendObject(x, JSON.stringify(isGoogle ? googleFile(file) : shownFile(file)))
}

/** The file as the Gemini API shows one (SDK `@google/genai` 3.3.0: files). */
function googleFile({ id, name, bytes, purpose, createdAtMs, expiresAtMs }: StoredFile): JsonObject {
  const [at, expirationTime] = [createdAtMs, expiresAtMs].map((ms) => new Date(ms).toISOString())
  return {
    ...{ name: `files/${id}`, displayName: name, mimeType: 'application/jsonl', sizeBytes: String(bytes) },
    ...{ createTime: at, updateTime: at, expirationTime, state: 'ACTIVE' },
    source: purpose === 'batch' ? 'UPLOADED' : 'GENERATED',
  }
}

function shownFile({ id, name, purpose, bytes, createdAtMs, expiresAtMs }: StoredFile): JsonObject {
  return {
    ...{ id, object: 'file', bytes },
    created_at: Math.floor(createdAtMs / 1000),
    expires_at: Math.floor(expiresAtMs / 1000),
    ...{ filename: name, purpose, status: 'processed', status_details: null },
  }
}

async function listed(x: Exchange, accountId: string, files: FileStore): Promise<JsonObject> {
  const query = queryOf(x)
  const purpose = query.get('purpose')
  const own = (await files.list(accountId)).filter((file) => purpose === null || file.purpose === purpose)
  if (query.get('order') === 'asc') own.reverse()
  const { items, around } = pageOf(own, query, { maxLimit: 10_000, usualLimit: 10_000 })
  return around(items.map(shownFile))
}

/** Reads the form while it arrives. The purpose may come after the file. */
async function upload(x: Exchange, identity: Identity, files: FileStore): Promise<StoredFile> {
  const { req } = x
  const boundary = boundaryIn(headerOf(req, 'content-type') ?? '')
  if (boundary === null || codingOf(req) !== null) {
    const message = 'The content-type header must be multipart/form-data with a boundary.'
    throw new GatewayError('unsupported_media_type', message, { param: 'content-type' })
  }
  const { maxBytes, keepMs, maxLineBytes } = files.settings
  const length = Number(headerOf(req, 'content-length') ?? 0)
  if (length > maxBytes + MAX_FORM_BYTES) {
    throw new GatewayError('body_too_large', `A file must not be larger than ${maxBytes} bytes.`)
  }
  const form = new UploadForm(maxLineBytes)
  const parser = new FormParser(boundary, form)
  let writer: FileWriter | null = null
  try {
    const pacer = new Pacer()
    for await (const chunk of chunksOf(x)) {
      await pacer.pace()
      parser.write(chunk)
      if (form.head === null) continue
      const expiresAtMs = Date.now() + keepMs
      const name = form.head.fileName === '' ? 'upload' : (form.head.fileName ?? 'upload')
      const expectedBytes = length || maxBytes
      writer ??= await files.begin(identity, { name, purpose: 'batch', expiresAtMs, expectedBytes })
      for (const bytes of form.take()) await writer.write(bytes)
    }
    parser.end()
    x.cancellation.check()
    const refusal = guardTrailers(req)
    if (refusal !== null) throw new GatewayError(refusal.kind, refusal.message)
    form.check(keepMs)
    if (writer === null) throw malformed('file is required', 'file')
    return await writer.end(form.expiresInMs())
  } catch (error) {
    await writer?.abort().catch(() => undefined)
    throw error
  }
}

/** What a form has beside its file. */
const MAX_FORM_BYTES = 65_536

/** The fields and the file of an upload. */
class UploadForm implements FormSink {
  head: PartHead | null = null
  private readonly fields = new Map<string, string>()
  private chunks: Buffer[] = []
  private readonly maxLineBytes: number
  private line = 1
  private lineBytes = 0

  constructor(maxLineBytes: number) {
    this.maxLineBytes = maxLineBytes
  }

  field({ name, value }: { readonly name: string; readonly value: string }): void {
    if (this.fields.has(name)) throw malformed(`${name} must not occur twice`, name)
    this.fields.set(name, value)
  }

  beginFile(head: PartHead): void {
    if (head.name !== 'file') throw malformed(`${head.name.slice(0, 64)} must not be a file`, head.name)
    if (this.head !== null) throw malformed('file must not occur twice', 'file')
    this.head = head
  }

  fileBytes(bytes: Buffer): void {
    this.chunks.push(bytes)
    for (let begin = 0; begin < bytes.length;) {
      const end = bytes.indexOf(0x0a, begin)
      this.lineBytes += (end === -1 ? bytes.length : end) - begin
      if (this.lineBytes > this.maxLineBytes) {
        throw malformed(`Line ${this.line}: must not be longer than ${this.maxLineBytes} bytes`, 'file')
      }
      if (end === -1) return
      this.line += 1
      this.lineBytes = 0
      begin = end + 1
    }
  }

  rest(): void {
    // What follows the form is dropped.
  }

  /** The bytes of the file since the last call. */
  take(): Buffer[] {
    const { chunks } = this
    this.chunks = []
    return chunks
  }

  /** Throws `malformed_request`, and `untranslatable` for files of another purpose. */
  check(keepMs: number): void {
    const purpose = this.fields.get('purpose')
    if (purpose === undefined) throw malformed('purpose is required', 'purpose')
    if (purpose !== 'batch') {
      const message = `Only files with the purpose "batch" are kept; use native access for others: POST /native/{upstream}/v1/files, if "native" of the upstream allows it.`
      throw new GatewayError('untranslatable', message, { param: 'purpose' })
    }
    const ms = this.expiresInMs()
    if (ms === null) return
    const anchor = this.fields.get('expires_after[anchor]')
    if (anchor !== 'created_at')
      throw malformed('expires_after.anchor must be created_at', 'expires_after.anchor')
    if (Number.isInteger(ms) && ms >= 3_600_000 && ms <= Math.max(keepMs, 3_600_000)) return
    const most = Math.floor(Math.max(keepMs, 3_600_000) / 1000)
    const message = `expires_after.seconds must be a whole number from 3600 to ${most} (files.keep_days)`
    throw malformed(message, 'expires_after.seconds')
  }

  /** Null if the client sets none. */
  expiresInMs(): number | null {
    const seconds = this.fields.get('expires_after[seconds]')
    return seconds === undefined ? null : Number(seconds) * 1000
  }
}
