/** Serves batches in the forms of clients: from the gateway's records, without a request to an upstream. */
import type { DialectName } from '../../formats/dialect.js'
import { malformed } from '../../errors.js'
import type { Exchange } from '../client-exchange.js'
import { sendObject } from '../phases/relay.js'
import type { Delivery } from '../phases/phase-results.js'
import { cancellation, hasEnded, shownState, type Batch } from '../../policy/batch-records.js'
import type { ClientForm } from './clients/client-form.js'
import { formOfBatch, formOfDialect } from './clients/forms.js'
import { createBatch, type CreateServices } from './create-batch.js'
import { queryOf } from './object-page.js'
import { sendBytes } from './send-bytes.js'
import { unknownId } from './serve-files.js'

/** What serving batches uses. */
interface BatchServices extends CreateServices {
  /** Called when there is something to do for a batch. */
  readonly wake: () => void
}

/** Replies of batches that run as requests of their own say so. */
const EMULATED = ['x-sluice-emulated', 'queue']

/** The format of a request to an endpoint of batches, and the id, or the model, in its path. */
interface BatchPath {
  readonly dialect: DialectName
  readonly named: string | null
}

/** Answers a request to an endpoint of batches. Rejects with `GatewayError`. */
export async function serveBatches(
  x: Exchange,
  { dialect, named }: BatchPath,
  services: BatchServices,
): Promise<Delivery> {
  const { records, wake } = services
  const { accountId } = x.identity
  const form = formOfDialect(dialect)
  const { method } = x.req
  const isCancel = /[/:]cancel$/.test(x.path)
  if (method === 'POST' && !isCancel) {
    const batch = await createBatch(x, { form, model: named }, services)
    wake()
    return send(x, form, batch)
  }
  if (named === null) {
    const own = (await records.list(accountId)).filter(({ info }) => formOfBatch(info) === form)
    const { ids, around } = form.page(own, queryOf(x))
    const batches = await Promise.all(ids.map((id) => records.find(accountId, id)))
    const shown = batches.flatMap((batch) => (batch === null ? [] : [form.shown(batch, x)]))
    return sendObject(x, JSON.stringify(around(shown)))
  }
  const found = await records.find(accountId, named)
  if (found === null || found.info.state === 'creating' || formOfBatch(found.info) !== form) {
    throw unknownId('batch', named, form.param)
  }
  if (method === 'DELETE') return remove(x, form, found, services)
  if (isCancel) return cancel(x, form, found, services)
  if (x.path.endsWith('/results')) return sendResults(x, found, services)
  const { files } = services
  const { outputFileId } = found.info
  const output = outputFileId === null ? null : await files.find(accountId, outputFileId)
  const whole = output === null ? null : form.whole?.(found, () => files.read(output))
  if (whole === null || whole === undefined) return send(x, form, found)
  return sendBytes(x, { type: 'application/json', chunks: whole, headers: headersOf(found) })
}

function send(x: Exchange, form: ClientForm, batch: Batch): Delivery {
  return sendObject(x, JSON.stringify(form.shown(batch, x)), headersOf(batch))
}

function headersOf({ info }: Batch): readonly string[] {
  return info.form === 'queue' ? EMULATED : []
}

async function cancel(
  x: Exchange,
  form: ClientForm,
  batch: Batch,
  { records, wake }: BatchServices,
): Promise<Delivery> {
  if (hasEnded(batch)) {
    throw malformed(`The batch is ${batch.info.state}: only one that runs can be cancelled.`, form.param)
  }
  const cancelled = await records.change(batch.id, cancellation)
  await records.stir(batch.id)
  wake()
  if (form.cancelled !== undefined) return sendObject(x, JSON.stringify(form.cancelled))
  return send(x, form, cancelled ?? batch)
}

/** Removes a batch that has ended, with its results. Its ledger entry stays. */
async function remove(
  x: Exchange,
  form: ClientForm,
  batch: Batch,
  { records, files }: BatchServices,
): Promise<Delivery> {
  if (!hasEnded(batch)) {
    const state = shownState(batch.info)
    throw malformed(`The batch is ${state}: only one that has ended can be deleted; cancel it.`, form.param)
  }
  const { outputFileId, errorFileId } = batch.info
  await records.remove(batch.id)
  for (const id of [outputFileId, errorFileId]) if (id !== null) await files.remove({ id })
  return sendObject(x, JSON.stringify(form.deleted(batch.id)))
}

async function sendResults(
  x: Exchange,
  { accountId, info }: Batch,
  { files }: BatchServices,
): Promise<Delivery> {
  const { outputFileId } = info
  const file = outputFileId === null ? null : await files.find(accountId, outputFileId)
  if (file === null) {
    const message =
      outputFileId === null
        ? 'The batch has no results yet: read them when it has ended.'
        : 'The results have expired (files.keep_days).'
    throw malformed(message, 'message_batch_id')
  }
  return sendBytes(x, { type: 'application/x-jsonl', bytes: file.bytes, chunks: files.read(file) })
}
