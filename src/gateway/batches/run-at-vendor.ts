/** Runs a batch at a vendor: sends it once, reads its state now and then, and its results at its end. */
import { Pacer } from '../../base/pacer.js'
import type { BatchForm } from '../../formats/chat/operations.js'
import { resolveEndpoint } from '../../formats/index.js'
import type { Generation } from '../generation.js'
import type { Batch, BatchInfo, BatchRecords } from '../../policy/batch-records.js'
import { plannedLines, type PlannedLine } from './batch-lines.js'
import type { FileStore, StoredFile } from '../../policy/file-store.js'
import type { Journal, LineResult } from './journal.js'
import { KeyNumbers } from './key-numbers.js'
import { lineRequestId } from './line-exchange.js'
import { LineRun, lineScope, type LineServices } from './line-run.js'
import { anthropicBatches } from './vendors/anthropic.js'
import { geminiBatches } from './vendors/gemini.js'
import { mistralBatches } from './vendors/mistral.js'
import { openaiBatches } from './vendors/openai.js'
import type { VendorBatch, VendorBatches, VendorResult, VendorState } from './vendors/vendor-batches.js'
import { VendorClient, VendorError } from './vendors/vendor-client.js'

type VendorForm = Exclude<BatchForm, 'none' | 'queue'>

const VENDORS: Readonly<Record<VendorForm, (client: VendorClient) => VendorBatches>> = {
  openai: openaiBatches,
  mistral: mistralBatches,
  anthropic: anthropicBatches,
  gemini: geminiBatches,
}

/** What running a batch at a vendor needs. */
interface VendorRun {
  readonly batch: Batch
  readonly generation: Generation
  readonly records: BatchRecords
  readonly files: FileStore
  readonly plan: StoredFile
  readonly journal: Journal
  readonly services: LineServices
  /** False as soon as another process has the batch. */
  readonly isMine: () => boolean
  /** Renews the right to work on the batch; false if another process has it. */
  readonly renew: () => Promise<boolean>
}

/** How a batch ends, here or at a vendor. */
export interface BatchEnd {
  readonly state: 'completed' | 'failed' | 'cancelled' | 'expired'
  readonly message: string
  /** Replies that belong to no line, which the vendor has charged. */
  readonly strays?: number
}

/** Results are written in groups of this size. */
const GROUP_BYTES = 65_536

/** Does the next step; null: the batch has not ended. Rejects if the vendor does not answer. */
export async function runAtVendor(run: VendorRun): Promise<BatchEnd | null> {
  const { batch, records } = run
  const { id, info } = batch
  if (info.vendor === null) return { state: info.isCancelled ? 'cancelled' : 'completed', message: '' }
  const vendor = vendorOf(run)
  const { vendorId } = info
  if (vendorId === null) {
    if (info.isCancelled && info.at.submitting === undefined) return { state: 'cancelled', message: '' }
    return submit(run, vendor)
  }
  if (info.isCancelled && !info.isVendorCancelled) {
    // One that has ended meanwhile cannot be cancelled.
    await vendor.cancel(vendorId).catch(ignoreRefusal)
    await records.change(id, () => ({ isVendorCancelled: true }))
  }
  const state = await polled(run, () => vendor.read(vendorId))
  if (state.state === 'running') {
    const { completed, failed } = state
    await records.change(id, ({ info: { counts } }) => ({ counts: { ...counts, completed, failed } }))
    return null
  }
  if (state.state === 'failed') return { state: 'failed', message: state.message }
  await records.change(id, ({ info: { isCancelled } }) => (isCancelled ? null : { state: 'finalizing' }))
  const strays = await readResults(run, vendor, state)
  if (strays === null) {
    const foreignIds = [...(info.foreignIds ?? []), vendorId]
    await records.change(id, () => ({ vendorId: null, isVendorCancelled: false, foreignIds }))
    return null
  }
  if (!run.isMine()) return null
  const isCancelled = state.state === 'cancelled' || (info.isCancelled && run.batch.info.form === 'anthropic')
  return {
    state: isCancelled ? 'cancelled' : state.state === 'expired' ? 'expired' : 'completed',
    message: '',
    strays,
  }
}

/** Counts a question to the vendor by its result. */
async function polled<Result>({ batch, services }: VendorRun, poll: () => Promise<Result>): Promise<Result> {
  const { batches } = services.metrics
  const upstream = batch.info.upstreams[0] ?? 'none'
  try {
    const result = await poll()
    batches.poll(upstream, 'ok')
    return result
  } catch (error) {
    const isLimited = error instanceof VendorError && error.status === 429
    batches.poll(upstream, isLimited ? 'rate_limited' : 'error')
    throw error
  }
}

function vendorOf({ batch, generation }: VendorRun): VendorBatches {
  const { form, upstreams } = batch.info
  const target = generation.nativeTarget(upstreams[0] ?? '')
  if (target === null || form === 'queue') throw new Error(`no upstream ${upstreams[0] ?? ''} runs it`)
  return VENDORS[form](new VendorClient(target))
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof VendorError) || error.isPassing) throw error
}

/**
 * Sends the batch, unless the vendor has it already: a process that ended, or a connection that failed, may
 * have sent it before.
 */
