/**
 * Recordings of requests and replies: what they contain, how they are encrypted, and where they are kept.
 * Only the account's key, derived from `escrow.key`, opens them.
 */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RecordConfig } from '../config/schema/record-schema.js'
import { isObject, numberOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../base/json.js'
import type { Steps } from '../base/steps.js'
import { hideSecrets } from '../hide-secrets.js'
import { Seal } from '../store/seal.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import { judgedArguments } from './json-strings.js'
import { WholeTexts } from './whole-texts.js'
import type { RuleSet } from './rules/rule-set.js'

/** A chunk of a body with its time since the beginning of the request. */
type WireChunk =
  { readonly at_ms: number; readonly data: string } | { readonly at_ms: number; readonly base64: string }

/** One side of a recorded request: the bytes that were received or sent. */
export interface WireExchange {
  readonly request: {
    readonly method: string
    readonly path: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
  }
  readonly response: {
    status: number
    headers: Readonly<Record<string, string>>
    readonly chunks: WireChunk[]
  }
}

/** What a list shows of a recording. */
export interface RecordingHead {
  /** The request id. */
  readonly id: string
  readonly atMs: number
  readonly expiresAtMs: number
  readonly accountId: string
  readonly keyId: string
  readonly model: string
  readonly upstream: string | null
  readonly status: number
  /** Size of the encrypted recording. */
  readonly bytes: number
}

/** A recording: canonical JSON, and the bytes of both sides. */
export interface Recording {
  readonly id: string
  readonly request: JsonObject
  /** Null if there is no complete reply. */
  readonly reply: JsonObject | null
  readonly client: WireExchange
  /** Null if no upstream got the request. */
  readonly upstream: WireExchange | null
  /** What the request was recorded with, for `sluice replay`. */
  readonly facts: {
    readonly model: string
    readonly upstream: string | null
    /** The model that was requested from the upstream. */
    readonly requested_model: string | null
    readonly upstream_model: string | null
    readonly status: number
    readonly input_tokens: number | null
    readonly output_tokens: number | null
    readonly cost_nano_usd: number | null
    readonly duration_ms: number
    /**
     * As in the ledger: `k=v` separated by spaces, values percent-encoded; null for none. Earlier versions
     * have written no such facts.
     */
    readonly dimensions?: string | null
    readonly program?: string | null
    readonly user?: string | null
  }
}

/** The values of dimensions of a recorded request; absent if it had none, or is of an earlier version. */
export function valuesOf({ facts: { dimensions = null } }: Recording): { readonly dimensions?: string } {
  return dimensions === null ? {} : { dimensions }
}

const SECRET_HEADERS =
  /^(?:authorization|proxy-authorization|cookie|set-cookie|x-api-key|x-goog-api-key|api-key|x-amz-security-token|x-goog-iam-.*|.*(?:secret|token|api-?key|password).*)$/i

/** The headers without credentials and cookies. */
export function safeHeaders(
  headers: Iterable<readonly [name: string, value: unknown]>,
): Record<string, string> {
  const safe: Record<string, string> = {}
  for (const [name, value] of headers) {
    const isText = typeof value === 'string' || typeof value === 'number' || Array.isArray(value)
    if (SECRET_HEADERS.test(name) || !isText) continue
    safe[name.toLowerCase()] = hideSecrets(Array.isArray(value) ? value.join(', ') : String(value))
  }
  return safe
}

/** The path without a key in its query. */
export function safePath(path: string): string {
  return hideSecrets(path.replace(/([?&](?:key|api[-_]?key|access_token)=)[^&]*/gi, '$1***'))
}

/** A chunk as text, or as base64 if it is not UTF-8. */
export function chunkOf(bytes: Buffer, atMs: number): WireChunk {
  const data = bytes.toString('utf8')
  const at_ms = Math.max(0, Math.round(atMs * 10) / 10)
  return Buffer.from(data, 'utf8').equals(bytes)
    ? { at_ms, data }
    : { at_ms, base64: bytes.toString('base64') }
}

/** The bytes of a chunk. */
export function bytesOf(chunk: WireChunk): Buffer {
  return 'data' in chunk ? Buffer.from(chunk.data) : Buffer.from(chunk.base64, 'base64')
}

/** Characters of a match that are masked in one go; the rest of a longer one is dropped. */
const MASK_LIMIT = 8_192
const HIDDEN = { at_ms: 0, data: '[redacted]' } as const

/** The reply was left out of the recording, because it cannot be masked. */
function isHidden({ response }: WireExchange): boolean {
  return response.chunks.some((chunk) => 'data' in chunk && chunk.data === HIDDEN.data)
}

/**
 * The recording with its texts masked, and the bytes of its replies. A match in a streamed reply may be split
 * into any number of events, whose bytes are then left out.
 */
export function* redacted(recording: Recording, ruleSets: readonly RuleSet[]): Steps<Recording> {
  if (ruleSets.length === 0) return recording
  const { client, upstream, request } = recording
  const reply = recording.reply === null ? null : objectOf(yield* maskedValue(recording.reply, ruleSets))
  const isClean = reply !== null && JSON.stringify(reply) === JSON.stringify(recording.reply)
  return {
    ...recording,
    request: objectOf(yield* maskedValue(request, ruleSets)),
    reply,
    client: yield* maskedExchange(client, ruleSets, isClean),
    upstream: upstream === null ? null : yield* maskedExchange(upstream, ruleSets, isClean),
  }
}

function* maskedText(text: string, ruleSets: readonly RuleSet[]): Steps<string> {
  let masked = text
  for (const rules of ruleSets) masked = yield* new WholeTexts(rules, 'mask', MASK_LIMIT).text(masked)
  return masked
}

/** A text of a body; one that is JSON, such as the arguments of a call, is masked as guardrails judge it. */
function* maskedString(text: string, ruleSets: readonly RuleSet[]): Steps<string> {
  if (!/^\s*[[{]/.test(text)) return yield* maskedText(text, ruleSets)
  return yield* judgedArguments(text, (each) => maskedText(each, ruleSets))
}

/** Without the escapes of a URL if something in it is masked. */
function* maskedPath(path: string, ruleSets: readonly RuleSet[]): Steps<string> {
  const plain = decoded(path.replaceAll('+', ' '))
  const masked = yield* maskedText(plain, ruleSets)
  return masked === plain ? yield* maskedText(path, ruleSets) : masked
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

function* maskedValue(value: JsonValue, ruleSets: readonly RuleSet[]): Steps<JsonValue> {
  if (typeof value === 'string') return yield* maskedString(value, ruleSets)
  if (Array.isArray(value)) {
    const items: JsonValue[] = []
    for (const item of value) items.push(yield* maskedValue(item, ruleSets))
    return items
  }
  if (!isObject(value)) return value
  const members: [string, JsonValue][] = []
  for (const [name, each = null] of Object.entries(value)) {
    members.push([yield* maskedText(name, ruleSets), yield* maskedValue(each, ruleSets)])
  }
  return Object.fromEntries(members)
}

function* maskedBody(text: string, ruleSets: readonly RuleSet[]): Steps<string> {
  const body = jsonOr(text)
  if (typeof body === 'string') return yield* maskedText(text, ruleSets)
  return JSON.stringify(yield* maskedValue(body as JsonValue, ruleSets))
}

/** `isClean`: nothing in the texts of the whole reply is masked. */
function* maskedExchange(
  { request, response }: WireExchange,
  ruleSets: readonly RuleSet[],
  isClean: boolean,
): Steps<WireExchange> {
  const path = yield* maskedPath(request.path, ruleSets)
  const chunks = yield* maskedChunks(response.chunks, ruleSets, isClean)
  const body = yield* maskedBody(request.body, ruleSets)
  return {
    request: { ...request, path, headers: yield* maskedHeaders(request.headers, ruleSets), body },
    response: { ...response, headers: yield* maskedHeaders(response.headers, ruleSets), chunks },
  }
}

function* maskedHeaders(
  headers: Readonly<Record<string, string>>,
  ruleSets: readonly RuleSet[],
): Steps<Record<string, string>> {
  const masked: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) masked[name] = yield* maskedText(value, ruleSets)
  return masked
}

/** The chunks of a reply as one if it is JSON; those of a stream only if nothing in them is masked. */
function* maskedChunks(
  chunks: readonly WireChunk[],
  ruleSets: readonly RuleSet[],
  isClean: boolean,
): Steps<WireChunk[]> {
  const [first] = chunks
  if (first === undefined) return []
  const text = Buffer.concat(chunks.map(bytesOf)).toString('utf8')
  if (typeof jsonOr(text) !== 'string') {
    const masked = yield* maskedBody(text, ruleSets)
    return masked === JSON.stringify(jsonOr(text)) ? [...chunks] : [{ at_ms: first.at_ms, data: masked }]
  }
  return isClean && (yield* maskedText(text, ruleSets)) === text ? [...chunks] : [HIDDEN]
}

/** Encrypts and decrypts the recordings of accounts. */
export class RecordingSeal {
  private readonly secret: string

  /** `secret`: `escrow.key`. */
  constructor(secret: string) {
    this.secret = secret
  }

  seal(accountId: string, recording: Recording): Buffer {
    return this.of(accountId).seal(recording.id, JSON.stringify(recording))
  }

  /** Null if it was sealed with another key or for another account, or is damaged. */
  open(head: Pick<RecordingHead, 'id' | 'accountId'>, sealed: Uint8Array): Recording | null {
    const text = this.of(head.accountId).open(head.id, sealed)
    return text === null ? null : (JSON.parse(text) as Recording)
  }

  private of(accountId: string): Seal {
    return new Seal(`${this.secret}\nrecordings of ${accountId}`)
  }
}

interface RecordingFilter {
  readonly accountId?: string
  readonly sinceMs?: number
}

/** The place of encrypted recordings. */
export interface Recordings {
  put(head: RecordingHead, sealed: Buffer): Promise<void>
  /** Newest first. */
  list(filter: RecordingFilter, nowMs: number): Promise<RecordingHead[]>
  find(id: string, nowMs: number): Promise<{ head: RecordingHead; sealed: Uint8Array } | null>
  /** Removes one with the entry of the audit trail; false if there is none. */
  remove(id: string, entry: AuditEntry): Promise<boolean>
  /** Removes expired ones. */
  sweep(nowMs: number): Promise<void>
}

/** The recordings of the configuration; null if they are sent to a URL. */
export function recordingsOf(
  to: RecordConfig['to'],
  { sealedRecords, auditTrail }: Pick<Store, 'sealedRecords' | 'auditTrail'>,
): Recordings | null {
  if (to.kind === 'url') return null
  return to.kind === 'store' ? new StoredRecordings(sealedRecords) : new RecordingFiles(to.path, auditTrail)
}

/** Maximum size of all recordings in the store; beyond it those that expire first are removed. */
const MAX_STORE_BYTES = 4 * 1024 * 1024 * 1024

class StoredRecordings implements Recordings {
  private readonly records: Store['sealedRecords']

  constructor(records: Store['sealedRecords']) {
    this.records = records
  }

  put(head: RecordingHead, sealed: Buffer): Promise<void> {
    const { id, accountId, keyId, model, atMs, expiresAtMs, upstream, status } = head
    const info = JSON.stringify({ upstream, status })
    const record = { kind: 'recording' as const, id, accountId, keyId, model, atMs, expiresAtMs }
    return this.records.put({ ...record, info, value: sealed }, MAX_STORE_BYTES, atMs)
  }

  async list(filter: RecordingFilter, nowMs: number): Promise<RecordingHead[]> {
    return (await this.records.list('recording', filter, nowMs)).map(headOf)
  }

  async find(id: string, nowMs: number): ReturnType<Recordings['find']> {
    const record = await this.records.find('recording', id, nowMs)
    if (record === null) return null
    return { head: headOf({ ...record, bytes: record.value.length }), sealed: record.value }
  }

  remove(id: string, entry: AuditEntry): Promise<boolean> {
    return this.records.take('recording', id, [entry])
  }

  async sweep(nowMs: number): Promise<void> {
    await this.records.sweep(nowMs)
  }
}

function headOf(record: Omit<RecordingHead, 'upstream' | 'status'> & { info: string }): RecordingHead {
  const { id, atMs, expiresAtMs, accountId, keyId, model, bytes, info } = record
  const facts = objectOf(JSON.parse(info === '' ? '{}' : info))
  const upstream = stringOf(facts['upstream']) ?? null
  const status = numberOf(facts['status']) ?? 0
  return { id, atMs, expiresAtMs, accountId, keyId, model, upstream, status, bytes }
}

const SUFFIX = '.recording'
/** The end of the name of a file that is not complete. */
const UNFINISHED = '.new'
/** An older file that is not complete is of a process that was killed. */
const WRITING_MS = 60_000
const FILE_ID = /^[\w-]{1,128}$/

/** One file for each: a line of JSON with its head, then the encrypted bytes. */
class RecordingFiles implements Recordings {
  private readonly folder: string
  private readonly auditTrail: Store['auditTrail']

  constructor(folder: string, auditTrail: Store['auditTrail']) {
    this.folder = folder
    this.auditTrail = auditTrail
  }

  async put(head: RecordingHead, sealed: Buffer): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    const line = Buffer.from(`${JSON.stringify(head)}\n`)
    const path = this.pathOf(head.id)
    // Complete or absent, also after a crash.
    await writeFile(path + UNFINISHED, Buffer.concat([line, sealed]), { mode: 0o600 })
    await rename(path + UNFINISHED, path)
  }

  async list({ accountId, sinceMs = 0 }: RecordingFilter, nowMs: number): Promise<RecordingHead[]> {
    const heads: RecordingHead[] = []
    for (const name of await readdir(this.folder).catch(() => [])) {
      if (!name.endsWith(SUFFIX)) continue
      const found = await this.find(name.slice(0, -SUFFIX.length), nowMs)
      if (found === null || found.head.atMs < sinceMs) continue
      if (accountId === undefined || found.head.accountId === accountId) heads.push(found.head)
    }
    return heads.sort((a, b) => b.atMs - a.atMs)
  }

  async find(id: string, nowMs: number): ReturnType<Recordings['find']> {
    if (!FILE_ID.test(id)) return null
    const bytes = await readFile(this.pathOf(id)).catch(() => null)
    const end = bytes?.indexOf('\n') ?? -1
    if (bytes === null || end < 0) return null
    const head: unknown = JSON.parse(bytes.subarray(0, end).toString('utf8'))
    if (!isObject(head)) return null
    // Written by `put`.
    const found = head as unknown as RecordingHead
    return found.expiresAtMs <= nowMs ? null : { head: found, sealed: bytes.subarray(end + 1) }
  }

  /** The entry is stored first, so that no file is removed without one. */
  async remove(id: string, entry: AuditEntry): Promise<boolean> {
    if (!FILE_ID.test(id) || !existsSync(this.pathOf(id))) return false
    await this.auditTrail.add(entry)
    await rm(this.pathOf(id), { force: true })
    return true
  }

  async sweep(nowMs: number): Promise<void> {
    for (const name of await readdir(this.folder).catch(() => [])) {
      const id = name.slice(0, -SUFFIX.length)
      if (name.endsWith(SUFFIX) && (await this.find(id, nowMs)) === null) {
        await rm(this.pathOf(id), { force: true })
      }
      if (!name.endsWith(SUFFIX + UNFINISHED)) continue
      const path = join(this.folder, name)
      const file = await stat(path).catch(() => null)
      if (file !== null && file.mtimeMs < nowMs - WRITING_MS) await rm(path, { force: true })
    }
  }

  private pathOf(id: string): string {
    return join(this.folder, `${id}${SUFFIX}`)
  }
}

/** The upstream's side of a recording, for `sluice emulate`. */
interface Cassette {
  readonly version: 1
  readonly id: string
  readonly request: {
    readonly method: string
    readonly path: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: unknown
  }
  readonly response: {
    readonly status: number
    readonly headers: Readonly<Record<string, string>>
    readonly chunks: readonly WireChunk[]
  }
}

/**
 * Null if no upstream got the request; `redacted` if `record.redact` left its reply out. Secrets in texts are
 * hidden.
 */
export function cassetteOf({ id, upstream }: Recording): Cassette | 'redacted' | null {
  if (upstream === null) return null
  if (isHidden(upstream)) return 'redacted'
  const { request, response } = upstream
  const body = hideSecrets(request.body)
  return {
    version: 1,
    id,
    request: { ...request, body: jsonOr(body) },
    response: {
      ...response,
      chunks: response.chunks.map((chunk) =>
        'data' in chunk ? { ...chunk, data: hideSecrets(chunk.data) } : chunk,
      ),
    },
  }
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
