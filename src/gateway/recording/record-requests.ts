/**
 * Records requests (`record`): the bytes of both sides while the request runs, and the encrypted recording
 * after its end. Loaded at the first request of a configuration that records.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { hasAccountOf } from '../../accounts/account.js'
import type { RecordConfig } from '../../config/schema/record-schema.js'
import { objectOf, type JsonObject } from '../../base/json.js'
import { isChat, type ChatRequest } from '../../formats/chat/request.js'
import { Grammar } from '../../formats/chat/grammar.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { Logger } from '../../observe/log.js'
import {
  bytesOf,
  chunkOf,
  recordingsOf,
  redacted,
  RecordingSeal,
  safeHeaders,
  safePath,
  type Recording,
  type RecordingHead,
  type WireExchange,
} from '../../policy/encrypted-recordings.js'
import type { RuleSet } from '../../policy/rules/rule-set.js'
import { CapturedStream, ReplyCapture, replyOf } from '../../policy/capture-and-replay.js'
import type { Store } from '../../store/store.js'
import { adminTurns } from '../../base/turn-queue.js'
import type { AttemptResult } from '../attempts/attempt-result.js'
import { isEventStream } from '../attempts/read-reply.js'
import type { Exchange } from '../client-exchange.js'
import type { RequestRecorder } from '../phases/phase-results.js'
import type { Call } from '../phases/call.js'

/** Recordings that wait to be written or sent; further ones are dropped. */
const MAX_WAITING = 100
/** Time between two removals of expired recordings. */
const SWEEP_MS = 5_000
const SEND_MS = 10_000

/** The services of recording. */
export interface RecordingOptions {
  readonly store: Pick<Store, 'sealedRecords' | 'auditTrail'>
  /** `escrow.key`. */
  readonly secret: string
  readonly log: Pick<Logger, 'warn'>
  /** The settings in force, which say where expired recordings are removed. */
  readonly settings: () => RecordConfig | null
}

/** Records the requests of one process. Open until `close`. */
export class RecordingService {
  private readonly options: RecordingOptions
  private readonly seal: RecordingSeal
  private readonly timer: NodeJS.Timeout
  private waiting = 0

  constructor(options: RecordingOptions) {
    this.options = options
    this.seal = new RecordingSeal(options.secret)
    this.timer = setInterval(() => this.sweep(), SWEEP_MS).unref()
    this.sweep()
  }

  close(): void {
    clearInterval(this.timer)
  }

  /** Begins to record the request; null if it is none of those to record. */
  begin(x: Exchange, settings: RecordConfig): Recorder | null {
    const { identity, call } = x
    const { labels, accounts, models, sample } = settings
    if (!Object.entries(labels).every(([name, value]) => identity.labels[name] === value)) {
      return null
    }
    if (accounts !== null && !hasAccountOf(accounts, identity)) return null
    if (models !== null && !models.includes(call.request.model)) return null
    if (sample < 1 && Math.random() >= sample) return null
    const keep = (recorder: Recorder, entry: LedgerEntry): void => this.keep(recorder, entry, x.attempt)
    return new Recorder(x, { call, settings, keep })
  }

