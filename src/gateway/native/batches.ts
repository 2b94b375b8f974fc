/**
 * Charges a batch to the account that created it, once: under a budget its maximum cost is reserved before
 * the provider gets it, and its cost is read from its results when a client requests them.
 */
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../formats/chat/json.js'
import { maxCostNanoUsd } from '../../ledger/price.js'
import { refusalOf } from '../../limits/limit-refusal.js'
import type { ProviderObject } from '../../store/provider-objects.js'
import { parseOrNull } from '../../formats/wire/json/full-scan.js'
import type { RequestSummary } from '../objects/request-scan.js'
import { UsageScan, type ScannedUsage } from '../objects/usage-scan.js'
import {
  batchPriceAt,
  meteredEntry,
  MeteredUsage,
  needsPrice,
  unknownWorkPrice,
  workDemands,
  type Metered,
  type MeterServices,
} from './charge-native-work.js'

/** Results are kept for 29 days; a batch whose results no client requests is charged what was reserved. */
const LEASE_MS = 30 * 86_400_000
/** One token has at least this many bytes of JSON. */
const BYTES_PER_TOKEN = 2
/** Tokens of a request if the catalogue has no maximum for its model. */
const UNKNOWN_TOKENS = { input: 200_000, output: 64_000 }

const ACTIONS = /:(?:batchGenerateContent|asyncBatchEmbedContent)$/
const DONE =
  /^(?:completed|ended|failed|expired|cancelled|canceled|BATCH_STATE_(?:SUCCEEDED|FAILED|CANCELLED|EXPIRED))$/

/** The facts of a batch, or of the file with its results. */
export interface BatchFacts {
  /** The id of its ledger entry. */
  readonly charge: string
  /** Whether the store has a reservation for it. */
  readonly isHeld: boolean
  /** The model if the path names it; '' for those in the results. */
  readonly model: string
}

/** Whether a request creates a batch. */
export function createsBatch(method: string, collection: string, lastSegment: string): boolean {
  return method === 'POST' && (collection === 'batches' || ACTIONS.test(lastSegment))
}

/** The facts of an object; null if it has none of a batch. */
export function batchFactsOf({ facts }: ProviderObject): BatchFacts | null {
  const { charge, isHeld, model } = objectOf(parseOrNull(facts === '' ? 'null' : facts))
  if (typeof charge !== 'string') return null
  return { charge, isHeld: isHeld === true, model: stringOf(model) ?? '' }
}

/** The summary of the requests in an uploaded file; null if the file is none of a batch. */
export function batchIn({ facts }: ProviderObject): RequestSummary | null {
  const { batch } = objectOf(parseOrNull(facts === '' ? 'null' : facts))
  return isObject(batch) ? (batch as unknown as RequestSummary) : null
}

/**
 * Reserves the maximum cost of a batch if a budget applies. Rejects with `forbidden` if that is not known,
 * and with `budget_exceeded` if the budget does not allow it.
 */
export async function planBatch(
  metered: Metered,
  { summaries, lastSegment }: { readonly summaries: readonly RequestSummary[]; readonly lastSegment: string },
  { limiter }: MeterServices,
): Promise<BatchFacts> {
  const { x, identity, target } = metered
  const upstream = target.upstream.config.name
  const model = ACTIONS.test(lastSegment) ? lastSegment.replace(ACTIONS, '') : ''
  const charge = `${x.id}-batch`
  const facts = { charge, isHeld: false, model }
  if (!needsPrice(metered)) return facts
  const costs = summaries.map((summary) => maxBatchCost(metered, summary, model))
  if (costs.length === 0 || costs.includes(null)) {
    const models = summaries.flatMap(({ models: named }) => named).join(', ')
    throw unknownWorkPrice(
      'the batch',
      upstream,
      models || model || 'upload its file in one request through this gateway',
    )
  }
  const nanoUsd = costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0)
  const limitDemands = workDemands(metered, { tokens: 0, nanoUsd }).filter(({ demand }) =>
    demand.kind.startsWith('usd_'),
  )
  const demands = limitDemands.map(({ demand }) => demand)
  const unsettled = {
    ...meteredEntry(metered, charge, { usage: {}, costNanoUsd: nanoUsd, model: model || null }),
    outcome: 'lost' as const,
    source: 'estimated' as const,
  }
  const request = { requestId: charge, accountId: identity.accountId, demands, unsettled }
  const decision = await limiter.admit({ ...request, leaseMs: LEASE_MS })
  const { limitReservation: reservation } = decision
  if (reservation === null) {
    const { budgetStatus } = metered.x.generation.snapshot.config.limiting
    throw refusalOf(limitDemands, decision.limitStates, budgetStatus).error
  }
  limiter.keep(reservation)
  // Without the store there is no reservation; the budget is charged when the results are read.
  return { ...facts, isHeld: reservation.taken !== 'nothing' }
}

function maxBatchCost(metered: Metered, summary: RequestSummary, model: string): number | null {
  const { generation } = metered.x
  const { name } = metered.target.upstream.config
  const models = model === '' ? summary.models : [model]
  let maxCost: number | null = models.length === 0 ? null : 0
  for (const each of models) {
    const price = batchPriceAt(generation, name, each)
    const { contextWindow = UNKNOWN_TOKENS.input, maxOutputTokens = UNKNOWN_TOKENS.output } =
      generation.facts(each)
    const { bytes, requests, unseen, output, withOutput } = summary
    const tokens = {
      input: Math.ceil(bytes / BYTES_PER_TOKEN) + Math.min(unseen, requests) * contextWindow,
      output: output + Math.max(0, requests - withOutput) * maxOutputTokens,
    }
    const cost = price === null ? null : maxCostNanoUsd(price, tokens)
    maxCost = maxCost === null || cost === null ? null : Math.max(maxCost, cost)
  }
  return maxCost
}

