/**
 * Charges native work by the tokens that the provider reports for it, apart from the request that started it:
 * the replies of a WebSocket, and batches.
 */
import { addUsage, type Usage } from '../../formats/chat/usage.js'
import { GatewayError } from '../../errors.js'
import type { LedgerEntry } from '../../ledger/entry.js'
import type { LedgerWriter } from '../../ledger/ledger-writer.js'
import {
  batchPrice,
  costNanoUsd,
  isComplete,
  maxCostNanoUsd,
  MEDIA_KINDS,
  tierInBatch,
  tierPrice,
  type Price,
} from '../../ledger/price.js'
import { limitDemandsOf, needsOf, type Limit, type LimitDemand } from '../../limits/find-limits.js'
import { refusalOf } from '../../limits/limit-refusal.js'
import type { Limiter } from '../../limits/limiter.js'
import { storeReservationOf } from '../../limits/reservation-types.js'
import { chargedNanoUsd } from '../../store/records/count-usage.js'
import type { ServedRequest } from '../served-request.js'
import type { Generation, Target } from '../generation.js'
import type { ScannedUsage } from '../objects/usage-scan.js'
import { provisionalEntry } from '../charges/provisional-entry.js'

/** Whose work it is, and the limits that apply to it. */
export interface Metered {
  readonly x: ServedRequest
  readonly target: Target
}

export interface MeterServices {
  readonly limiter: Limiter
  readonly ledgerWriter: Pick<LedgerWriter, 'settle'>
}

/** The limits of native requests to an upstream. */
export function nativeLimits({ x, target }: Metered): readonly Limit[] {
  const { identity } = x
  const upstream = target.upstream.config.name
  const model = `native:${upstream}`
  return x.generation.limits.of({ identity, model, strippedModel: model, modelName: model, upstream })
}

/** Whether a budget applies that an unknown price must not pass. */
export function needsPrice(metered: Metered): boolean {
  const { unknownPrice } = metered.x.generation.snapshot.config.limiting
  return needsOf(nativeLimits(metered)).money && unknownPrice !== 'allow'
}

/** The demands of work that has no slot of its own: the request that started it holds one, or none does. */
function workDemands(
  metered: Metered,
  need: { readonly tokens: number; readonly nanoUsd: number },
): LimitDemand[] {
  const whole = { ...need, mostTokens: need.tokens }
  return limitDemandsOf(nativeLimits(metered), whole).filter(({ demand }) => demand.kind !== 'concurrent')
}

/** The price of a model at the upstream; null if it is unknown. */
export function completePrice(generation: Generation, upstream: string, model: string): Price | null {
  const price = generation.pricesAt(performance.now()).prices.find(upstream, model, null)
  return price !== null && isComplete(price) ? price : null
}

/**
 * The price of a batch: that of the tier `batch`, if the model has one. Otherwise the usual price, which is
 * higher. `tier`: the options that a result names, whose factors apply too; null if one of them is unknown.
 */
export function batchPriceAt(
  generation: Generation,
  upstream: string,
  { model, tier }: { readonly model: string; readonly tier: string | null },
): Price | null {
  const price = completePrice(generation, upstream, model)
  return price === null ? null : tierPrice(batchPrice(price), tierInBatch(tier))
}

/** Maximum context of a session if the catalogue has none for the model. */
const SESSION_TOKENS = { input: 32_000, output: 4_096 }

/** The maximum cost of one reply of a session; null if the price is unknown. */
export function maxReplyCost(generation: Generation, upstream: string, model: string): number | null {
  const price = completePrice(generation, upstream, model)
  const { contextWindow, maxOutputTokens } = generation.facts(model)
  const input = contextWindow ?? SESSION_TOKENS.input
  const output = maxOutputTokens ?? SESSION_TOKENS.output
  return price === null ? null : maxCostNanoUsd(price, { input, output, media: MEDIA_KINDS })
}

/** What the tokens of several models cost. */
export class MeteredUsage {
  usage: Usage = {}
  /** Null as soon as one price is unknown. */
  costNanoUsd: number | null = 0
  model: string | null = null

  add({ model, usage }: ScannedUsage, price: Price | null): void {
    if (usage === null) return
    this.model ??= model
    this.usage = addUsage(this.usage, usage)
    const cost = price === null ? null : costNanoUsd(price, usage)
    this.costNanoUsd = this.costNanoUsd === null || cost === null ? null : this.costNanoUsd + cost
  }
}

/** The ledger entry of metered work. */
export function meteredEntry(
  { x, target }: Metered,
  requestId: string,
  { usage, costNanoUsd: cost, model }: Pick<MeteredUsage, 'usage' | 'costNanoUsd' | 'model'>,
): LedgerEntry {
  const provisional = {
    ...{ x, target },
    request: model === null ? null : { model, stream: true },
    model,
    modelName: model === null ? 'other' : x.generation.modelLabel(model),
  }
  const estimate = { usage, nanoUsd: cost, isPriced: cost !== null }
  return {
    ...provisionalEntry(provisional, estimate),
    requestId,
    atMs: Date.now(),
    status: 200,
    outcome: 'ok',
    ingress: 'native',
    usage,
    source: Object.keys(usage).length === 0 ? 'none' : 'reported',
  }
}

/**
 * Charges work that is done. The error of the limit that it exhausts, which is charged in any case; null if
 * none does. Never rejects.
 */
export async function chargeWork(
  metered: Metered,
  entry: LedgerEntry,
  { limiter, ledgerWriter }: MeterServices,
): Promise<GatewayError | null> {
  const { accountId } = metered.x.identity
  const nanoUsd = chargedNanoUsd(entry) ?? 0
  const tokens = (entry.usage.input ?? 0) + (entry.usage.output ?? 0)
  const limitDemands = workDemands(metered, { tokens, nanoUsd })
  const demands = limitDemands.map(({ demand }) => demand)
  const { requestId } = entry
  if (demands.length === 0) {
    await ledgerWriter.settle(entry)
    return null
  }
  const request = { requestId, accountId, demands, unsettled: entry }
  const decision = await limiter.admit(request).catch(() => null)
  const reservation = decision?.limitReservation ?? null
  if (reservation === null) {
    await ledgerWriter.settle(entry, { demands, takenFrom: 'nothing' })
    if (decision === null || decision.closed) {
      return new GatewayError('store_unavailable', 'The limits cannot be checked now; try again.')
    }
    const { budgetStatus } = metered.x.generation.snapshot.config.limiting
    return refusalOf(limitDemands, decision.limitStates, budgetStatus).error
  }
  limiter.end(reservation, nanoUsd)
  await ledgerWriter.settle(entry, storeReservationOf(reservation))
  return null
}

/** The error of work under a budget whose price is unknown. */
export function unknownWorkPrice(what: string, upstream: string, models: string): GatewayError {
  return new GatewayError(
    'forbidden',
    `A budget applies, and the price of ${what} is not known (${models}): add the model to prices of the upstream "${upstream}" or to the catalogue, or set limiting.unknown_price to allow.`,
  )
}
