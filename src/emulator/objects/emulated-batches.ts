/**
 * Batches of OpenAI, Anthropic and Google, and Mistral's jobs, below OpenAI's base path: their lines
 * are answered like requests of their own, when the batch is made; clients see the results when it ends.
 *
 * Sources, read 2026-11-29: the batches of the SDKs openai 7.59.0, @anthropic-ai/sdk 1.14.0, @google/genai
 * 3.3.0 and mistralai 3.7.0; Gemini API reference, "Batch API".
 */
import { arrayOf, isObject, numberOf, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import { applyFaults } from '../faults/content-faults.js'
import { lastUserText } from '../faults/fault-script.js'
import type { Fault } from '../faults/fault-table.js'
import { directionsOf } from '../prompt-directives.js'
import type { FrameWriter, ParsedRequest, Reply } from '../emulated-exchange.js'
import {
  checkKey,
  jsonReply,
  objectError,
  type EmulatedFiles,
  type ObjectProvider,
} from './emulated-files.js'

/** How a request is answered outside of a batch. */
interface LineReplier {
  readonly replyTo: (request: ParsedRequest) => Reply
  readonly framesOf: (request: ParsedRequest) => FrameWriter
}

/** The request of a line, and its name in the batch. */
interface Line {
  readonly key: string
  readonly path: string
  readonly body: JsonObject
  /** Google's `metadata`, which comes back. */
  readonly metadata: JsonObject | null
}

/** Why a line has no reply, or its reply. */
type LineResult =
  | { readonly kind: 'reply'; readonly status: number; readonly body: JsonObject }
  | { readonly kind: 'expired' | 'cancelled' | 'lost' }

interface EmulatedBatch {
  readonly id: string
  readonly provider: ObjectProvider
  /** Whether it is a job of Mistral. */
  readonly isJob: boolean
  /** The request without its lines. */
  readonly asked: JsonObject
  readonly model: string
  readonly inputFileId: string | null
  readonly lines: readonly Line[]
  readonly results: LineResult[]
  readonly atMs: number
  /** When it ends by itself. */
  endsMs: number
  cancelledMs: number | null
  readonly isReordered: boolean
  readonly isExpiring: boolean
  /** The ids of the files with results; null before the first look after its end. */
  outputs: { readonly output: string | null; readonly error: string | null } | null
}

type State = 'validating' | 'in_progress' | 'completed' | 'expired' | 'cancelled'

/** A batch runs so long, without a fault. */
const RUN_MS = 300
const DAY_MS = 86_400_000

/** The files of batches, and the clock. */
interface BatchesOptions extends LineReplier {
  readonly files: EmulatedFiles
  readonly clock: () => number
}

/** What a new batch is made with. */
interface NewBatch {
  readonly faults: readonly Fault[]
  /** The model in Google's path. */
  readonly model: string | undefined
  readonly isJob: boolean
}

/** The path of Mistral's jobs. */
const JOBS = '/batch/jobs'

/** The batches of one emulator. */
export class EmulatedBatches {
  private readonly options: BatchesOptions
  private readonly batches = new Map<string, EmulatedBatch>()

  constructor(options: BatchesOptions) {
    this.options = options
  }

  forget(): void {
    this.batches.clear()
  }

  /** Null if the path is none of batches. `faults`: those of the request, which the batch has then. */
  reply(request: ParsedRequest, faults: readonly Fault[]): Reply | null {
    const { provider, method, path } = request
    if (provider === 'bedrock') return null
    const [, model] = /^\/models\/([^/:]+):batchGenerateContent$/.exec(path) ?? []
    const isJob = provider === 'openai' && (path === JOBS || path.startsWith(`${JOBS}/`))
    const root = isJob ? JOBS : provider === 'anthropic' ? '/messages/batches' : '/batches'
    const isRoot = path === root
    if (model === undefined && !isRoot && !path.startsWith(`${root}/`)) return null
    checkKey(request)
    if (method === 'POST' && (model !== undefined || isRoot))
      return this.create(request, provider, { faults, model, isJob })
    if (isRoot) return this.list(request, provider, isJob)
    const [, id = '', action = ''] = /^\/([^/:]+)(?:[/:](.*))?$/.exec(path.slice(root.length)) ?? []
    const batch = this.batches.get(id)
    if (batch?.provider !== provider || batch.isJob !== isJob)
      return objectError(provider, 404, `No batch found with id '${id}'.`)
    if (method === 'DELETE') return this.remove(batch)
    if (action === 'cancel') return this.cancel(batch, request)
    if (action === 'results') return this.anthropicResults(batch, request)
    return jsonReply(provider, this.shown(batch, request))
  }

  private create(
    request: ParsedRequest,
    provider: ObjectProvider,
    { faults, model, isJob }: NewBatch,
  ): Reply {
    const { body = {} } = request
    const { inputFileId, lines } = isJob ? this.linesOfJob(body) : this.linesOf(provider, body, model)
    if (lines === null) return objectError(provider, 404, `No such file: ${inputFileId ?? ''}`)
    if (lines.length === 0) return objectError(provider, 400, 'The batch has no requests.')
    const prefix = isJob
      ? 'job-'
      : provider === 'openai'
        ? 'batch_'
        : provider === 'anthropic'
          ? 'msgbatch_'
          : ''
    const has = (kind: Fault['kind']): Fault | undefined => faults.find((fault) => fault.kind === kind)
    const atMs = this.options.clock()
    const results = lines.map((line) => this.resultOf(line, request))
    if (has('lose-result') !== undefined) results[results.length - 1] = { kind: 'lost' }
    const isExpiring = has('expire') !== undefined
    if (isExpiring) results.fill({ kind: 'expired' }, Math.floor(results.length / 2))
    const batch: EmulatedBatch = {
      ...{
        id: this.options.files.newId(prefix),
        provider,
        isJob,
        asked: askedOf(body),
        lines,
        results,
        atMs,
      },
      ...{ model: model ?? stringOf(lines[0]?.body['model']) ?? '', inputFileId },
      endsMs: atMs + RUN_MS + (has('late-results')?.ms ?? 0),
      ...{ cancelledMs: null, isExpiring, outputs: null, isReordered: has('reorder') !== undefined },
    }
    this.batches.set(batch.id, batch)
    return jsonReply(provider, this.shown(batch, request))
  }

  /** The lines of a job, whose path and model are those of the job. */
  private linesOfJob(body: JsonObject): {
    readonly inputFileId: string | null
    readonly lines: Line[] | null
  } {
    const named = stringOf(arrayOf(body['input_files'])[0]) ?? null
    const file = named === null ? null : this.options.files.find('openai', named)
    const sent = named === null ? arrayOf(body['requests']).map(objectOf) : file && jsonLines(file.bytes)
    const path = (stringOf(body['endpoint']) ?? '').replace(/^\/v1/, '')
    const lines = sent?.map((each) => {
      const line = lineOf('custom_id', each, { path })
      return { ...line, body: { ...line.body, model: body['model'] ?? null } }
    })
    return { inputFileId: named, lines: lines ?? null }
  }

  private linesOf(
    provider: ObjectProvider,
    body: JsonObject,
    model: string | undefined,
  ): { readonly inputFileId: string | null; readonly lines: Line[] | null } {
    const endpoint = `/models/${model ?? ''}:generateContent`
    if (provider === 'anthropic') {
      const lines = arrayOf(body['requests']).map(objectOf)
      return {
        inputFileId: null,
        lines: lines.map((line) => lineOf('custom_id', line, { path: '/messages' })),
      }
    }
    const config = objectOf(objectOf(body['batch'])['inputConfig'])
    const inline = arrayOf(objectOf(config['requests'])['requests']).map(objectOf)
    if (provider === 'gemini' && inline.length > 0) {
      return { inputFileId: null, lines: inline.map((line) => lineOf('', line, { path: endpoint })) }
    }
    const named = stringOf(provider === 'gemini' ? config['fileName'] : body['input_file_id']) ?? ''
    const file = this.options.files.find(provider, named.replace(/^files\//, ''))
    const [idName, path] = provider === 'gemini' ? ['key', endpoint] : ['custom_id', '']
    const lines = file === null ? null : jsonLines(file.bytes).map((line) => lineOf(idName, line, { path }))
    return { inputFileId: named, lines }
  }

  /** Answers a line; a directive in its prompt may let it fail or lose its result. */
  private resultOf({ path, body }: Line, batch: ParsedRequest): LineResult {
    const { replyTo, framesOf } = this.options
    const request: ParsedRequest = { ...batch, method: 'POST', path, body }
    const { faults } = directionsOf(lastUserText(request))
    if (faults.some(({ kind }) => kind === 'lose-result')) return { kind: 'lost' }
    if (faults.some(({ kind }) => kind === 'expire')) return { kind: 'expired' }
    const plan = applyFaults(replyTo(request), faults, {
      provider: batch.provider,
      frames: framesOf(request),
    })
    const text = Buffer.concat(plan.units.map((unit) => Buffer.from(unit))).toString()
    return {
      kind: 'reply',
      status: plan.status,
      body: jsonLines(Buffer.from(text.replaceAll('\n', ' ')))[0] ?? {},
    }
  }

  private list(request: ParsedRequest, provider: ObjectProvider, isJob: boolean): Reply {
    const own = [...this.batches.values()]
      .filter((batch) => batch.provider === provider && batch.isJob === isJob)
      .toReversed()
    const shown = own.map((batch) => this.shown(batch, request))
    if (isJob) {
      const { query } = request
      const [page, size] = [Number(query.get('page') ?? 0), Number(query.get('page_size') ?? 100)]
      const data = shown.slice(page * size, (page + 1) * size)
      return jsonReply(provider, { object: 'list', data, total: shown.length })
    }
    if (provider === 'gemini') return jsonReply(provider, { operations: shown })
    const ends = { first_id: own[0]?.id ?? null, last_id: own.at(-1)?.id ?? null, has_more: false }
    return jsonReply(provider, { ...(provider === 'openai' && { object: 'list' }), data: shown, ...ends })
  }

  private remove({ id, provider }: EmulatedBatch): Reply {
    this.batches.delete(id)
    return jsonReply(provider, provider === 'anthropic' ? { id, type: 'message_batch_deleted' } : {})
  }

  /** The first half of its lines has run; the others are cancelled. */
  private cancel(batch: EmulatedBatch, request: ParsedRequest): Reply {
    const nowMs = this.options.clock()
    if (nowMs < batch.endsMs && batch.cancelledMs === null) {
      batch.cancelledMs = nowMs
      batch.results.fill({ kind: 'cancelled' }, Math.floor(batch.results.length / 2))
      batch.endsMs = Math.min(batch.endsMs, nowMs + RUN_MS)
    }
    return jsonReply(batch.provider, batch.provider === 'gemini' ? {} : this.shown(batch, request))
  }

  private stateOf(batch: EmulatedBatch): State {
    const nowMs = this.options.clock()
    if (nowMs < batch.endsMs) return nowMs - batch.atMs < RUN_MS / 3 ? 'validating' : 'in_progress'
    if (batch.cancelledMs !== null) return 'cancelled'
    return batch.isExpiring ? 'expired' : 'completed'
  }

  private shown(batch: EmulatedBatch, request: ParsedRequest): JsonObject {
    switch (batch.provider) {
      case 'openai':
        return batch.isJob ? this.job(batch) : this.openAi(batch)
      case 'anthropic':
        return anthropicBatch(batch, {
          state: this.stateOf(batch),
          origin: `http://${request.headers.host ?? ''}`,
        })
      case 'gemini':
        return this.google(batch)
    }
  }

  private openAi(batch: EmulatedBatch): JsonObject {
    const state = this.stateOf(batch)
    const isEnded = hasEnded(state)
    if (isEnded) batch.outputs ??= this.openAiFiles(batch)
    const { id, asked, inputFileId, atMs, endsMs, cancelledMs, results, outputs } = batch
    const seconds = (ms: number): number => Math.floor(ms / 1000)
    const at = (of: State): number | null => (state === of ? seconds(endsMs) : null)
    const completed = isEnded ? results.filter(isOk).length : 0
    return {
      ...{ id, object: 'batch', endpoint: asked['endpoint'] ?? null, model: batch.model, errors: null },
      ...{ input_file_id: inputFileId, completion_window: asked['completion_window'] ?? '24h' },
      status: cancelledMs !== null && !isEnded ? 'cancelling' : state,
      ...{ output_file_id: outputs?.output ?? null, error_file_id: outputs?.error ?? null },
      ...{ created_at: seconds(atMs), in_progress_at: state === 'validating' ? null : seconds(atMs) },
      ...{
        expires_at: seconds(atMs + DAY_MS),
        finalizing_at: at('completed'),
        completed_at: at('completed'),
      },
      ...{ failed_at: null, expired_at: at('expired'), cancelled_at: at('cancelled') },
      cancelling_at: cancelledMs === null ? null : seconds(cancelledMs),
      request_counts: { total: results.length, completed, failed: isEnded ? results.length - completed : 0 },
      metadata: asked['metadata'] ?? null,
    }
  }

  private job(batch: EmulatedBatch): JsonObject {
    const state = this.stateOf(batch)
    const isEnded = hasEnded(state)
    if (isEnded) batch.outputs ??= this.openAiFiles(batch)
    const { id, asked, model, inputFileId, atMs, endsMs, cancelledMs, results, outputs } = batch
    const seconds = (ms: number): number => Math.floor(ms / 1000)
    const succeeded = isEnded ? results.filter(isOk).length : 0
    const completed = isEnded ? results.filter(({ kind }) => kind === 'reply').length : 0
    return {
      ...{ id, object: 'batch', endpoint: asked['endpoint'] ?? null, model, errors: [] },
      ...{ input_files: inputFileId === null ? [] : [inputFileId], metadata: asked['metadata'] ?? null },
      status: cancelledMs !== null && !isEnded ? 'CANCELLATION_REQUESTED' : MISTRAL_STATES[state],
      ...{ output_file: outputs?.output ?? null, error_file: outputs?.error ?? null },
      ...{ created_at: seconds(atMs), started_at: state === 'validating' ? null : seconds(atMs) },
      ...{ completed_at: isEnded ? seconds(endsMs) : null, total_requests: results.length },
      ...{ completed_requests: completed, succeeded_requests: succeeded },
      failed_requests: completed - succeeded,
    }
  }

  private openAiFiles(batch: EmulatedBatch): NonNullable<EmulatedBatch['outputs']> {
    const shown = resultsOf(batch).flatMap(({ line, result }, at): JsonObject[] => {
      if (result.kind === 'lost') return []
      const own = { id: `batch_req_${batch.id}-${at}`, custom_id: line.key }
      if (result.kind !== 'reply') {
        const message = `This request ${result.kind === 'expired' ? 'could not be executed before the completion window expired' : 'was cancelled'}.`
        return [{ ...own, response: null, error: { code: `batch_${result.kind}`, message } }]
      }
      const { status, body } = result
      return [{ ...own, response: { status_code: status, request_id: own.id, body }, error: null }]
    })
    const isGood = (line: JsonObject): boolean => {
      return (numberOf(objectOf(line['response'])['status_code']) ?? 500) < 400
    }
    const keep = (name: string, lines: readonly JsonObject[]): string | null =>
      lines.length === 0 ? null : this.keepResults(batch, name, lines)
    return {
      output: keep('output', shown.filter(isGood)),
      error: keep(
        'errors',
        shown.filter((line) => !isGood(line)),
      ),
    }
  }

  private keepResults(
    { id, provider, endsMs }: EmulatedBatch,
    name: string,
    lines: readonly JsonObject[],
  ): string {
    const { files } = this.options
    const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    const about = { provider, name: `${id}_${name}.jsonl`, purpose: 'batch_output', atMs: endsMs }
    return files.keep({ ...about, bytes, id: files.newId(provider === 'gemini' ? 'batch-' : 'file-') }).id
  }

  private anthropicResults(batch: EmulatedBatch, request: ParsedRequest): Reply {
    if (!hasEnded(this.stateOf(batch))) return objectError(batch.provider, 404, 'The batch has not ended.')
    const lines = resultsOf(batch).flatMap(({ line, result }) => {
      if (result.kind === 'lost') return []
      const shown =
        result.kind !== 'reply'
          ? { type: result.kind === 'cancelled' ? 'canceled' : result.kind }
          : result.status < 400
            ? { type: 'succeeded', message: result.body }
            : { type: 'errored', error: { ...result.body, request_id: `req_${request.seed}` } }
      return [`${JSON.stringify({ custom_id: line.key, result: shown })}\n`]
    })
    const headers = { 'content-type': 'application/x-jsonl' }
    return { status: 200, headers, units: [lines.join('')], stream: false, terminators: 0 }
  }

  private google(batch: EmulatedBatch): JsonObject {
    const { id, model, asked, results, inputFileId, atMs, endsMs } = batch
    const state = this.stateOf(batch)
    const isEnded = hasEnded(state)
    const name = `batches/${id}`
    const ok = isEnded ? results.filter(isOk).length : 0
    const failed = isEnded ? results.length - ok : 0
    const output = isEnded && state === 'completed' ? this.googleOutput(batch) : null
    const metadata = {
      '@type': 'type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch',
      ...{ model: `models/${model}`, name, displayName: objectOf(asked['batch'])['displayName'] ?? id },
      ...{ state: `BATCH_STATE_${GOOGLE_STATES[state]}`, createTime: new Date(atMs).toISOString() },
      updateTime: new Date(isEnded ? endsMs : atMs).toISOString(),
      ...(isEnded && { endTime: new Date(endsMs).toISOString() }),
      ...(inputFileId !== null && { inputConfig: { fileName: inputFileId } }),
      batchStats: {
        ...{ requestCount: String(results.length), successfulRequestCount: String(ok) },
        ...{ failedRequestCount: String(failed), pendingRequestCount: String(results.length - ok - failed) },
      },
      ...(output !== null && { output }),
    }
    if (!isEnded) return { name, metadata }
    if (output !== null) return { name, metadata, done: true, response: output }
    const error =
      state === 'cancelled'
        ? { code: 1, message: 'The batch was cancelled.' }
        : { code: 4, message: 'The batch did not run in time.' }
    return { name, metadata, done: true, error }
  }

  private googleOutput(batch: EmulatedBatch): JsonObject {
    const isFile = batch.inputFileId !== null
    if (isFile && batch.outputs !== null) return { responsesFile: `files/${batch.outputs.output ?? ''}` }
    const lines = resultsOf(batch).flatMap(({ line, result }): JsonObject[] => {
      if (result.kind === 'lost') return []
      const about = isFile ? { key: line.key } : line.metadata === null ? {} : { metadata: line.metadata }
      if (result.kind === 'reply' && result.status < 400) return [{ ...about, response: result.body }]
      const message =
        result.kind === 'reply'
          ? stringOf(objectOf(result.body['error'])['message'])
          : `The request ${result.kind}.`
      return [{ ...about, error: { code: result.kind === 'reply' ? 3 : 4, message: message ?? '' } }]
    })
    if (!isFile) return { inlinedResponses: { inlinedResponses: lines } }
    batch.outputs = { output: this.keepResults(batch, 'output', lines), error: null }
    return { responsesFile: `files/${batch.outputs.output ?? ''}` }
  }
}

const MISTRAL_STATES: Readonly<Record<State, string>> = {
  validating: 'QUEUED',
  in_progress: 'RUNNING',
  completed: 'SUCCESS',
  expired: 'TIMEOUT_EXCEEDED',
  cancelled: 'CANCELLED',
}

const GOOGLE_STATES: Readonly<Record<State, string>> = {
  validating: 'PENDING',
  in_progress: 'RUNNING',
  completed: 'SUCCEEDED',
  expired: 'EXPIRED',
  cancelled: 'CANCELLED',
}

function hasEnded(state: State): boolean {
  return state !== 'validating' && state !== 'in_progress'
}

function isOk(result: LineResult): boolean {
  return result.kind === 'reply' && result.status < 400
}

/** The results with their lines, in the order in which the vendor sends them. */
function resultsOf({ lines, results, isReordered }: EmulatedBatch): { line: Line; result: LineResult }[] {
  const all = lines.flatMap((line, at) => {
    const result = results[at]
    return result === undefined ? [] : [{ line, result }]
  })
  return isReordered ? all.toReversed() : all
}

/** The request of a batch without its lines. */
function askedOf({ endpoint, completion_window, metadata, batch }: JsonObject): JsonObject {
  const { displayName } = objectOf(batch)
  return {
    ...(endpoint !== undefined && { endpoint }),
    ...(completion_window !== undefined && { completion_window }),
    ...(metadata !== undefined && { metadata }),
    ...(displayName !== undefined && { batch: { displayName } }),
  }
}

function lineOf(idName: string, line: JsonObject, { path }: { readonly path: string }): Line {
  const { metadata, params, request, body, url } = line
  const key = stringOf(line[idName]) ?? stringOf(objectOf(metadata)['key']) ?? ''
  return {
    key,
    path: path === '' ? (stringOf(url) ?? '').replace(/^\/v1/, '') : path,
    body: objectOf(params ?? request ?? body),
    metadata: isObject(metadata) ? metadata : null,
  }
}

function jsonLines(bytes: Buffer): JsonObject[] {
  return bytes
    .toString()
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => objectOf(JSON.parse(line)))
}

function anthropicBatch(
  { id, results, atMs, endsMs, cancelledMs }: EmulatedBatch,
  { state, origin }: { readonly state: State; readonly origin: string },
): JsonObject {
  const isEnded = hasEnded(state)
  const count = (is: (result: LineResult) => boolean): number => (isEnded ? results.filter(is).length : 0)
  const time = (ms: number): string => new Date(ms).toISOString()
  return {
    ...{ id, type: 'message_batch', archived_at: null },
    processing_status: isEnded ? 'ended' : cancelledMs === null ? 'in_progress' : 'canceling',
    request_counts: {
      processing: isEnded ? 0 : results.length,
      succeeded: count(isOk),
      errored: count((result) => result.kind === 'reply' && !isOk(result)),
      canceled: count(({ kind }) => kind === 'cancelled'),
      expired: count(({ kind }) => kind === 'expired'),
    },
    ...{ created_at: time(atMs), expires_at: time(atMs + DAY_MS), ended_at: isEnded ? time(endsMs) : null },
    cancel_initiated_at: cancelledMs === null ? null : time(cancelledMs),
    results_url: isEnded ? `${origin}/anthropic/v1/messages/batches/${id}/results` : null,
  }
}
