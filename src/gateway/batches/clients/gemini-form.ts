/** Batches as the Gemini API has them (SDK `@google/genai` 3.3.0: batches). */
import { DAY_MS, timeText } from '../../../base/time-units.js'
import { isObject, numberOf, objectOf, stringOf, type JsonObject } from '../../../base/json.js'
import { malformed } from '../../../errors.js'
import { resolveEndpoint } from '../../../formats/index.js'
import { parseObject } from '../../../formats/wire/json/parse-body.js'
import { splice } from '../../../formats/wire/json/splice.js'
import { hasEnded, type Batch, type BatchInfo } from '../../../policy/batch-records.js'
import type { StoredFile } from '../../../policy/file-store.js'
import { codeNamed } from '../google-codes.js'
import { storeRequests } from '../inline-requests.js'
import { googlePageOf } from '../object-page.js'
import { unknownId } from '../serve-files.js'
import type { Asking, ClientForm, LineForm, LineOutcome } from './client-form.js'
import { requestMember, textId } from './read-line.js'

const CONFIGS = ['inputConfig', 'input_config']
const PATHS = CONFIGS.map((config) => ['batch', config, 'requests', 'requests'])
const MAX_LINES = 100_000
const MAX_NAME_CHARS = 512
const TYPE = 'type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch'

/** Batches of Google's clients. */
export const geminiForm: ClientForm = {
  idPrefix: 'batch_',
  ingress: 'gemini',
  param: 'name',
  async ask(x, asking) {
    const { model } = asking
    const endpoint = `/v1beta/models/${encodeURIComponent(model ?? '')}:generateContent`
    const resolved = resolveEndpoint('POST', endpoint)
    if (resolved === null || model === null) throw new Error('requests of the model are not served')
    const inline = inlineLines(model)
    const { file, rest } = await storeRequests(x, asking, { paths: PATHS, lines: inline })
    try {
      const config = configIn(rest)
      const fileName = stringOf(config['fileName'] ?? config['file_name'])
      if (fileName !== undefined && file.bytes > 0) {
        throw malformed('requests and fileName must not both be given', 'batch.inputConfig')
      }
      const metadata = metadataOf(objectOf(rest['batch']))
      const batch = { endpoint, resolved, window: '24h', windowMs: DAY_MS, metadata, body: rest }
      if (fileName === undefined) return { ...batch, input: file, inputFileId: '', lines: inline }
      await asking.files.remove(file)
      const input = await fileNamed(fileName, asking)
      return { ...batch, input, inputFileId: input.id, lines: fileLines(model) }
    } catch (error) {
      await asking.files.remove(file)
      throw error
    }
  },
  hasErrorFile: false,
  result: resultText,
  shown: (batch) => shownBatch(batch, outputOf(batch)),
  whole(batch, results) {
    if (batch.info.inputFileId !== '' || batch.info.outputFileId === null) return null
    return withResults(batch, results)
  },
  page(batches, query) {
    const { items, next } = googlePageOf(batches, query, { maxLimit: 1000, usualLimit: 50 })
    return {
      ids: items.map(({ id }) => id),
      around: (operations) => ({ operations: [...operations], ...next }),
    }
  },
  cancelled: {},
  deleted: () => ({}),
}

function configIn(body: JsonObject): JsonObject {
  const batch = objectOf(body['batch'])
  return objectOf(CONFIGS.map((name) => batch[name]).find((config) => config !== undefined))
}

function metadataOf(batch: JsonObject): JsonObject | null {
  const name = batch['displayName'] ?? batch['display_name']
  if (name === undefined) return null
  if (typeof name === 'string' && name.length <= MAX_NAME_CHARS) return { displayName: name }
  throw malformed(`displayName must be a text of up to ${MAX_NAME_CHARS} characters`, 'batch.displayName')
}

