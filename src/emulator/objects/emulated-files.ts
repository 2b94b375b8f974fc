/**
 * Files of OpenAI, Anthropic and Google: uploads (forms, and Google's resumable ones), lists, contents.
 *
 * Sources, read 2026-11-29: the files of the SDKs openai 7.59.0, @anthropic-ai/sdk 1.14.0 and @google/genai
 * 3.3.0; Gemini API reference, "Files".
 */
import { createHash } from 'node:crypto'
import { objectOf, stringOf, type JsonObject, type JsonValue, parsedJson } from '../../base/json.js'
import { anthropicFrames, checkAnthropicKey } from '../anthropic-requests.js'
import {
  errorReply,
  wholeReply,
  type FrameWriter,
  type ParsedRequest,
  type Provider,
  type Reply,
} from '../emulated-exchange.js'
import { formParts } from '../form-parts.js'
import { checkGeminiKey, geminiFrames } from '../gemini-requests.js'
import { checkOpenAiKey, openAiFrames } from '../openai-requests.js'

/** The vendors with files and batches. */
export type ObjectProvider = Exclude<Provider, 'bedrock'>

/** A file of one vendor. */
interface EmulatedFile {
  readonly id: string
  readonly provider: ObjectProvider
  readonly name: string
  readonly type: string
  readonly purpose: string
  /** Whether the vendor made it: only these can be downloaded from Anthropic and Google. */
  readonly isMade: boolean
  readonly atMs: number
  bytes: Buffer
}

const FRAMES: Readonly<Record<ObjectProvider, FrameWriter>> = {
  openai: openAiFrames,
  anthropic: anthropicFrames,
  gemini: geminiFrames,
}
const LETTERS = 'abcdefghijkmnpqrstuvwxyz23456789'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const GOOGLE_KEPT_MS = 48 * HOUR_MS
const OPENAI_BATCH_KEPT_MS = 30 * DAY_MS

/** Throws the vendor's error for a missing or wrong key. */
export function checkKey(request: ParsedRequest): void {
  if (request.provider === 'anthropic') checkAnthropicKey(request)
  else if (request.provider === 'gemini') checkGeminiKey(request)
  else checkOpenAiKey(request)
}

/** A JSON reply of the vendor. */
export function jsonReply(provider: ObjectProvider, body: JsonValue): Reply {
  return wholeReply(FRAMES[provider].wholeHeaders, JSON.stringify(body))
}

/** An error of the vendor. */
export function objectError(provider: ObjectProvider, status: number, message: string): Reply {
  const frames = FRAMES[provider]
  return errorReply(status, frames.wholeHeaders, frames.errorBody(status, message))
}

/** The files of one emulator. */
export class EmulatedFiles {
  private readonly files = new Map<string, EmulatedFile>()
  private readonly uploads = new Map<string, EmulatedFile>()
  private next = 1

  /** An id that no other object has. */
  newId(prefix: string): string {
    let [rest, text] = [this.next * 7_919, '']
    while (text.length < 12) {
      text += LETTERS.charAt(rest % LETTERS.length)
      rest = Math.floor(rest / LETTERS.length) + 31
    }
    this.next += 1
    return `${prefix}${text}`
  }

  find(provider: ObjectProvider, id: string): EmulatedFile | null {
    const file = this.files.get(id)
    return file?.provider === provider ? file : null
  }

  /** Keeps a file that the vendor makes, such as the results of a batch. */
  keep(file: Pick<EmulatedFile, 'id' | 'provider' | 'name' | 'purpose' | 'bytes' | 'atMs'>): EmulatedFile {
    const kept = { ...file, type: 'application/jsonl', isMade: true }
    this.files.set(file.id, kept)
    return kept
  }

  forget(): void {
    this.files.clear()
    this.uploads.clear()
  }

