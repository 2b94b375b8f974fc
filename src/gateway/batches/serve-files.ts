/** Serves `/v1/files`: clients upload the lines of batches, and read, list and delete files. */
import { numberOf, stringOf, type JsonObject } from '../../base/json.js'
import { Pacer } from '../../base/pacer.js'
import type { Identity } from '../../accounts/account.js'
import { GatewayError, malformed } from '../../errors.js'
import { boundaryIn, FormParser, type FormSink, type PartHead } from '../../formats/wire/media/form-parser.js'
import { codingOf } from '../../http/content-encoding.js'
import { headerOf } from '../../http/message.js'
import { guardTrailers } from '../../http/request-guard.js'
import type { Exchange } from '../client-exchange.js'
import { sendObject } from '../phases/relay.js'
import type { Delivery } from '../phases/phase-results.js'
import type { FileStore, FileWriter, StoredFile } from '../../policy/file-store.js'
import { chunksOf } from './body-chunks.js'
import { pageOf, queryOf } from './object-page.js'
import { sendBytes } from './send-bytes.js'
import { googleFile, googlePage, serveGoogleUpload } from './google-files.js'
import { LineLengths } from './line-lengths.js'
import type { UpstreamFiles } from './upstream-files.js'

/** The error of an id that the account may not use; the same for ids of others and unknown ids. */
export function unknownId(what: 'file' | 'batch', id: string, param: string): GatewayError {
  const shown = /^[\w-]{1,100}$/.test(id) ? ` '${id}'` : ''
  return new GatewayError(
    'unknown_object',
    `This account has no ${what}${shown}: it is unknown, has expired, or was deleted.`,
    { param },
  )
}

/** What files are served with. */
interface Served {
  readonly identity: Identity
  readonly files: FileStore
  /** Files of other purposes than `batch`; null: they are refused. */
  readonly others: UpstreamFiles | null
}

/** Answers a request to `/v1/files`, or to Google's paths of own files. Rejects with `GatewayError`. */
export async function serveFiles(
  x: Exchange,
  id: string | null,
  { identity, files, others, isGoogle }: Served & { readonly isGoogle: boolean },
): Promise<Delivery> {
  const { accountId } = identity
  if (id === null) {
    if (isGoogle && x.req.method === 'POST') return serveGoogleUpload(x, { identity, files })
    if (isGoogle) return sendObject(x, JSON.stringify(googlePage(x, await files.list(accountId))))
    const served = { identity, files, others }
    const reply = x.req.method === 'POST' ? await upload(x, served) : await listed(x, served)
    return sendObject(x, JSON.stringify(reply))
  }
  const file = await files.find(accountId, id)
  const isHere = file !== null && file.purpose !== 'work' && !file.isPartial
  if (!isHere && others !== null && !isGoogle) return sendOther(x, id, { accountId, others })
  if (!isHere) throw unknownId('file', id, 'file_id')
  if (x.req.method === 'DELETE') {
    await files.remove(file)
    return sendObject(x, JSON.stringify(isGoogle ? {} : { id, object: 'file', deleted: true }))
  }
  if (CONTENT.test(x.path)) {
    const chunks = files.read(file)
    return sendBytes(x, { type: 'application/octet-stream', bytes: file.bytes, chunks })
  }
  return sendObject(x, JSON.stringify(isGoogle ? googleFile(file) : shownFile(file)))
}

/** Paths of the bytes of a file. */
const CONTENT = /(?:\/content|:download)$/

/** Answers a request for a file at the upstream. */
async function sendOther(
  x: Exchange,
  id: string,
  { accountId, others }: { readonly accountId: string; readonly others: UpstreamFiles },
): Promise<Delivery> {
  if (CONTENT.test(x.path)) {
    const chunks = await others.content(accountId, id)
    return sendBytes(x, { type: 'application/octet-stream', chunks })
  }
  const isRemoved = x.req.method === 'DELETE'
  const reply = isRemoved ? await others.remove(accountId, id) : await others.read(accountId, id)
  return sendObject(x, JSON.stringify(reply))
}

