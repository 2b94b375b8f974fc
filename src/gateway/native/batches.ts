/**
 * Charges a batch to the account that created it, once: under a budget its maximum cost is reserved before
 * the provider gets it, and its cost is read from its results when a client requests them.
 */
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import { assertModelAllowed } from '../../accounts/allowed-models.js'
import { GatewayError, gatewayError } from '../../errors.js'
import { arrayOf, isObject, numberOf, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import { tierPrice } from '../../ledger/price.js'
import {
  limitDemandsOf,
  needsOf,
  type Limit,
  type LimitDemand,
  type Needs,
} from '../../limits/find-limits.js'
import { refusalOf } from '../../limits/limit-refusal.js'
import { isWindowed } from '../../store/limit-arithmetic.js'
import type { ProviderObject } from '../../store/provider-objects.js'
import { parseOrNull } from '../../formats/wire/json/full-scan.js'
import type { BudgetPrice } from '../charges/budget-price.js'
import { estimateUse } from '../charges/estimate-max-cost.js'
import { maxNanoUsd, maxTokens } from '../charges/refuse-unknown-cost.js'
import { cloudOf } from '../objects/cloud-names.js'
import { UsageScan, type ScannedUsage } from '../objects/usage-scan.js'
import { assertToolAllowed, restrictsTools } from '../phases/permit-tools.js'
import type { BatchSummary, BatchUse } from './batch-requests.js'
import {
  batchPriceAt,
  meteredEntry,
  MeteredUsage,
  nativeLimits,
  unknownWorkPrice,
  type Metered,
  type MeterServices,
} from './charge-native-work.js'

/** Results are kept for 29 days; a batch whose results no client requests is charged what was reserved. */
const LEASE_MS = 30 * 86_400_000
const ACTIONS = /:(?:batchGenerateContent|asyncBatchEmbedContent)$/
const DONE =
  /^(?:completed|ended|failed|expired|cancelled|canceled|SUCCESS|FAILED|TIMEOUT_EXCEEDED|CANCELLED|BATCH_STATE_(?:SUCCEEDED|FAILED|CANCELLED|EXPIRED))$/

/** The facts of a batch, or of the file with its results. */
export interface BatchFacts {
  /** The id of its ledger entry. */
  readonly charge: string
  /** Whether the store has a reservation for it. */
  readonly isHeld: boolean
  /** The model if the path names it; '' for those in the results. */
  readonly model: string
}

/** Jobs of clouds, whose requests are in buckets that the gateway does not read. */
const JOBS = /(?:^|\/)(?:batchPredictionJobs|model-invocation-job)$/
/** Jobs of Mistral, whose body names model and endpoint of all its requests. */
const MISTRAL_JOBS = /(?:^|\/)batch\/jobs$/

/** Whether a request to the path creates a batch. `collection`: the one at the end of the path. */
export function createsBatch(method: string, collection: string, segments: readonly string[]): boolean {
  if (method !== 'POST') return false
  const path = segments.join('/')
  return collection === 'batches' || ACTIONS.test(path) || JOBS.test(path) || MISTRAL_JOBS.test(path)
}

/** Whether the body of the batch names the model and the endpoint of all its requests. */
export function isMistralJob(segments: readonly string[]): boolean {
  return MISTRAL_JOBS.test(segments.join('/'))
}

/** The model in the path of a batch; '' if it has none. */
export function modelOfBatch(segments: readonly string[]): string {
  const last = segments.at(-1) ?? ''
  return ACTIONS.test(last) ? last.replace(ACTIONS, '') : ''
}

/** The facts of an object; null if it has none of a batch. */
export function batchFactsOf({ facts }: ProviderObject): BatchFacts | null {
  const { charge, isHeld, model } = objectOf(parseOrNull(facts === '' ? 'null' : facts))
  if (typeof charge !== 'string') return null
  return { charge, isHeld: isHeld === true, model: stringOf(model) ?? '' }
}

/** The requests in an uploaded file; null if the file is none of a batch. */
export function batchIn({ facts }: ProviderObject): BatchSummary | null {
  const { batch } = objectOf(parseOrNull(facts === '' ? 'null' : facts))
  // A gateway of an earlier version stored another form.
  return isObject(batch) && Array.isArray(batch['uses']) ? (batch as unknown as BatchSummary) : null
}

/** The requests of a batch that a client creates. */
export interface NewBatch {
  /** The model in its path; '' if each request names its own. */
  readonly model: string
  /** Its requests, by the body or the file that has them. */
  readonly summaries: readonly BatchSummary[]
  /** The gateway has not read all of them. */
  readonly isUnread: boolean
}

/**
 * Refuses what a direct request is refused: an invalid request, models and tools that the key may not use.
 * Throws `GatewayError` that names the place of the request.
 */
export function assertBatchAllowed(metered: Metered, { model, summaries, isUnread }: NewBatch): void {
  const { x, target } = metered
  const { identity } = x
  const uses = summaries.flatMap((summary) => summary.uses)
  for (const { problem } of summaries) if (problem !== null) throw gatewayError(problem)
  for (const use of uses) {
    if (model !== '' && use.model !== '' && use.model !== model) {
      throw new GatewayError(
        'malformed_request',
        `${use.at}: the model must be '${model}', that of the batch.`,
      )
    }
    at(use, () => assertModelAllowed(identity, model || use.model))
  }
  const limits = batchLimits(metered, modelsOf({ model, summaries }))
  const rules = { identity, isRestricted: identity.models !== null || needsOf(limits).money }
  for (const tool of summaries.flatMap(({ tools }) => tools)) {
    at(tool, () => assertToolAllowed(target, tool, rules))
  }
  if (!restrictsTools(target, rules)) return
  const unread = isUnread ? 'a file' : summaries.find((summary) => summary.unread !== null)?.unread
  if (unread === undefined || unread === null) return
  const cloud = cloudOf(target.upstream.config)
  if (isUnread && (cloud === 'vertex' || cloud === 'bedrock')) throw bucketJob()
  throw new GatewayError(
    'forbidden',
    `The gateway cannot check the requests of the batch (${unread}), and this API key may not use all tools and models, or has a budget: send requests of /v1/chat/completions, /v1/responses, /v1/completions, /v1/embeddings, /v1/messages or generateContent, in the body or in a file uploaded through this gateway (native_sharing: account).`,
  )
}

/** A job of a cloud reads its requests from a bucket, and writes their results to one. */
function bucketJob(): GatewayError {
  const message =
    'The requests of this job are in a bucket, where the gateway cannot check and price them, and this API key may not use all tools and models, or has a budget: send them one by one, or use a key without these limits.'
  return new GatewayError('forbidden', message)
}

/** Adds the place of a request to its error. */
function at({ at: place }: { readonly at: string }, step: () => void): void {
  try {
    step()
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    throw gatewayError({ ...error.wire, message: `${place}: ${error.wire.message}` })
  }
}

function modelsOf({ model, summaries }: Pick<NewBatch, 'model' | 'summaries'>): string[] {
  const named = summaries.flatMap(({ uses }) => uses.map((use) => model || use.model))
  return [...new Set(model === '' ? named : [model, ...named])]
}

/** The limits of native requests, and those of the models. */
function batchLimits(metered: Metered, models: readonly string[]): readonly Limit[] {
  const { x, target } = metered
  const limits = new Map(nativeLimits(metered).map((limit) => [limit.subject, limit]))
  for (const model of models) {
    for (const limit of x.generation.limitsOf(x.identity, model, target)) limits.set(limit.subject, limit)
  }
  return [...limits.values()]
}

/**
 * Checks the requests of a batch as direct requests, and reserves their maximum cost if a budget applies.
 * Rejects as `assertBatchAllowed`, as `maxNanoUsd` if the cost of a request is not known, and with
 * `budget_exceeded` if the budget does not allow it.
 */
export async function planBatch(
  metered: Metered,
  batch: NewBatch,
  { limiter }: MeterServices,
): Promise<BatchFacts> {
  const { x, target } = metered
  const { identity } = x
  assertBatchAllowed(metered, batch)
  const { model } = batch
  const charge = `${x.id}-batch`
  const facts = { charge, isHeld: false, model }
  const limits = batchLimits(metered, modelsOf(batch))
  const needs = needsOf(limits)
  if (!needs.money && !needs.mostTokens) return facts
  const uses = batch.summaries.flatMap((summary) => summary.uses)
  const { limiting } = x.generation.snapshot.config
  if ((uses.length === 0 || batch.isUnread) && limiting.unknownPrice !== 'allow') {
    const upstream = target.upstream.config.name
    throw unknownWorkPrice(
      'the batch',
      upstream,
      model || 'upload its file in one request through this gateway',
    )
  }
  const most = { nanoUsd: 0, mostTokens: 0 }
  for (const use of uses) {
    const { nanoUsd, mostTokens } = maxUseOf(use, needs, metered, model)
    most.nanoUsd += nanoUsd
    most.mostTokens += mostTokens
  }
  const { nanoUsd } = most
  const limitDemands = budgetDemands(limits, most)
  const demands = limitDemands.map(({ demand }) => demand)
  const unsettled = {
    ...meteredEntry(metered, charge, { usage: {}, costNanoUsd: nanoUsd, model: model || null }),
    outcome: 'lost' as const,
    source: 'estimated' as const,
  }
  const request = { requestId: charge, accountId: identity.accountId, demands, unsettled }
  const decision = await limiter.admit({ ...request, leaseMs: LEASE_MS })
  const { limitReservation: reservation } = decision
  if (reservation === null) throw refusalOf(limitDemands, decision.limitStates, limiting.budgetStatus).error
  limiter.keep(reservation)
  // Without the store there is no reservation; the budget is charged when the results are read.
  return { ...facts, isHeld: reservation.taken !== 'nothing' }
}

/**
 * The demands on budgets and on tokens of days, weeks and months, or in all: neither the requests of a batch
 * nor their tokens count for limits per minute.
 */
function budgetDemands(limits: readonly Limit[], need: MaxUse): LimitDemand[] {
  return limitDemandsOf(limits, { tokens: 0, ...need }).filter(
    ({ demand }) => isWindowed(demand) && demand.kind !== 'requests_total',
  )
}

/** The maximum use of requests. */
interface MaxUse {
  readonly nanoUsd: number
  readonly mostTokens: number
}

/** The maximum use of the requests for one model; 0 for what is not limited. */
function maxUseOf(use: BatchUse, needs: Needs, { x, target }: Metered, pathModel: string): MaxUse {
  const { generation } = x
  const model = pathModel || use.model
  const { prices } = generation.pricesAt(x.startedMs)
  const priceOf = (name: string): BudgetPrice => {
    const usual = prices.find(target.upstream.config.name, name, null)
    const price = usual === null ? null : (tierPrice(usual, 'batch') ?? usual)
    return generation.budgetPrices.of(price, use.tier)
  }
  const budgetPrice = priceOf(model)
  const { limiting } = generation.snapshot.config
  // The results of a batch are charged by the prices of their models only.
  if (needs.money && !budgetPrice.isPriced && limiting.unknownPrice !== 'allow') {
    throw unknownWorkPrice('the batch', target.upstream.config.name, `${use.at}: ${model}`)
  }
  const factsOf = (name: string): ModelFacts => generation.factsAt(target.upstream.config, name)
  const estimate = estimateUse(use, { facts: factsOf(model), others: { factsOf, priceOf } }, budgetPrice)
  let nanoUsd = 0
  let mostTokens = 0
  at(use, () => {
    if (needs.money) nanoUsd = maxNanoUsd(estimate, model, limiting)
    if (needs.mostTokens) mostTokens = maxTokens(estimate, model, limiting)
  })
  return { nanoUsd, mostTokens }
}

/** Releases what was reserved for a batch that the provider did not accept, or that had no results. */
export async function releaseBatch(
  metered: Metered,
  facts: BatchFacts,
  services: MeterServices,
): Promise<void> {
  const unused = new MeteredUsage()
  unused.usage = { input: 0, output: 0 }
  if (facts.isHeld) await settle(metered, facts, unused, services)
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
  const models = [facts.model, used.model].flatMap((model) => (model === null || model === '' ? [] : [model]))
  const limits = batchLimits(metered, models)
  const { input = 0, output = 0 } = used.usage
  const use = { nanoUsd: used.costNanoUsd ?? 0, mostTokens: input + output }
  const demands = budgetDemands(limits, use).map(({ demand }) => demand)
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
    used.add({ ...value, model }, batchPriceAt(generation, name, { model, tier: value.tier }))
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
  // Mistral has the results of requests in its body only in replies that the client requests so.
  if (results === null) return (numberOf(reply?.['succeeded_requests']) ?? 0) > 0 ? null : used
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
  return [...arrayOf(list), ...arrayOf(reply['outputs'])].flatMap((item) => {
    const { response } = objectOf(item)
    return isObject(response) ? [response] : []
  })
}

/** The address of the results; null if there are none. */
function resultsUrl(reply: JsonObject, url: URL): URL | null {
  const results = new URL(url)
  results.search = ''
  const file = stringOf(reply['output_file_id']) ?? stringOf(reply['output_file'])
  if (file !== undefined) {
    results.pathname = url.pathname.replace(
      /\/(?:batches|batch\/jobs)\/[^/]+(?:\/[^/]*)?$/,
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