  /** Null if the path is none of files. `raw`: the body. */
  reply(request: ParsedRequest, raw: Buffer): Reply | null {
    const { provider, path, method } = request
    if (provider === 'bedrock') return null
    if (provider === 'gemini' && path === '/upload/files' && method === 'POST') {
      checkKey(request)
      return this.googleUpload(request, raw)
    }
    const [, id, action = ''] =
      /^(?:\/download)?\/files(?:\/([^/:]+)((?:\/content|:download)?))?$/.exec(path) ?? []
    if (!/^(?:\/download)?\/files(?:[/]|$)/.test(path)) return null
    checkKey(request)
    if (id === undefined) {
      return method === 'POST' ? this.upload(request, provider, raw) : this.list(request, provider)
    }
    const file = this.find(provider, id)
    if (file === null) return objectError(provider, 404, `No such file: ${id}`)
    if (method === 'DELETE') {
      this.files.delete(id)
      return jsonReply(provider, deletedOf(file))
    }
    if (action === '') return jsonReply(provider, shownFile(file, request))
    if (provider !== 'openai' && !file.isMade) {
      return objectError(
        provider,
        400,
        `The file ${id} was uploaded: only files that tools made can be downloaded.`,
      )
    }
    const headers = { 'content-type': file.type === '' ? 'application/octet-stream' : file.type }
    return { status: 200, headers, units: [file.bytes], stream: false, terminators: 0 }
  }

  private upload(request: ParsedRequest, provider: ObjectProvider, raw: Buffer): Reply {
    const parts = formParts(raw, request.headers['content-type']) ?? []
    const file = parts.find(({ name }) => name === 'file')
    const field = (name: string): string => parts.find((part) => part.name === name)?.content.toString() ?? ''
    if (file?.fileName === undefined) return objectError(provider, 400, 'file: Field required')
    const purpose = field('purpose')
    if (provider === 'openai' && purpose === '')
      return objectError(provider, 400, "'purpose' is a required property")
    const own = { name: file.fileName, type: file.type, purpose, isMade: false, atMs: request.now * 1000 }
    const prefix = provider === 'anthropic' ? 'file_' : 'file-'
    const kept = { id: this.newId(prefix), provider, bytes: file.content, ...own }
    this.files.set(kept.id, kept)
    return jsonReply(provider, shownFile(kept, request))
  }

