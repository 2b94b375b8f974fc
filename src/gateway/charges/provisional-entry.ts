/**
 * The provisional ledger entry of a running request: the ledger keeps it if this process exits before the
 * request is settled.
 */
import type { Identity } from '../../accounts/account.js'
import { labelsText } from '../../accounts/labels.js'
import type { Usage } from '../../formats/chat/usage.js'
import { unitsText } from '../../ledger/entry-units.js'
import { UNEXPLAINED, type LedgerEntry } from '../../ledger/entry.js'
import { arrivedAtMs } from './arrived-at.js'
import { maxUsage, type CostEstimate } from './estimate-max-cost.js'
import type { ServedRequest } from '../served-request.js'
import { dimensionsText } from '../dimensions/dimensions-text.js'
import type { Target } from '../generation.js'

const LOST =
  'The gateway process ended before this request did. Its tokens and its cost are the reserved maximum.'

/** A request that is about to run. */
interface Provisional {
  readonly x: ServedRequest
  /** With the values of dimensions of its part; absent: that of the request. */
  readonly identity?: Identity
  /** Fields of the client's request; null for native requests. */
  readonly request: { readonly model: string; readonly stream: boolean } | null
  readonly target: Target
  /** The model that is requested from the upstream; null for native requests. */
  readonly model: string | null
  /** The name under which limits and usage sums count the model. */
  readonly modelName: string
}

/** The maximum use of a request: its tokens, and their cost if its price is known. */
type MaxUse = Pick<CostEstimate, 'nanoUsd' | 'isPriced'> & { readonly usage: Usage }

/** The maximum use of a request with this estimate. */
export function maxUseOf(estimate: CostEstimate): MaxUse {
  const { nanoUsd, isPriced } = estimate
  return { usage: maxUsage(estimate), nanoUsd, isPriced }
}

/** The entry for a request that has used its maximum. */
export function provisionalEntry(
  { x, identity = x.identity, request, target, model, modelName }: Provisional,
  { usage, nanoUsd, isPriced }: MaxUse,
): LedgerEntry {
  return {
    requestId: x.id,
    atMs: arrivedAtMs(x),
    durationMs: 0,
    accountId: identity.accountId,
    keyId: identity.keyId,
    modelAsked: request === null ? null : request.model.slice(0, 256),
    modelAnswered: model,
    model: modelName,
    upstream: target.upstream.config.name,
    dialect: target.dialect,
    attempts: 1,
    stream: request?.stream ?? false,
    status: 500,
    outcome: 'lost',
    finish: null,
    usage,
    source: 'assumed',
    costNanoUsd: isPriced ? nanoUsd : null,
    tokensAfterDisconnect: 0,
    losses: [],
    generation: x.generation.snapshot.generation,
    hops: {},
    ...UNEXPLAINED,
    errorMessage: LOST,
    priceVersion: isPriced && nanoUsd !== null ? x.generation.pricesAt(x.startedMs).version : null,
    gateway: x.generation.snapshot.config.server.name,
    generationHash: x.generation.hash,
    accountPath: identity.accountPath ?? null,
    identity: identity.workload ?? null,
    labels: labelsText(identity.labels),
    clientRequestId: x.identified?.clientRequestId ?? null,
    dimensions: dimensionsText(identity.dimensions),
    user: identity.user ?? null,
    units: unitsText(usage),
    batch: x.batch,
  }
}
