/** Message Batches of Anthropic (SDK `@anthropic-ai/sdk` 1.14.0, resources of message batches). */
import { Readable } from 'node:stream'
import { arrayOf, numberOf, objectOf, stringOf, type JsonObject } from '../../../base/json.js'
import { stringifyExact } from '../../../formats/wire/json/exact-numbers.js'
import {
  mayBe,
  type VendorBatch,
  type VendorBatches,
  type VendorResult,
  type VendorState,
} from './vendor-batches.js'
import type { VendorClient } from './vendor-client.js'

const PATH = '/messages/batches'
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
        headers: batch.headers,
        stream: Readable.from(bodyOf(batch)),
      })
      return stringOf(created['id']) ?? ''
    },
    // Batches have no metadata: one that was made since then, with as many requests. Its results tell.
    isGuessed: true,
    async find(batch, others) {
      for (let after = ''; ;) {
        const page = await client.object({ path: `${PATH}?limit=100${after}` })
        const batches = arrayOf(page['data']).map(objectOf)
        const found = batches.find(({ id, created_at: at, request_counts: counts }) => {
          const lines = sumOf(objectOf(counts))
          const isLike = (lines === 0 || lines === batch.total) && mayBe(batch, timeOf(at))
          return isLike && !others.has(stringOf(id) ?? '')
        })
        if (found !== undefined) return stringOf(found['id']) ?? null
        // Newest first.
        const last = batches.at(-1)
        const isOlder = !mayBe(batch, timeOf(last?.['created_at']))
        if (page['has_more'] !== true || last === undefined || isOlder) return null
        after = `&after_id=${encodeURIComponent(stringOf(last['id']) ?? '')}`
      }
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

function sumOf(counts: JsonObject): number {
  return Object.values(counts).reduce<number>((sum, count) => sum + (numberOf(count) ?? 0), 0)
}

function timeOf(at: unknown): number {
  return Date.parse(stringOf(at) ?? '')
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