  /** Begins or continues a resumable upload, or reads one of two related parts. */
  private googleUpload(request: ParsedRequest, raw: Buffer): Reply {
    const { query, now } = request
    const command = headerText(request, 'x-goog-upload-command')
    const base = { provider: 'gemini' as const, purpose: '', isMade: false, atMs: now * 1000 }
    if (command === 'start') {
      const asked = objectOf(request.body?.['file'])
      const type =
        headerText(request, 'x-goog-upload-header-content-type') || (stringOf(asked['mimeType']) ?? '')
      const id = (stringOf(asked['name']) ?? this.newId('')).replace(/^files\//, '')
      const name = displayNameIn(asked) ?? headerText(request, 'x-goog-upload-file-name')
      const upload = this.newId('up')
      this.uploads.set(upload, { ...base, id, name, type, bytes: Buffer.alloc(0) })
      const url = `${originOf(request)}/upload/gemini/v1beta/files?upload_id=${upload}&upload_protocol=resumable`
      const more = { 'x-goog-upload-url': url, 'x-goog-upload-status': 'active' }
      return { ...jsonReply('gemini', {}), headers: { ...geminiFrames.wholeHeaders, ...more } }
    }
    const id = query.get('upload_id') ?? ''
    if (id === '') return this.googleRelated(request, raw)
    const upload = this.uploads.get(id)
    if (upload === undefined) return objectError('gemini', 404, 'No such upload.')
    if (Number(headerText(request, 'x-goog-upload-offset')) !== upload.bytes.length) {
      return objectError('gemini', 400, `The upload has ${upload.bytes.length} bytes.`)
    }
    upload.bytes = Buffer.concat([upload.bytes, raw])
    const isFinal = command.includes('finalize')
    const status = { 'x-goog-upload-status': isFinal ? 'final' : 'active' }
    const body = isFinal ? { file: shownFile(upload, request) } : {}
    if (isFinal) {
      this.uploads.delete(id)
      this.files.set(upload.id, upload)
    }
    return { ...jsonReply('gemini', body), headers: { ...geminiFrames.wholeHeaders, ...status } }
  }

  private googleRelated(request: ParsedRequest, raw: Buffer): Reply {
    const parts = formParts(raw, request.headers['content-type']) ?? []
    const bytes = parts.at(-1)
    if (bytes === undefined || parts.length < 2) return objectError('gemini', 400, 'Upload has no file.')
    const about = objectOf(objectOf(parsedJson(parts[0]?.content.toString() ?? ''))['file'])
    const kept = {
      ...{ provider: 'gemini' as const, purpose: '', isMade: false, atMs: request.now * 1000 },
      ...{ id: this.newId(''), name: displayNameIn(about) ?? '', type: bytes.type },
      bytes: bytes.content,
    }
    this.files.set(kept.id, kept)
    return jsonReply('gemini', { file: shownFile(kept, request) })
  }

  private list(request: ParsedRequest, provider: ObjectProvider): Reply {
    const own = [...this.files.values()].filter((file) => file.provider === provider).toReversed()
    const shown = own.map((file) => shownFile(file, request))
    if (provider === 'gemini') return jsonReply(provider, { files: shown })
    if (provider === 'anthropic') return jsonReply(provider, { data: shown, next_page: null })
    const ends = { first_id: own[0]?.id ?? null, last_id: own.at(-1)?.id ?? null }
    return jsonReply(provider, { object: 'list', data: shown, ...ends, has_more: false })
  }
}

function headerText({ headers }: ParsedRequest, name: string): string {
  return [headers[name] ?? ''].flat().join()
}

/** The origin that the client used. */
function originOf({ headers }: ParsedRequest): string {
  return `http://${headers.host ?? '127.0.0.1'}`
}

function deletedOf({ id, provider }: EmulatedFile): JsonObject {
  if (provider === 'gemini') return {}
  if (provider === 'anthropic') return { id, type: 'file_deleted' }
  return { id, object: 'file', deleted: true }
}

/** Google takes names of members in both cases; its examples with curl have snake case. */
function displayNameIn({ displayName, display_name: inSnakeCase }: JsonObject): string | undefined {
  return stringOf(displayName ?? inSnakeCase)
}

/** The file as its vendor shows it. */
function shownFile(file: EmulatedFile, request: ParsedRequest): JsonObject {
  const { id, name, type, purpose, bytes, atMs, isMade, provider } = file
  if (provider === 'openai') {
    const expiresAt = purpose === 'batch' ? Math.floor((atMs + OPENAI_BATCH_KEPT_MS) / 1000) : null
    return {
      ...{ id, object: 'file', bytes: bytes.length, created_at: Math.floor(atMs / 1000) },
      ...{ expires_at: expiresAt, filename: name, purpose, status: 'processed', status_details: null },
    }
  }
  const at = new Date(atMs).toISOString()
  if (provider === 'anthropic') {
    return {
      ...{ id, type: 'file', filename: name, mime_type: type, size_bytes: bytes.length },
      ...{ created_at: at, downloadable: isMade },
    }
  }
  return {
    ...{ name: `files/${id}`, displayName: name, mimeType: type, sizeBytes: String(bytes.length) },
    ...{ createTime: at, updateTime: at, expirationTime: new Date(atMs + GOOGLE_KEPT_MS).toISOString() },
    sha256Hash: createHash('sha256').update(bytes).digest('base64'),
    uri: `${originOf(request)}/v1beta/files/${id}`,
    ...{ state: 'ACTIVE', source: isMade ? 'GENERATED' : 'UPLOADED' },
  }
}
