/** Batches of the Gemini API (SDK `@google/genai` 3.3.0: batches and files). */
import { Readable } from 'node:stream'
import { arrayOf, isObject, numberOf, objectOf, stringOf, type JsonObject } from '../../../base/json.js'
import { stringifyExact } from '../../../formats/wire/json/exact-numbers.js'
import { codeNumbered } from '../google-codes.js'
import type { VendorBatch, VendorBatches, VendorResult, VendorState } from './vendor-batches.js'
import { VendorError, type VendorClient } from './vendor-client.js'

/**
 * Larger batches are sent as a file. The API takes 20 MB, but its reply has all results in one object: those
 * of 100 lines with the longest replies have about 26 MB, a file of them is read line by line.
 */
const MAX_INLINE_BYTES = 2 * 1024 * 1024
const MAX_INLINE_LINES = 100

const STATES: Readonly<Partial<Record<string, VendorState['state']>>> = {
  SUCCEEDED: 'ended',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
  EXPIRED: 'expired',
}

/** The batches of an upstream with the Gemini API. */
export function geminiBatches(client: VendorClient): VendorBatches {
  return {
    async submit(batch) {
      const { id, model, bytes, total } = batch
      const path = `/models/${encodeURIComponent(model)}:batchGenerateContent`
      if (bytes <= MAX_INLINE_BYTES && total <= MAX_INLINE_LINES) {
        const stream = Readable.from(inlineBody(batch))
        return nameOf(await client.object({ method: 'POST', path, stream }))
      }
      const fileName = await uploaded(client, batch)
      const body = JSON.stringify({ batch: { displayName: id, inputConfig: { fileName } } })
      return nameOf(await client.object({ method: 'POST', path, body }))
    },
    isGuessed: false,
    async find({ id }) {
      for (let next = ''; ;) {
        const page = await client.object({ path: `/batches?pageSize=100${next}` })
        const found = arrayOf(page['operations'])
          .map(objectOf)
          .find(({ metadata, displayName }) => (objectOf(metadata)['displayName'] ?? displayName) === id)
        if (found !== undefined) return stringOf(found['name']) ?? null
        const token = stringOf(page['nextPageToken']) ?? ''
        if (token === '') return null
        next = `&pageToken=${encodeURIComponent(token)}`
      }
    },
    async read(vendorId) {
      return stateOf(await client.object({ path: `/${vendorId}` }))
    },
    results: ({ object }) => resultsOf(client, object),
    async cancel(vendorId) {
      await client.object({ method: 'POST', path: `/${vendorId}:cancel`, body: '{}' })
    },
  }
}

function nameOf({ name }: JsonObject): string {
  const text = stringOf(name) ?? ''
  if (!/^batches\/[\w-]+$/.test(text)) throw new VendorError(502, 'the upstream named no batch')
  return text
}

async function* inlineBody({ id, lines }: VendorBatch): AsyncIterable<Buffer> {
  yield Buffer.from(`{"batch":{"displayName":${JSON.stringify(id)},"inputConfig":{"requests":{"requests":[`)
  let separator = ''
  for await (const { key, request } of lines()) {
    yield Buffer.from(`${separator}{"request":${request},"metadata":{"key":${JSON.stringify(key)}}}`)
    separator = ','
  }
  yield Buffer.from(']}}}}')
}

async function* fileBody({ lines }: VendorBatch): AsyncIterable<Buffer> {
  for await (const { key, request } of lines()) {
    yield Buffer.from(`{"key":${JSON.stringify(key)},"request":${request}}\n`)
  }
}

/** Uploads the lines; the name of the file. */
async function uploaded(client: VendorClient, batch: VendorBatch): Promise<string> {
  const { headers } = await client.send({
    ...{ method: 'POST', above: '/upload', path: '/files' },
    headers: {
      'x-goog-upload-protocol': 'resumable',
      'x-goog-upload-command': 'start',
      'x-goog-upload-header-content-type': 'application/jsonl',
    },
    body: JSON.stringify({ file: { displayName: batch.id } }),
  })
  const address = stringOf(headers['x-goog-upload-url']) ?? ''
  if (!URL.canParse(address)) throw new VendorError(502, 'the upstream named no address for the file')
  // The credential goes to the upstream's own address only.
  const { search, pathname } = new URL(address)
  const { basePath } = client.target.upstream.address
  const at = pathname.indexOf(`${basePath}/`)
  const file = await client.object({
    ...{ method: 'POST', above: pathname.slice(0, at), path: pathname.slice(at + basePath.length) + search },
    headers: { 'x-goog-upload-command': 'upload, finalize', 'x-goog-upload-offset': '0' },
    stream: Readable.from(fileBody(batch)),
  })
  return stringOf(objectOf(file['file'])['name']) ?? ''
}

function stateOf(object: JsonObject): VendorState {
  const { metadata, error, done } = object
  const { state, batchStats } = objectOf(metadata)
  const { successfulRequestCount, failedRequestCount } = objectOf(batchStats)
  const name = (stringOf(state) ?? '').replace(/^(?:BATCH|JOB)_STATE_/, '')
  const message = stringOf(objectOf(error)['message']) ?? ''
  const isFailed = done === true && isObject(error) && STATES[name] === undefined
  return {
    state: isFailed ? 'failed' : (STATES[name] ?? 'running'),
    completed: countOf(successfulRequestCount),
    failed: countOf(failedRequestCount),
    message,
    object,
  }
}

/** Counts of 64 bits are texts in JSON. */
function countOf(value: unknown): number {
  const count = Number(value ?? 0)
  return Number.isInteger(count) ? count : 0
}

async function* resultsOf(
  client: VendorClient,
  { response, metadata }: JsonObject,
): AsyncIterable<VendorResult> {
  const output = objectOf(metadata)['output']
  const { inlinedResponses, responsesFile } = objectOf(isObject(response) ? response : output)
  const list = isObject(inlinedResponses) ? inlinedResponses['inlinedResponses'] : inlinedResponses
  for (const each of arrayOf(list)) yield resultOf(objectOf(each))
  const file = stringOf(responsesFile)
  if (file === undefined) return
  const path = `/files/${encodeURIComponent(file.replace(/^files\//, ''))}:download?alt=media`
  for await (const line of client.lines({ above: '/download', path })) yield resultOf(line)
}

function resultOf(line: JsonObject): VendorResult {
  const { response, error, metadata } = line
  const key = stringOf(line['key']) ?? stringOf(objectOf(metadata)['key']) ?? null
  if (isObject(response)) return { key, reply: { status: 200, body: stringifyExact(response) } }
  const { code, message, status } = objectOf(error)
  const { status: http, name } = codeNumbered(numberOf(code) ?? 13)
  const own = {
    error: { code: http, message: stringOf(message) ?? '', status: stringOf(status) ?? name },
  }
  return { key, reply: { status: http, body: JSON.stringify(own) } }
}
