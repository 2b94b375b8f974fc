/** Batches as OpenAI's API has them (SDK `openai` 7.59.0, resources of batches). */
import { DAY_MS } from '../../../base/time-units.js'
import { isObject, objectOf, stringOf, type JsonObject } from '../../../base/json.js'
import { malformed } from '../../../errors.js'
import { resolveEndpoint } from '../../../formats/index.js'
import { parseObject } from '../../../formats/wire/json/parse-body.js'
import { readBody } from '../../../http/read-body.js'
import { shownState, type Batch } from '../../../policy/batch-records.js'
import { assertJson } from '../inline-requests.js'
import { pageOf } from '../object-page.js'
import { unknownId } from '../serve-files.js'
import { requestMember, textId, type ReadMember } from './read-line.js'
import type { ClientForm, LineForm, LineOutcome } from './client-form.js'

/** Operations whose requests a batch may have. */
const OPERATIONS: ReadonlySet<string> = new Set([
  'chat',
  'completions',
  'embeddings',
  'moderations',
  'images',
  'rerank',
])
const ENDPOINTS = `/v1/chat/completions, /v1/responses, /v1/completions, /v1/embeddings, /v1/moderations, /v1/images/generations or /v1/rerank`
const MAX_BODY_BYTES = 65_536
const MAX_METADATA = 16
/** OpenAI's own maximum. */
export const MAX_OPENAI_LINES = 50_000
const PARAM = 'input_file_id'

/** Batches of OpenAI's clients. */
export const openaiForm: ClientForm = {
  idPrefix: 'batch_',
  ingress: 'batches',
  param: 'batch_id',
  async ask(x, { identity, files }) {
    assertJson(x)
    const { value } = parseObject(await readBody(x.req, x.res, MAX_BODY_BYTES))
    const inputFileId = stringOf(value['input_file_id'])
    if (inputFileId === undefined) throw malformed('input_file_id is required', PARAM)
    const endpoint = withVersion(stringOf(value['endpoint']) ?? '')
    const resolved = resolveEndpoint('POST', endpoint)
    const isOpenai = resolved?.dialect === 'openai-chat' || resolved?.dialect === 'openai-responses'
    if (resolved === null || !isOpenai || !OPERATIONS.has(resolved.endpoint.operation)) {
      throw malformed(`endpoint must be ${ENDPOINTS}`, 'endpoint')
    }
    const window = stringOf(value['completion_window']) ?? ''
    const windowMs = windowOf(window)
    if (windowMs === null) {
      throw malformed('completion_window must be "24h", or up to "7d"', 'completion_window')
    }
    const metadata = metadataOf(value['metadata'])
    const input = await files.find(identity.accountId, inputFileId)
    if (input === null || input.isPartial || input.purpose !== 'batch') {
      throw unknownId('file', inputFileId, PARAM)
    }
    const asked = { endpoint, resolved, window, windowMs, metadata, body: value }
    return { ...asked, input, inputFileId, lines: linesFor(endpoint) }
  },
  hasErrorFile: true,
  result: resultText,
  shown: shownBatch,
  page(batches, query) {
    const { items, around } = pageOf(batches, query, { maxLimit: 100, usualLimit: 20 })
    return { ids: items.map(({ id }) => id), around }
  },
  deleted: (id) => ({ id, object: 'batch', deleted: true }),
}

/** The path with the version, which Azure's clients leave out. */
function withVersion(path: string): string {
  return path.startsWith('/v1/') ? path : `/v1${path}`
}

function linesFor(endpoint: string): LineForm {
  return {
    maxLines: MAX_OPENAI_LINES,
    param: PARAM,
    idName: 'custom_id',
    modelName: 'body.model',
    place: (number) => `Line ${number}`,
    read(bytes) {
      const { value, bytes: body, request } = lineIn(bytes, endpoint)
      return { id: textId(value['custom_id'], 'custom_id'), body, model: modelOf(request) }
    },
  }
}

function lineIn(bytes: Buffer, endpoint: string): ReadMember {
  const line = requestMember(bytes, 'body')
  const { method, url } = line.value
  textId(line.value['custom_id'], 'custom_id')
  if (method !== 'POST') throw malformed('method must be "POST"')
  if (typeof url !== 'string' || withVersion(url) !== endpoint) {
    throw malformed(`url must be "${endpoint}", the endpoint of the batch`)
  }
  return line
}

function modelOf({ stream, model }: JsonObject): string {
  if (stream === true) throw malformed('body.stream must not be true: a batch has no streams')
  if (typeof model !== 'string' || model === '') throw malformed('body.model is required')
  return model
}

/** Null if it is not a window. */
function windowOf(window: string): number | null {
  const [, count = '', unit] = /^(\d{1,3})([hd])$/.exec(window) ?? []
  const ms = Number(count) * (unit === 'd' ? DAY_MS : DAY_MS / 24)
  return unit !== undefined && ms >= DAY_MS && ms <= 7 * DAY_MS ? ms : null
}

function metadataOf(value: unknown): JsonObject | null {
  if (value === undefined || value === null) return null
  const entries = Object.entries(objectOf(value))
  const isValid = entries.every(([name, text]) => {
    return name.length <= 64 && typeof text === 'string' && text.length <= 512
  })
  if (isObject(value) && isValid && entries.length <= MAX_METADATA) return value
  throw malformed(
    'metadata must have at most 16 texts, with names of 64 and values of 512 characters',
    'metadata',
  )
}

/** A line of a file with results. */
function resultText({ id, requestId, reply, missing }: LineOutcome): string {
  const head = `{"id":${JSON.stringify(`batch_req_${requestId}`)},"custom_id":${JSON.stringify(id)}`
  const response =
    missing !== null || reply === null
      ? 'null'
      : `{"status_code":${reply.status},"request_id":${JSON.stringify(requestId)},"body":${reply.body}}`
  const error = missing === null ? null : { code: missing.code, message: missing.message }
  return `${head},"response":${response},"error":${JSON.stringify(error)}}`
}

/** The batch as OpenAI's API shows it. */
function shownBatch({ id, createdAtMs, info, secrets }: Batch): JsonObject {
  const { endpoint, model, inputFileId, window, outputFileId, errorFileId, counts, at, dueAtMs } = info
  const { failure, form } = info
  const { total, completed, failed } = counts
  return {
    ...{ id, object: 'batch', endpoint, model },
    errors:
      failure === null
        ? null
        : { object: 'list', data: [{ code: 'batch_failed', line: null, message: failure, param: null }] },
    ...{ input_file_id: inputFileId, completion_window: window },
    status: shownState(info),
    ...{ output_file_id: outputFileId, error_file_id: errorFileId },
    created_at: Math.floor(createdAtMs / 1000),
    in_progress_at: secondsOf(at.in_progress),
    expires_at: secondsOf(dueAtMs),
    finalizing_at: secondsOf(at.finalizing),
    completed_at: secondsOf(at.completed),
    failed_at: secondsOf(at.failed),
    expired_at: secondsOf(at.expired),
    cancelling_at: secondsOf(at.cancelling),
    cancelled_at: secondsOf(at.cancelled),
    request_counts: { total, completed, failed },
    metadata: secrets.metadata,
    ...(form === 'queue' && { emulated: 'queue' }),
  }
}

function secondsOf(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.floor(ms / 1000)
}