async function submit(run: VendorRun, vendor: VendorBatches): Promise<BatchEnd | null> {
  const { batch, records } = run
  const { id, info } = batch
  const vendorBatch = vendorBatchOf(run)
  try {
    if (info.at.submitting !== undefined) {
      const others = new Set([...(await records.vendorIds()), ...(info.foreignIds ?? [])])
      const found = await vendor.find(vendorBatch, others)
      if (found !== null) {
        await adopt(run, vendor, { vendorId: found, isVendorIdGuessed: vendor.isGuessed })
        return null
      }
      if (info.isCancelled) return { state: 'cancelled', message: '' }
    } else {
      const begun = await records.change(id, ({ info: { isCancelled } }) => {
        return isCancelled ? null : { state: 'submitting' }
      })
      if (begun?.info.isCancelled !== false) return null
    }
    // A process that was stopped for longer than its lease must not send it beside its successor.
    if (!(await run.renew())) return null
    await adopt(run, vendor, { vendorId: await vendor.submit(vendorBatch), isVendorIdGuessed: false })
    return null
  } catch (error) {
    if (!(error instanceof VendorError) || error.isPassing) throw error
    return { state: 'failed', message: error.message }
  }
}

/** Notes the vendor's id, and passes on a cancellation that came meanwhile. */
async function adopt(
  { batch: { id }, records }: VendorRun,
  vendor: VendorBatches,
  named: Required<Pick<BatchInfo, 'isVendorIdGuessed'>> & { readonly vendorId: string },
): Promise<void> {
  const changed = await records.change(id, ({ info }) => {
    return { ...named, ...(!info.isCancelled && { state: 'in_progress' as const }) }
  })
  if (changed?.info.isCancelled === true) await vendor.cancel(named.vendorId).catch(ignoreRefusal)
}

function vendorBatchOf({ batch, files, plan }: VendorRun): VendorBatch {
  const { id, createdAtMs, info } = batch
  const { window, vendor } = info
  const { model = '', endpoint = '', headers = {}, bytes = 0, lines: total = 0 } = vendor ?? {}
  async function* lines(): AsyncIterable<{ readonly key: string; readonly request: string }> {
    for await (const line of plannedLines(files, plan)) {
      const { request } = line
      if (request !== undefined) yield { key: keyOf(batch, line), request }
    }
  }
  return { id, createdAtMs, total, model, endpoint, headers, window, bytes, lines }
}

/**
 * What names a line at the vendor: the client's id; at Anthropic, whose batches have no other mark, the id of
 * the batch and the line's number.
 */
function keyOf({ id: batchId, info }: Batch, { number, id }: Pick<PlannedLine, 'number' | 'id'>): string {
  return info.form === 'anthropic' ? `${batchId}-${number}` : id
}

/**
 * Writes the results that the journal does not have; null if they are those of another batch. The number of
 * replies that belong to no line.
 */
async function readResults(
  run: VendorRun,
  vendor: VendorBatches,
  state: VendorState,
): Promise<number | null> {
  const { batch, journal, isMine, services } = run
  const isGuessed = batch.info.isVendorIdGuessed === true
  const { numbers, inOrder } = await numbersOf(run)
  const pacer = new Pacer()
  let group: LineResult[] = []
  let bytes = 0
  let place = 0
  let unknown = 0
  let strays = 0
  for await (const result of vendor.results(state)) {
    await pacer.pace()
    if (!isMine()) return strays
    const number = result.key === null ? inOrder[place] : numbers.find(result.key)
    place += 1
    if (number === undefined || number === null) {
      if (isGuessed) return null
      unknown += 1
      // What did not run, or failed, costs nothing.
      if (result.reply !== null && result.reply.status < 400) strays += 1
      continue
    }
    if (journal.has(number)) continue
    const own = resultOf(batch, number, result)
    group.push(own)
    bytes += own.body.length
    if (bytes > GROUP_BYTES) {
      await journal.add(group)
      group = []
      bytes = 0
    }
  }
  await journal.add(group)
  if (unknown > 0) {
    const reason = `${batch.id}: ${unknown} results, ${strays} of them charged at the maximum of a line`
    services.log.warn('a batch has results of unknown lines', { reason, upstream: batch.info.upstreams[0] })
  }
  return strays
}

/** The numbers of the lines by their keys, and in their order. */
async function numbersOf({ batch, files, plan }: VendorRun): Promise<{
  readonly numbers: Pick<KeyNumbers, 'find'>
  readonly inOrder: Uint32Array
}> {
  const numbers = new KeyNumbers()
  const inOrder = new Uint32Array(batch.info.vendor?.lines ?? 0)
  for await (const line of plannedLines(files, plan)) {
    if (line.request === undefined) continue
    inOrder[numbers.size] = line.number
    numbers.add(keyOf(batch, line), line.number)
  }
  return { numbers, inOrder }
}

/** What the vendor answered to a line. */
function resultOf(batch: Batch, number: number, { reply, code }: VendorResult): LineResult {
  const requestId = lineRequestId(batch, number)
  if (reply !== null) return { number, requestId, ...reply, isRaw: true }
  const message = code === 'batch_expired' ? 'This request did not run in time.' : 'This request did not run.'
  const error = { code: code ?? 'batch_missing_result', message }
  return { number, requestId, status: 0, body: '', error }
}

/** Translates what a vendor answered to a line. */
export type FinishLine = (line: PlannedLine, result: LineResult) => Promise<LineResult>

/** The translation of the results of a batch; null if they are replies to clients already. */
export function finisherOf({
  batch,
  generation,
  services,
}: Pick<VendorRun, 'batch' | 'generation' | 'services'>): FinishLine | null {
  const { endpoint, upstreams, form } = batch.info
  if (form === 'queue') return null
  const resolved = resolveEndpoint('POST', endpoint)
  if (resolved === null) throw new Error('its endpoint is not served')
  const { identity, headers } = batch.secrets
  const scope = lineScope({ generation, identity, headers, resolved, upstream: upstreams[0] ?? '', services })
  return async ({ body }, result) => {
    if (result.isRaw !== true) return result
    const { number, requestId: id } = result
    const run = new LineRun(scope, { id, body: Buffer.from(body) })
    const { reply, used } = await run.finish(result)
    return { number, requestId: id, ...reply, used }
  }
}