async function fileNamed(name: string, { identity, files }: Asking): Promise<StoredFile> {
  const id = name.replace(/^files\//, '')
  // An id of Google's: what was uploaded there cannot be read back.
  if (!id.startsWith('file-')) {
    const message =
      'batch.inputConfig.fileName must be a file of JSON lines that the gateway keeps: upload it to /upload/v1beta/files with the media type application/jsonl, or to /v1/files with the purpose "batch". Files of other types are at Google, and the gateway cannot read them.'
    throw malformed(message, 'batch.inputConfig.fileName')
  }
  const file = await files.find(identity.accountId, id)
  if (file === null || file.isPartial || file.purpose !== 'batch') {
    throw unknownId('file', id, 'batch.inputConfig.fileName')
  }
  return file
}

function inlineLines(model: string): LineForm {
  const param = 'batch.inputConfig.requests.requests'
  return {
    ...{ maxLines: MAX_LINES, param, idName: 'metadata.key', modelName: 'request.model' },
    place: (number) => `requests[${number - 1}]`,
    read(bytes) {
      const { value, request, bytes: body } = requestMember(bytes, 'request')
      const { metadata } = value
      if (metadata !== undefined && !isObject(metadata)) throw malformed('metadata must be an object')
      const key = objectOf(metadata)['key']
      const id = key === undefined ? null : textId(key, 'metadata.key')
      const own = metadata === undefined ? {} : { metadata: JSON.stringify(metadata) }
      return { id, body: ofModel(body, request, model), model, ...own }
    },
  }
}

function fileLines(model: string): LineForm {
  const param = 'batch.inputConfig.fileName'
  return {
    ...{ maxLines: MAX_LINES, param, idName: 'key', modelName: 'request.model' },
    place: (number) => `Line ${number}`,
    read(bytes) {
      const { value, request, bytes: body } = requestMember(bytes, 'request')
      return { id: textId(value['key'], 'key'), body: ofModel(body, request, model), model }
    },
  }
}

/** The request without its model, which is that of the batch. */
function ofModel(body: Buffer, request: JsonObject, model: string): Buffer {
  const named = request['model']
  if (named === undefined) return body
  if (typeof named !== 'string' || named.replace(/^models\//, '') !== model) {
    throw malformed(`request.model must be "models/${model.slice(0, 100)}": a batch has one model`)
  }
  return splice(body, parseObject(body).members, [{ key: 'model', json: null }])
}

/** A line of the results: with `key` in a file, else with `metadata`. */
function resultText({ id, metadata, reply, missing, end }: LineOutcome, { info }: Batch): string {
  const name =
    info.inputFileId !== ''
      ? `"key":${JSON.stringify(id)},`
      : metadata === undefined
        ? ''
        : `"metadata":${metadata},`
  if (end === 'ok' && reply !== null) return `{${name}"response":${reply.body}}`
  return `{${name}"error":${JSON.stringify(errorOf({ reply, missing, end }))}}`
}

function errorOf({ reply, missing, end }: Pick<LineOutcome, 'reply' | 'missing' | 'end'>): JsonObject {
  if (reply === null || missing !== null) {
    const { code } = codeNamed(
      end === 'expired' ? 'DEADLINE_EXCEEDED' : end === 'cancelled' ? 'CANCELLED' : 'INTERNAL',
    )
    return { code, message: missing?.message ?? 'This request has no result.' }
  }
  const { message, status, details } = objectOf(parseObject(Buffer.from(reply.body)).value['error'])
  const { code } = codeNamed(stringOf(status) ?? '')
  return { code, message: stringOf(message) ?? '', ...(details !== undefined && { details }) }
}

const STATES: Readonly<Record<BatchInfo['state'], string>> = {
  creating: 'PENDING',
  validating: 'PENDING',
  submitting: 'PENDING',
  in_progress: 'RUNNING',
  finalizing: 'RUNNING',
  cancelling: 'RUNNING',
  completed: 'SUCCEEDED',
  failed: 'FAILED',
  cancelled: 'CANCELLED',
  expired: 'EXPIRED',
}

/** The file with the results; null if the batch has none, or has its requests and results in its body. */
function outputOf({ info }: Batch): JsonObject | null {
  const { inputFileId, outputFileId } = info
  return inputFileId === '' || outputFileId === null ? null : { responsesFile: `files/${outputFileId}` }
}

/** The batch as an operation of Google's API. Clients read `output` in either place. */
function shownBatch(batch: Batch, output: JsonObject | null): JsonObject {
  const { id, createdAtMs, info, secrets } = batch
  const { counts, at, state, model } = info
  const { total, completed, failed } = counts
  const name = `batches/${id}`
  const endMs = at.completed ?? at.failed ?? at.cancelled ?? at.expired
  const latestMs = Math.max(createdAtMs, ...Object.values(at).map((ms) => numberOf(ms) ?? 0))
  const results = output === null ? {} : { output }
  const metadata = {
    ...{ '@type': TYPE, model: `models/${model}`, displayName: secrets.metadata?.['displayName'] ?? id },
    ...{ name, state: `BATCH_STATE_${STATES[state]}`, createTime: timeText(createdAtMs) },
    updateTime: timeText(latestMs),
    ...(endMs !== undefined && { endTime: timeText(endMs) }),
    batchStats: {
      requestCount: String(total),
      successfulRequestCount: String(completed),
      failedRequestCount: String(failed),
      pendingRequestCount: String(Math.max(0, total - completed - failed)),
    },
    ...results,
  }
  const own = { name, metadata, ...(info.form === 'queue' && { emulated: 'queue' }) }
  if (!hasEnded(batch)) return own
  if (state === 'completed') return { ...own, done: true, ...(output !== null && { response: output }) }
  return { ...own, done: true, error: failureOf(info) }
}

function failureOf({ state, failure }: BatchInfo): JsonObject {
  if (state === 'cancelled') return { code: codeNamed('CANCELLED').code, message: 'The batch was cancelled.' }
  if (state === 'expired')
    return { code: codeNamed('DEADLINE_EXCEEDED').code, message: 'The batch did not run in time.' }
  return { code: codeNamed('INTERNAL').code, message: failure ?? '' }
}

/** In the place of the results in the text of a batch. */
const RESULTS = '\u0000results'

/** The batch with the lines of the file with its results wherever they belong. */
async function* withResults(batch: Batch, results: () => AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const text = JSON.stringify(shownBatch(batch, { inlinedResponses: { inlinedResponses: RESULTS } }))
  const [first = '', ...others] = text.split(JSON.stringify(RESULTS))
  yield Buffer.from(first)
  for (const part of others) {
    yield Buffer.from('[')
    yield* commaSeparated(results())
    yield Buffer.from(`]${part}`)
  }
}

/** Lines as the items of a list. */
async function* commaSeparated(lines: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  let isOpen = false
  for await (const chunk of lines) {
    if (isOpen) yield Buffer.from(',')
    isOpen = chunk.at(-1) === 0x0a
    const items = Buffer.from(isOpen ? chunk.subarray(0, -1) : chunk)
    for (let at = items.indexOf(0x0a); at !== -1; at = items.indexOf(0x0a, at)) items[at] = 0x2c
    yield items
  }
}