/** Releases what was reserved for a batch that the provider did not accept, or that had no results. */
export async function releaseBatch(
  metered: Metered,
  facts: BatchFacts,
  services: MeterServices,
): Promise<void> {
  if (facts.isHeld) await settle(metered, facts, new MeteredUsage(), services)
}

/** Reads a file of the upstream: false if that fails. */
export type ReadResults = (url: URL, onChunk: (chunk: Buffer) => void) => Promise<boolean>

/** A batch whose results may be complete. */
interface SeenBatch {
  /** The batch, or the file with its results. */
  readonly object: ProviderObject
  /** The reply with the batch; null if the client reads the results. */
  readonly reply: JsonObject | null
  /** The address of the client's request at the upstream. */
  readonly url: URL
  readonly read: ReadResults
}

/** Batches that this process charges at the moment. */
const charging = new Set<string>()

/**
 * Charges a batch if it is complete. Resolves to true if that is done: it needs no other charge. Never
 * rejects: without results the reservation remains until they are read.
 */
export async function chargeBatch(
  metered: Metered,
  seen: SeenBatch,
  services: MeterServices,
): Promise<boolean> {
  const facts = batchFactsOf(seen.object)
  if (facts === null || charging.has(facts.charge)) return false
  charging.add(facts.charge)
  try {
    const used = await usageOf(metered, seen, facts)
    if (used === null) return false
    await settle(metered, facts, used, services, seen.object)
    return true
  } catch {
    return false
  } finally {
    charging.delete(facts.charge)
  }
}

async function settle(
  metered: Metered,
  facts: BatchFacts,
  used: MeteredUsage,
  { ledgerWriter }: MeterServices,
  object?: ProviderObject,
): Promise<void> {
  const own = meteredEntry(metered, facts.charge, used)
  const entry =
    object === undefined || object.accountId === own.accountId
      ? { ...own, keyId: object?.keyId ?? own.keyId }
      : { ...own, keyId: object.keyId, accountId: object.accountId, accountPath: null }
  const need = { tokens: 0, nanoUsd: used.costNanoUsd ?? 0 }
  const demands = workDemands(metered, need)
    .map(({ demand }) => demand)
    .filter(({ kind }) => kind.startsWith('usd_'))
  if (facts.isHeld) await ledgerWriter.settle(entry, { demands, takenFrom: 'reserved' })
  else if (demands.length === 0) await ledgerWriter.settle(entry)
  else await ledgerWriter.settle(entry, { demands, takenFrom: 'nothing' })
}

/** What the batch used; null if it is not complete, or its results cannot be read. */
async function usageOf(
  metered: Metered,
  { reply, url, read }: SeenBatch,
  facts: BatchFacts,
): Promise<MeteredUsage | null> {
  const used = new MeteredUsage()
  const { generation } = metered.x
  const { name } = metered.target.upstream.config
  const add = (value: ScannedUsage): void => {
    const model = facts.model || (value.model ?? '')
    used.add({ ...value, model }, batchPriceAt(generation, name, model))
  }
  if (reply !== null && !isDone(reply)) return null
  const inline = reply === null ? [] : inlineResponses(reply)
  if (inline.length > 0) {
    for (const response of inline) {
      const scan = new UsageScan(false, add)
      scan.write(Buffer.from(JSON.stringify({ response })))
      scan.end()
    }
    return used
  }
  const results = reply === null ? url : resultsUrl(reply, url)
  if (results === null) return used
  const scan = new UsageScan(true, add)
  const text = { isReadable: true }
  const isRead = await read(results, (chunk) => {
    text.isReadable &&= scan.write(chunk)
  })
  return isRead && text.isReadable && scan.end() ? used : null
}

function isDone(reply: JsonObject): boolean {
  const { status, processing_status: processing, metadata, done } = reply
  const state = stringOf(status) ?? stringOf(processing) ?? objectOf(metadata)['state']
  return done === true || (typeof state === 'string' && DONE.test(state))
}

function inlineResponses(reply: JsonObject): JsonObject[] {
  const { inlinedResponses } = objectOf(reply['response'])
  const list = isObject(inlinedResponses) ? inlinedResponses['inlinedResponses'] : inlinedResponses
  return arrayOf(list).flatMap((item) => {
    const { response } = objectOf(item)
    return isObject(response) ? [response] : []
  })
}

/** The address of the results; null if there are none. */
function resultsUrl(reply: JsonObject, url: URL): URL | null {
  const results = new URL(url)
  results.search = ''
  const file = stringOf(reply['output_file_id'])
  if (file !== undefined) {
    results.pathname = url.pathname.replace(
      /\/batches\/[^/]+(?:\/[^/]*)?$/,
      `/files/${encodeURIComponent(file)}/content`,
    )
    return results
  }
  const google = stringOf(objectOf(reply['response'])['responsesFile'])
  if (google !== undefined) {
    const id = encodeURIComponent(google.replace(/^files\//, ''))
    results.pathname = `/download${url.pathname.replace(/\/batches\/[^/]+$/, `/files/${id}:download`)}`
    results.search = '?alt=media'
    return results
  }
  if (reply['processing_status'] !== 'ended') return null
  results.pathname = `${url.pathname.replace(/\/(?:cancel|results)$/, '')}/results`
  return results
}
