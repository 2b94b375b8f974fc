/** Serves `/v1/batches`: answers from the gateway's records, without a request to an upstream. */
import type { JsonObject } from '../../base/json.js'
import { malformed } from '../../errors.js'
import type { Exchange } from '../client-exchange.js'
import { sendObject, type Delivery } from '../phases/relay.js'
import {
  cancellation,
  hasEnded,
  shownState,
  type Batch,
  type BatchRecords,
} from '../../policy/batch-records.js'
import { createBatch, type CreateServices, type Creator } from './create-batch.js'
import { pageOf, queryOf } from './object-page.js'
import { unknownId } from './serve-files.js'

/** What serving batches uses. */
interface BatchServices extends CreateServices {
  /** Called when there is something to do for a batch. */
  readonly wake: () => void
}

/** Replies of batches that run as requests of their own say so. */
const EMULATED = ['x-sluice-emulated', 'queue']

/** Answers a request to `/v1/batches`. Rejects with `GatewayError`. */
export async function serveBatches(
  x: Exchange,
  id: string | null,
  creator: Creator,
  services: BatchServices,
): Promise<Delivery> {
  const { records, wake } = services
  const { accountId } = creator.identity
  if (id === null && x.req.method === 'POST') {
    const batch = await createBatch(x, creator, services)
    wake()
    return send(x, batch)
  }
  if (id === null) return sendObject(x, JSON.stringify(await listed(x, accountId, records)))
  const found = await records.find(accountId, id)
  if (found === null || found.info.state === 'creating') throw unknownId('batch', id, 'batch_id')
  if (!x.path.endsWith('/cancel')) return send(x, found)
  if (hasEnded(found)) {
    throw malformed(`The batch is ${found.info.state}: only one that runs can be cancelled.`, 'batch_id')
  }
  const cancelled = await records.change(id, cancellation)
  await records.stir(id)
  wake()
  return send(x, cancelled ?? found)
}

function send(x: Exchange, batch: Batch): Delivery {
  const headers = batch.info.form === 'queue' ? EMULATED : []
  return sendObject(x, JSON.stringify(shownBatch(batch)), headers)
}

async function listed(x: Exchange, accountId: string, records: BatchRecords): Promise<JsonObject> {
  const page = pageOf(await records.list(accountId), queryOf(x), {
    ...{ maxLimit: 100, usualLimit: 20 },
    shown: ({ id }) => ({ id }),
  })
  const { data } = page
  const ids = Array.isArray(data) ? data.flatMap((item) => idIn(item)) : []
  const batches = await Promise.all(ids.map((id) => records.find(accountId, id)))
  return { ...page, data: batches.flatMap((batch) => (batch === null ? [] : [shownBatch(batch)])) }
}

function idIn(item: unknown): string[] {
  return typeof item === 'object' && item !== null && 'id' in item && typeof item.id === 'string'
    ? [item.id]
    : []
}

/** The batch as OpenAI's API shows it. */
function shownBatch({ id, createdAtMs, info, secrets }: Batch): JsonObject {
  const { endpoint, model, inputFileId, window, outputFileId, errorFileId, counts, at, dueAtMs } = info
  const { failure, form } = info
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
    request_counts: { ...counts },
    metadata: secrets.metadata,
    ...(form === 'queue' && { emulated: 'queue' }),
  }
}

function secondsOf(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.floor(ms / 1000)
}