  /** Stores the recording of a request that has ended. */
  private keep(recorder: Recorder, entry: LedgerEntry, attempt: AttemptResult | null): void {
    if (!recorder.isKept(entry)) return
    if (this.waiting >= MAX_WAITING) {
      this.options.log.warn('recording dropped', { request_id: entry.requestId })
      return
    }
    this.waiting += 1
    this.write(recorder, entry, attempt)
      .catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error)
        this.options.log.warn('recording failed', { request_id: entry.requestId, reason })
      })
      .finally(() => {
        this.waiting -= 1
      })
  }

  private async write(recorder: Recorder, entry: LedgerEntry, attempt: AttemptResult | null): Promise<void> {
    const { settings, ruleSets } = recorder
    const recording = await adminTurns.run(redacted(recorder.recordingOf(entry, attempt), ruleSets))
    const { accountId, keyId, status, upstream, atMs, requestId: id } = entry
    if (settings.to.kind === 'url') {
      const body = JSON.stringify({ account_id: accountId, at: new Date(atMs), ...recording })
      const response = await fetch(settings.to.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
        redirect: 'error',
        signal: AbortSignal.timeout(SEND_MS),
      })
      await response.body?.cancel()
      if (!response.ok) throw new Error(`the receiver answered ${response.status}`)
      return
    }
    const sealed = this.seal.seal(accountId, recording)
    const head: RecordingHead = {
      ...{ id, atMs, accountId, keyId, upstream, status, bytes: sealed.length },
      expiresAtMs: atMs + settings.keepMs,
      model: entry.modelAsked ?? '',
    }
    await recordingsOf(settings.to, this.options.store)?.put(head, sealed)
  }

  private sweep(): void {
    const { settings, store } = this.options
    const { to = null } = settings() ?? {}
    // The store counts its failures.
    if (to !== null)
      recordingsOf(to, store)
        ?.sweep(Date.now())
        .catch(() => undefined)
  }
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] }

/** The request that is recorded, and the function that keeps its recording. */
interface RecorderOptions {
  readonly call: Call
  readonly settings: RecordConfig
  readonly keep: (recorder: Recorder, entry: LedgerEntry) => void
}

/** Collects the bytes of one request. */
class Recorder implements RequestRecorder {
  readonly settings: RecordConfig
  /** The rules by which its texts are masked. */
  readonly ruleSets: readonly RuleSet[]
  private readonly x: Exchange
  private readonly call: Call
  private readonly keep: RecorderOptions['keep']
  private readonly client: WireExchange
  private readonly attempts = new Map<AttemptResult, WireExchange>()
  private size = 0

  constructor(x: Exchange, { call, settings, keep }: RecorderOptions) {
    this.x = x
    this.call = call
    this.settings = settings
    const guardrails = x.generation.policy?.named(settings.redact) ?? []
    this.ruleSets = guardrails.flatMap(({ rules }) => rules ?? [])
    this.keep = keep
    const { req } = x
    const body = call.raw.toString('utf8')
    this.size += body.length
    this.client = {
      request: {
        method: req.method ?? 'POST',
        path: safePath(req.url ?? ''),
        headers: safeHeaders(Object.entries(req.headers)),
        body,
      },
      response: { status: 0, headers: {}, chunks: [] },
    }
    this.watchReply()
  }

  /** An attempt is sent. */
  sent(
    attempt: AttemptResult,
    { path, headers, body }: { path: string; headers: readonly string[]; body: Buffer | string },
  ): void {
    const pairs: [string, string][] = []
    for (let at = 0; at < headers.length; at += 2) {
      pairs.push([headers[at] ?? '', headers[at + 1] ?? ''])
    }
    const text = body.toString('utf8')
    this.size += text.length
    this.attempts.set(attempt, {
      request: { method: 'POST', path: safePath(path), headers: safeHeaders(pairs), body: text },
      response: { status: 0, headers: {}, chunks: [] },
    })
  }

  /** The head of the upstream's reply. */
  head(attempt: AttemptResult, status: number, headers: IncomingHttpHeaders): void {
    const exchange = this.attempts.get(attempt)
    if (exchange === undefined) return
    exchange.response.status = status
    exchange.response.headers = safeHeaders(Object.entries(headers))
  }

  /** Bytes of the upstream's reply. */
  bytes(attempt: AttemptResult, chunk: Buffer): void {
    const exchange = this.attempts.get(attempt)
    if (exchange !== undefined) this.take(exchange, chunk, attempt.beganAtMs ?? this.x.startedMs)
  }

  /** Whether the request is recorded, as far as is known at the end of its reply. */
  isKept({ outcome }: Pick<LedgerEntry, 'outcome'>): boolean {
    const { maxBytes, onlyErrors } = this.settings
    return this.size <= maxBytes && (!onlyErrors || outcome !== 'ok')
  }

  /** The request has ended: keeps its recording. */
  ended(entry: LedgerEntry): void {
    this.keep(this, entry)
  }

