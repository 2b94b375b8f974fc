/**
 * Whether a request may run: what it takes at most is reckoned, all its limits are asked at once, and
 * what is admitted is set aside for it. Nothing has gone to an upstream before this.
 * Knows no engine; `limits/` says which limits there are, the ledger how they stand.
 */
import type { ChatRequest } from '../chat/request.js'
import { GatewayError } from '../errors.js'
import type { UsageRow } from '../ledger/row.js'
import type { Decision, Limiter, Wish } from '../limits/limiter.js'
import { claimsOf, needsOf, NO_LIMITS, type Claim, type Limit } from '../limits/rules.js'
import { rateHeaders, refusalOf, type LimitKind } from '../limits/standing.js'
import type { Metrics } from '../metrics/hops.js'
import { dearerPrice } from '../ledger/price.js'
import { outputFor, reckon, shortened, withOutput, type Reckoning } from './bounds.js'
import type { Exchange } from './exchange.js'
import type { Target } from './generation.js'
import type { Call } from './receive.js'
import { unsettledRow } from './unsettled.js'

/** What a request is admitted with. */
export interface Admission {
  readonly limiter: Limiter
  readonly metrics: Metrics
}

/** A request before it is admitted. */
interface Candidate {
  readonly x: Exchange
  readonly call: Call
  readonly model: string
  readonly modelName: string
  readonly limits: readonly Limit[]
  readonly reckoning: Reckoning
}

/**
 * The call, admitted: as it was, or with a maximum of tokens where it named none and its budget cannot
 * pay for the longest answer. At once where nothing limits it. Throws `GatewayError`: `rate_limited`,
 * `forbidden` for a model of unknown price, `malformed_request` where its cost has no bound,
 * `store_unavailable` where a budget cannot be judged.
 */
export function limit(
  x: Exchange,
  call: Call,
  target: Target,
  model: string,
  admission: Admission,
): Call | Promise<Call> {
  const { identity, generation } = x
  if (identity === null) throw new GatewayError('bug', 'A request without a key was to be limited.')
  const upstream = target.upstream.config.name
  const asked = call.request.model
  const modelName = generation.limitedAs(asked, target)
  const limits = generation.limits.of({ identity, model: asked, modelName, upstream })
  if (limits === NO_LIMITS) {
    x.lease = admission.limiter.note(new Unlimited(x, call.request, target, model, modelName))
    return call
  }
  const reckoning = reckoningOf(x, call.request, target, model)
  return admit({ x, call, model, modelName, limits, reckoning }, admission)
}

const NO_DEMANDS: Wish['demands'] = []

/**
 * What a request wants that nothing limits. Few run for so long that the ledger has to hear of them; what
 * the others may use at most, for which a prompt has to be counted, is never reckoned.
 */
class Unlimited implements Wish {
  readonly requestId: string
  readonly accountId: string
  readonly demands = NO_DEMANDS
  private readonly x: Exchange
  private readonly request: ChatRequest
  private readonly target: Target
  private readonly model: string
  private readonly modelName: string

  constructor(x: Exchange, request: ChatRequest, target: Target, model: string, modelName: string) {
    this.requestId = x.id
    this.accountId = x.accountId ?? ''
    this.x = x
    this.request = request
    this.target = target
    this.model = model
    this.modelName = modelName
  }

  get unsettled(): UsageRow {
    const { x, request, target, model, modelName } = this
    return unsettledRow(x, modelName, reckoningOf(x, request, target, model))
  }
}

function reckoningOf(
  { generation }: Exchange,
  request: ChatRequest,
  target: Target,
  model: string,
): Reckoning {
  const usual = generation.prices.find(target.upstream.config.name, model, null)
  const price = usual === null ? null : dearerPrice(usual, tierAsked(request, target))
  return reckon(request, generation.facts(model), price)
}

async function admit(candidate: Candidate, admission: Admission): Promise<Call> {
  const { x, call } = candidate
  const beganMs = performance.now()
  try {
    let claims = claimed(candidate)
    let decision = await decide(candidate, claims, admission)
    let admitted = call
    const output = decision.lease !== null ? null : affordable(candidate, claims, decision)
    if (output !== null) {
      // The second question is asked by those alone whose budget is nearly spent.
      const { reckoning, model } = candidate
      admitted = withOutput(call, output, reckoning, x.generation.facts(model))
      const shorter = { ...candidate, reckoning: shortened(reckoning, output) }
      claims = claimed(shorter)
      decision = await decide(shorter, claims, admission)
    }
    if (decision.lease === null) throw refused(x, claims, decision, admission.metrics)
    // What was set aside for a client that has left is freed where the exchange ends.
    x.cancellation.check()
    return admitted
  } finally {
    x.facts.admitMs = performance.now() - beganMs
  }
}

