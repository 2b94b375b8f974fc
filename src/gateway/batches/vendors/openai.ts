/** Batches of OpenAI, Azure and others with the same API (SDK `openai` 7.59.0, resources of batches). */
import { Readable } from 'node:stream'
import { arrayOf, numberOf, objectOf, stringOf, type JsonObject } from '../../../base/json.js'
import { stringifyExact } from '../../../formats/wire/json/exact-numbers.js'
import { formChunks, formType } from '../../../formats/wire/media/form-data.js'
import {
  mayBe,
  type VendorBatch,
  type VendorBatches,
  type VendorResult,
  type VendorState,
} from './vendor-batches.js'
import type { VendorClient } from './vendor-client.js'

/** The member of the metadata with the gateway's id. */
export const MARK = 'sluice_batch'
const BOUNDARY = 'sluice-batch-0f7d1c64b5c94b2f'
const STATES: Readonly<Partial<Record<string, VendorState['state']>>> = {
  completed: 'ended',
  failed: 'failed',
  cancelled: 'cancelled',
  expired: 'expired',
}

/** The batches of an upstream with OpenAI's API. */
export function openaiBatches(client: VendorClient): VendorBatches {
  return {
    async submit(batch) {
      const url = JSON.stringify(batch.endpoint)
      const fileId = await uploaded(client, batch, `"method":"POST","url":${url},`)
      const created = await client.object({
        ...{ method: 'POST', path: '/batches' },
        body: JSON.stringify({
          input_file_id: fileId,
          endpoint: batch.endpoint,
          completion_window: batch.window,
          metadata: { [MARK]: batch.id },
        }),
      })
      return stringOf(created['id']) ?? ''
    },
    isGuessed: false,
    async find(batch) {
      for (let after = ''; ;) {
        const page = await client.object({ path: `/batches?limit=100${after}` })
        const batches = arrayOf(page['data']).map(objectOf)
        const found = batches.find(({ metadata }) => objectOf(metadata)[MARK] === batch.id)
        if (found !== undefined) return stringOf(found['id']) ?? null
        // Newest first.
        const last = batches.at(-1)
        const isOlder = !mayBe(batch, 1000 * (numberOf(last?.['created_at']) ?? Number.NaN))
        if (page['has_more'] !== true || last === undefined || isOlder) return null
        after = `&after=${encodeURIComponent(stringOf(last['id']) ?? '')}`
      }
    },
    async read(vendorId) {
      return stateOf(await client.object({ path: `/batches/${encodeURIComponent(vendorId)}` }))
    },
    results: ({ object }) => resultsOf(client, [object['output_file_id'], object['error_file_id']]),
    async cancel(vendorId) {
      await client.object({
        method: 'POST',
        path: `/batches/${encodeURIComponent(vendorId)}/cancel`,
        body: '{}',
      })
    },
  }
}

/** Uploads the lines; the id of the file. `members` of each line come before its body. */
export async function uploaded(client: VendorClient, batch: VendorBatch, members: string): Promise<string> {
  const sent = { name: `${batch.id}.jsonl`, type: 'application/jsonl', chunks: linesOf(batch, members) }
  const form = formChunks(BOUNDARY, [{ name: 'purpose', value: 'batch' }], sent)
  const file = await client.object({
    ...{ method: 'POST', path: '/files', stream: Readable.from(form) },
    headers: { 'content-type': formType(BOUNDARY) },
  })
  return stringOf(file['id']) ?? ''
}

async function* linesOf({ lines }: VendorBatch, members: string): AsyncGenerator<Buffer> {
  for await (const { key, request } of lines()) {
    yield Buffer.from(`{"custom_id":${JSON.stringify(key)},${members}"body":${request}}\n`)
  }
}

function stateOf(object: JsonObject): VendorState {
  const { status, request_counts: counts, errors } = object
  const { completed, failed } = objectOf(counts)
  const [first] = arrayOf(objectOf(errors)['data'])
  return {
    state: STATES[stringOf(status) ?? ''] ?? 'running',
    completed: numberOf(completed) ?? 0,
    failed: numberOf(failed) ?? 0,
    message: stringOf(objectOf(first)['message']) ?? '',
    object,
  }
}

/** The results in files, in the form of OpenAI's. */
export async function* resultsOf(
  client: VendorClient,
  files: readonly unknown[],
): AsyncIterable<VendorResult> {
  for (const file of files) {
    const id = stringOf(file)
    if (id === undefined) continue
    const lines = client.lines({ path: `/files/${encodeURIComponent(id)}/content` })
    for await (const line of lines) yield resultOf(line)
  }
}

function resultOf({ custom_id: id, response, error }: JsonObject): VendorResult {
  const key = stringOf(id) ?? ''
  const { status_code: status, body } = objectOf(response)
  if (numberOf(status) !== undefined) {
    return { key, reply: { status: numberOf(status) ?? 500, body: stringifyExact(body ?? {}) } }
  }
  const { code, message } = objectOf(error)
  if (code === 'batch_expired' || code === 'batch_cancelled') return { key, reply: null, code }
  const own = {
    error: { message: stringOf(message) ?? 'The upstream failed.', type: 'server_error', code: code ?? null },
  }
  return { key, reply: { status: 500, body: JSON.stringify(own) } }
}