  /** The recording of the request, which has ended. */
  recordingOf(entry: LedgerEntry, attempt: AttemptResult | null): Recording {
    const upstream = attempt === null ? null : (this.attempts.get(attempt) ?? null)
    const { usage, costNanoUsd, durationMs, status, requestId: id } = entry
    return {
      id,
      request: canonical(this.call.request),
      reply: upstream === null || attempt === null ? null : replyIn(upstream, attempt, this.call),
      client: this.client,
      upstream,
      facts: {
        model: this.call.request.model,
        upstream: entry.upstream,
        requested_model: attempt?.candidate.model ?? null,
        upstream_model: entry.modelAnswered,
        status,
        input_tokens: usage.input ?? null,
        output_tokens: usage.output ?? null,
        cost_nano_usd: costNanoUsd,
        duration_ms: durationMs,
        dimensions: entry.dimensions,
        program: entry.program,
        user: entry.user,
      },
    }
  }

  private take({ response }: WireExchange, bytes: Buffer, sinceMs: number): void {
    this.size += bytes.length
    if (this.size > this.settings.maxBytes) return
    response.chunks.push(chunkOf(Buffer.from(bytes), performance.now() - sinceMs))
  }

  /** Notes what is written to the client. */
  private watchReply(): void {
    const { res, startedMs } = this.x
    const { client } = this
    const note = (chunk: unknown): void => {
      if (typeof chunk === 'string') this.take(client, Buffer.from(chunk), startedMs)
      else if (Buffer.isBuffer(chunk)) this.take(client, chunk, startedMs)
    }
    const writeHead = res.writeHead.bind(res)
    const write = res.write.bind(res)
    const end = res.end.bind(res)
    const target: Mutable<Pick<typeof res, 'writeHead' | 'write' | 'end'>> = res
    target.writeHead = (status, headers) => {
      client.response.status = status
      client.response.headers = safeHeaders(pairsOf(headers))
      return writeHead(status, headers)
    }
    target.write = ((chunk: unknown, ...rest: unknown[]) => {
      note(chunk)
      return Reflect.apply(write, res, [chunk, ...rest]) as boolean
    }) as typeof write
    target.end = ((...args: unknown[]) => {
      note(args[0])
      return Reflect.apply(end, res, args) as typeof res
    }) as typeof end
  }
}

function pairsOf(headers: object | undefined): [string, unknown][] {
  if (headers === undefined) return []
  if (!Array.isArray(headers)) return Object.entries(headers)
  const list: readonly unknown[] = headers
  const pairs: [string, unknown][] = []
  for (let at = 0; at < list.length; at += 2) pairs.push([String(list[at]), list[at + 1]])
  return pairs
}

function canonical(request: ChatRequest): JsonObject {
  const text = JSON.stringify(request, (_, value: unknown): unknown =>
    value instanceof Map ? [...(value as Map<unknown, unknown>)] : value,
  )
  return objectOf(JSON.parse(text))
}

/** The canonical reply in the bytes of the upstream; null if they are no complete reply. */
function replyIn(
  { response }: WireExchange,
  { candidate, call }: AttemptResult,
  { request }: Call,
): JsonObject | null {
  if (response.status !== 200 || !isChat(request)) return null
  const { upstreamCodec } = candidate.target
  const capture = new ReplyCapture({ maxBytes: Infinity, isShared: () => true })
  const chunks = response.chunks.map(bytesOf)
  const sent = call?.request ?? request
  try {
    if (isEventStream(response.headers)) {
      const captured = new CapturedStream(capture.events(), upstreamCodec, sent)
      for (const chunk of chunks) captured.write(chunk)
      captured.end()
    } else {
      const body: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
      upstreamCodec.decodeReply(objectOf(body), sent, new Grammar(capture.events()))
    }
  } catch {
    return null
  }
  const reply = replyOf(capture.log?.events ?? [])
  return reply === null ? null : objectOf(JSON.parse(JSON.stringify(reply)))
}