async function decide(
  candidate: Candidate,
  claims: readonly Claim[],
  { limiter }: Admission,
): Promise<Decision> {
  const decision = await limiter.admit(wishOf(candidate, claims))
  candidate.x.lease = decision.lease
  candidate.x.rateHeaders = rateHeaders(claims, decision.standings)
  return decision
}

/** The vendor's tier that the upstream will be asked for; null where it is asked for none. */
function tierAsked(request: ChatRequest, { dialect, upstream }: Target): string | null {
  const isDropped = upstream.config.quirks.drop.includes('service_tier')
  // Anthropic's has none that could be asked for.
  return dialect === 'anthropic' || isDropped ? null : (request.serviceTier ?? null)
}

function claimed({ x, limits, model, reckoning }: Candidate): Claim[] {
  const needs = needsOf(limits)
  const { limiting } = x.generation.snapshot.config
  return claimsOf(limits, {
    tokens: needs.tokens ? likelyTokens(reckoning, limiting.assumedOutputTokens) : 0,
    nanoUsd: needs.money ? mostMoney(reckoning, model, limiting.unknownPrice) : 0,
  })
}

/** An estimate of the prompt, and the longest answer that the client allows. */
function likelyTokens({ likelyInput, output, isOpen }: Reckoning, assumed: number): number {
  return likelyInput + (isOpen ? Math.min(assumed, output ?? assumed) : (output ?? assumed))
}

/** Throws where a budget could not tell what it would spend. */
function mostMoney(
  { nanoUsd, output, isPriced }: Reckoning,
  model: string,
  policy: 'refuse' | 'allow',
): number {
  if (nanoUsd !== null) return nanoUsd
  if (isPriced && output === null) {
    throw new GatewayError(
      'malformed_request',
      `A budget applies, and how long an answer of '${model}' may be is not known: set max_completion_tokens.`,
      { param: 'max_completion_tokens' },
    )
  }
  if (policy === 'allow') return 0
  throw new GatewayError(
    'forbidden',
    `A budget applies, and the price of '${model}' is not known, or not that of the service_tier asked for: ask for another, or have the price added to the catalogue.`,
    { param: 'model' },
  )
}

/** The longest answer that what is left of the budgets can pay, where nothing else is in the way. */
function affordable(
  { reckoning }: Candidate,
  claims: readonly Claim[],
  { closed, standings }: Decision,
): number | null {
  if (!reckoning.isOpen || closed) return null
  let left = Number.POSITIVE_INFINITY
  for (const [index, { demand }] of claims.entries()) {
    const standing = standings[index]
    if (standing === undefined) return null
    if (demand.kind === 'usd_day' || demand.kind === 'usd_month') {
      left = Math.min(left, standing.remaining)
    } else if (standing.retryAfterMs !== 0) {
      return null
    }
  }
  return Number.isFinite(left) ? outputFor(reckoning, left) : null
}

/** The error of a request that was not admitted; notes the rule. Throws if the exchange is cancelled. */
export function refused(
  x: Exchange,
  claims: readonly Claim[],
  { closed, standings }: Decision,
  metrics: Metrics,
): GatewayError {
  x.cancellation.check()
  const { kind, error, limit } = refusalOf(claims, standings)
  x.facts.limit = limit
  metrics.limited(kind satisfies LimitKind)
  if (!closed) return error
  return new GatewayError('store_unavailable', 'The budget cannot be checked now; try again.', {
    retryAfterSeconds: error.wire.retryAfterSeconds ?? 1,
  })
}

function wishOf({ x, modelName, reckoning }: Candidate, claims: readonly Claim[]): Wish {
  return {
    requestId: x.id,
    accountId: x.accountId ?? '',
    demands: claims.map(({ demand }) => demand),
    unsettled: unsettledRow(x, modelName, reckoning),
  }
}
