/** Batch jobs of Mistral (SDK `mistralai` 3.7.0, resources of batch jobs and files). */
import { arrayOf, numberOf, objectOf, stringOf, type JsonObject } from '../../../base/json.js'
import { MARK, resultsOf, uploaded } from './openai.js'
import { mayBe, type VendorBatches, type VendorState } from './vendor-batches.js'
import type { VendorClient } from './vendor-client.js'

const PATH = '/batch/jobs'
const PAGE = 100
const STATES: Readonly<Partial<Record<string, VendorState['state']>>> = {
  SUCCESS: 'ended',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
  TIMEOUT_EXCEEDED: 'expired',
}

/** The batches of an upstream with Mistral's API. */
export function mistralBatches(client: VendorClient): VendorBatches {
  return {
    async submit(batch) {
      const body = JSON.stringify({
        ...{ endpoint: batch.endpoint, input_files: [await uploaded(client, batch, '')], model: batch.model },
        ...{ metadata: { [MARK]: batch.id }, timeout_hours: hoursOf(batch.window) },
      })
      const { id } = await client.object({ method: 'POST', path: PATH, body })
      return stringOf(id) ?? ''
    },
    isGuessed: false,
    async find(batch) {
      for (let page = 0; ; page += 1) {
        const { data } = await client.object({ path: `${PATH}?page_size=${PAGE}&page=${page}` })
        const jobs = arrayOf(data).map(objectOf)
        const found = jobs.find(({ metadata }) => objectOf(metadata)[MARK] === batch.id)
        if (found !== undefined) return stringOf(found['id']) ?? null
        // Newest first.
        const isOlder = !mayBe(batch, 1000 * (numberOf(jobs.at(-1)?.['created_at']) ?? Number.NaN))
        if (jobs.length < PAGE || isOlder) return null
      }
    },
    async read(vendorId) {
      return stateOf(await client.object({ path: `${PATH}/${encodeURIComponent(vendorId)}` }))
    },
    results: ({ object }) => resultsOf(client, [object['output_file'], object['error_file']]),
    async cancel(vendorId) {
      const path = `${PATH}/${encodeURIComponent(vendorId)}/cancel`
      await client.object({ method: 'POST', path, body: '{}' })
    },
  }
}

/** `24h`, `7d` */
function hoursOf(window: string): number {
  return Number.parseInt(window, 10) * (window.endsWith('d') ? 24 : 1)
}

function stateOf(object: JsonObject): VendorState {
  const { status, succeeded_requests: completed, failed_requests: failed, errors } = object
  return {
    state: STATES[stringOf(status) ?? ''] ?? 'running',
    completed: numberOf(completed) ?? 0,
    failed: numberOf(failed) ?? 0,
    message: stringOf(objectOf(arrayOf(errors)[0])['message']) ?? '',
    object,
  }
}