function shownFile({ id, name, purpose, bytes, createdAtMs, expiresAtMs }: StoredFile): JsonObject {
  return {
    ...{ id, object: 'file', bytes },
    created_at: Math.floor(createdAtMs / 1000),
    expires_at: Math.floor(expiresAtMs / 1000),
    ...{ filename: name, purpose, status: 'processed', status_details: null },
  }
}

/** The files of both places, newest first. */
async function listed(x: Exchange, { identity, files, others }: Served): Promise<JsonObject> {
  const { accountId } = identity
  const query = queryOf(x)
  const purpose = query.get('purpose')
  const here = (await files.list(accountId)).map(shownFile)
  const isHere = others === null || purpose === 'batch' || purpose === 'batch_output'
  const all = isHere ? here : [...here, ...(await others.list(accountId))].sort(byAge)
  const own = all
    .filter((file) => purpose === null || file['purpose'] === purpose)
    .map((file) => ({ id: stringOf(file['id']) ?? '', file }))
  if (query.get('order') === 'asc') own.reverse()
  const { items, around } = pageOf(own, query, { maxLimit: 10_000, usualLimit: 10_000 })
  return around(items.map(({ file }) => file))
}

function byAge(one: JsonObject, other: JsonObject): number {
  return (numberOf(other['created_at']) ?? 0) - (numberOf(one['created_at']) ?? 0)
}

/**
 * Reads the form while it arrives. The purpose may come after the file, so that a file for an upstream is
 * kept until its end, too.
 */
async function upload(x: Exchange, { identity, files, others }: Served): Promise<JsonObject> {
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
  const form = new UploadForm(maxLineBytes, others !== null)
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
    const isForUpstream = form.check(keepMs)
    if (writer === null || form.head === null) throw malformed('file is required', 'file')
    if (!isForUpstream || others === null) return shownFile(await writer.end(form.expiresInMs()))
    const written = await writer.unfinished()
    const { name } = written
    const sent = { name, type: form.head.type, fields: form.fields, chunks: files.read(written) }
    const object = await others.upload(identity, sent)
    await writer.abort()
    return object
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
  readonly fields = new Map<string, string>()
  private chunks: Buffer[] = []
  private readonly lengths: LineLengths
  private readonly takesOthers: boolean
  /** Of a file of an unknown purpose. */
  private longLine: GatewayError | null = null

  /** `takesOthers`: files of other purposes, which have no lines, are not refused. */
  constructor(maxLineBytes: number, takesOthers: boolean) {
    this.lengths = new LineLengths(maxLineBytes)
    this.takesOthers = takesOthers
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
    if (this.longLine !== null || (this.takesOthers && this.isOther)) return
    const error = this.lengths.read(bytes)
    if (error !== null && (!this.takesOthers || this.fields.has('purpose'))) throw error
    this.longLine = error
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

  private get isOther(): boolean {
    const purpose = this.fields.get('purpose')
    return purpose !== undefined && purpose !== 'batch'
  }

  /**
   * Whether the file is of another purpose, for an upstream. Throws `malformed_request`, and `untranslatable`
   * if there is none.
   */
  check(keepMs: number): boolean {
    const purpose = this.fields.get('purpose')
    if (purpose === undefined) throw malformed('purpose is required', 'purpose')
    if (purpose !== 'batch' && this.takesOthers) return true
    if (purpose !== 'batch') {
      const message = `Only files with the purpose "batch" are kept: set files.upstream in the configuration for others, or use native access: POST /native/{upstream}/v1/files, if "native" of the upstream allows it.`
      throw new GatewayError('untranslatable', message, { param: 'purpose' })
    }
    if (this.longLine !== null) throw this.longLine
    const ms = this.expiresInMs()
    if (ms === null) return false
    const anchor = this.fields.get('expires_after[anchor]')
    if (anchor !== 'created_at')
      throw malformed('expires_after.anchor must be created_at', 'expires_after.anchor')
    if (Number.isInteger(ms) && ms >= 3_600_000 && ms <= Math.max(keepMs, 3_600_000)) return false
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
