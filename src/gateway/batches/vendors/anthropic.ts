/** Message Batches of Anthropic (SDK `@anthropic-ai/sdk` 1.14.0, resources of message batches). */
import { Readable } from 'node:stream'
import { arrayOf, numberOf, objectOf, stringOf, type JsonObject } from '../../../base/json.js'
import { stringifyExact } from '../../../formats/wire/json/exact-numbers.js'
import type { VendorBatch, VendorBatches, VendorResult, VendorState } from './vendor-batches.js'
import type { VendorClient } from './vendor-client.js'

const PATH = '/messages/batches'
/** Clocks may differ. */
const EARLIER_MS = 60_000

/** The status of a direct reply with an error of each type. */
const STATUSES: Readonly<Partial<Record<string, number>>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
}

/** The batches of an upstream with Anthropic's API. */
export function anthropicBatches(client: VendorClient): VendorBatches {
  return {
    async submit(batch) {
      const created = await client.object({
        method: 'POST',
        path: PATH,
        stream: Readable.from(bodyOf(batch)),
      })
      return stringOf(created['id']) ?? ''
    },
    // Batches have no metadata: one that was made since then, with as many requests.
    async find({ createdAtMs, total }) {
      const { data } = await client.object({ path: `${PATH}?limit=100` })
      const found = arrayOf(data).find((each) => {
        const { created_at: at, request_counts: counts } = objectOf(each)
        const sum = Object.values(objectOf(counts)).reduce<number>(
          (all, count) => all + (numberOf(count) ?? 0),
          0,
        )
        return sum === total && Date.parse(stringOf(at) ?? '') >= createdAtMs - EARLIER_MS
      })
      return stringOf(objectOf(found)['id']) ?? null
    },
    async read(vendorId) {
      return stateOf(await client.object({ path: `${PATH}/${encodeURIComponent(vendorId)}` }))
    },
    async *results({ object }) {
      const id = stringOf(object['id']) ?? ''
      const lines = client.lines({ path: `${PATH}/${encodeURIComponent(id)}/results` })
      for await (const line of lines) yield resultOf(line)
    },
    async cancel(vendorId) {
      await client.object({
        method: 'POST',
        path: `${PATH}/${encodeURIComponent(vendorId)}/cancel`,
        body: '{}',
      })
    },
  }
}

async function* bodyOf({ lines }: VendorBatch): AsyncIterable<Buffer> {
  let separator = '{"requests":['
  for await (const { key, request } of lines()) {
    yield Buffer.from(`${separator}{"custom_id":${JSON.stringify(key)},"params":${request}}`)
    separator = ','
  }
  yield Buffer.from(']}')
}

function stateOf(object: JsonObject): VendorState {
  const { processing_status: status, request_counts: counts } = object
  const count = (name: string): number => numberOf(objectOf(counts)[name]) ?? 0
  const [completed, errored, expired] = [count('succeeded'), count('errored'), count('expired')]
  const hasExpired = expired > 0 && completed + errored === 0
  const ended = hasExpired ? 'expired' : 'ended'
  return { state: status === 'ended' ? ended : 'running', completed, failed: errored, message: '', object }
}

function resultOf({ custom_id: id, result }: JsonObject): VendorResult {
  const key = stringOf(id) ?? ''
  const { type, message, error } = objectOf(result)
  if (type === 'succeeded') return { key, reply: { status: 200, body: stringifyExact(message ?? {}) } }
  if (type === 'expired') return { key, reply: null, code: 'batch_expired' }
  if (type === 'canceled') return { key, reply: null, code: 'batch_cancelled' }
  const whole = objectOf(error)
  const inner = whole['type'] === 'error' ? objectOf(whole['error']) : whole
  const status = STATUSES[stringOf(inner['type']) ?? ''] ?? 500
  return { key, reply: { status, body: JSON.stringify({ type: 'error', error: inner }) } }
}
