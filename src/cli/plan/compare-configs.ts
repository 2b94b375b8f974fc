/**
 * Compares two configurations on recent requests: which requests move, which keys lose a model, which
 * requests cannot be translated, and the cost. Names are those of the command's JSON.
 */
import type { RequestHead } from '../../gateway/report/recent-requests.js'
import type { ComparedConfig, Destination } from './targets-and-cost.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import { ordinaryModel, type DialectName } from '../../formats/dialect.js'
import { upstreamCodecOf, errorFormatOf, isEmbeddings } from '../../formats/index.js'
import { LossList } from '../../formats/losses.js'
import { simulatedTarget } from '../../gateway/explain/simulate-request.js'
import { parseObject } from '../../formats/wire/json/parse-body.js'
import { sampleRequest } from './sample-request.js'

/** Requests for a model that move. `from` null: no route matched them; `to` null: no route matches them. */
export interface Move {
  readonly model: string
  readonly from: FlowTarget | null
  readonly to: FlowTarget | null
  /** Expected number by weight, to a hundredth. */
  readonly requests: number
}

/** A key that used a model without a route in the new configuration. */
export interface LosingKey {
  readonly key_id: string
  readonly account_id: string
  readonly model: string
  readonly requests: number
}

/** A feature of requests that their new target does not support. */
interface Untranslated {
  readonly model: string
  /** The client's format. */
  readonly format: string
  readonly to: FlowTarget
  /** The upstream's dialect; null if it lacks the operation. */
  readonly dialect: string | null
  readonly field: string
  readonly requests: number
}

/** The same, if the request is refused because of it. */
interface Refused extends Untranslated {
  readonly message: string
}

/** The difference between two configurations, for some requests. */
export interface Comparison {
  readonly requests: number
  /** Requests whose targets do not change. */
  readonly unmoved: number
  readonly moves: readonly Move[]
  readonly keys: readonly LosingKey[]
  readonly refused: readonly Refused[]
  readonly lost: readonly Untranslated[]
  readonly cost: CostDifference
}

/** Requests that the gateway refused because of the key or the model: no routes serve them. */
const NEVER_ROUTED = new Set(['forbidden', 'unknown_model'])

/** Compares two configurations on these requests. */
export function compare(
  heads: readonly RequestHead[],
  before: ComparedConfig,
  after: ComparedConfig,
): Comparison {
  const comparing = new RequestComparison(before, after)
  for (const head of heads) {
    if (!NEVER_ROUTED.has(head.outcome)) comparing.add(head)
  }
  return comparing.result()
}

class RequestComparison {
  private readonly before: ComparedConfig
  private readonly after: ComparedConfig
  private readonly costs: Costs
  private requests = 0
  private unmoved = 0
  private readonly moves = new RowCounts<Omit<Move, 'requests'>>()
  private readonly keys = new RowCounts<Omit<LosingKey, 'requests'>>()
  private readonly refused = new RowCounts<Omit<Refused, 'requests'>>()
  private readonly lost = new RowCounts<Omit<Untranslated, 'requests'>>()

  constructor(before: ComparedConfig, after: ComparedConfig) {
    this.before = before
    this.after = after
    this.costs = new Costs(before, after)
  }

  add(head: RequestHead): void {
    const { model, keyId, accountId } = head
    const from = this.before.destinations(head)
    const to = this.after.destinations(head)
    this.requests += 1
    const flows = flowsOf(from, to)
    if (flows.length === 0) this.unmoved += 1
    for (const flow of flows) {
      this.moves.add({ model, from: flow.from, to: flow.to }, flow.share)
    }
    if (from.length > 0 && to.length === 0) {
      this.keys.add({ key_id: keyId, account_id: accountId, model }, 1)
    }
    this.costs.add(head, from, to)
    const known = from.map((destination) => translateHead(head, destination, this.before))
    for (const destination of to) {
      const { upstream, model: requested, share } = destination
      const found = translateHead(head, destination, this.after)
      this.note(head, { found, known, share, to: { upstream, model: requested } })
    }
  }

  /** Adds a feature that the target does not support, unless the current one does not either. */
  private note(
    { model, format }: RequestHead,
    move: {
      readonly found: Translation
      readonly known: readonly Translation[]
      readonly share: number
      readonly to: FlowTarget
    },
  ): void {
    const { found, known, share, to } = move
    const { dialect, losses, refusals } = found
    const change = { model, format, to, dialect }
    for (const { field, message } of refusals) {
      const isKnown = known.some((each) => each.refusals.some((one) => one.field === field))
      if (!isKnown) this.refused.add({ ...change, field, message }, share)
    }
    for (const field of losses) {
      const isKnown = known.some((each) => each.losses.includes(field))
      if (!isKnown) this.lost.add({ ...change, field }, share)
    }
  }

  result(): Comparison {
    return {
      requests: this.requests,
      unmoved: this.unmoved,
      moves: this.moves.rows(),
      keys: this.keys.rows(),
      refused: this.refused.rows(),
      lost: this.lost.rows(),
      cost: this.costs.result(),
    }
  }
}

/** An upstream, and the model that is requested from it. */
export interface FlowTarget {
  readonly upstream: string
  readonly model: string
}

/** A share of a request that moves from one target to another; null: no route matches it. */
interface Flow {
  readonly from: FlowTarget | null
  readonly to: FlowTarget | null
  /** 0 to 1. */
  readonly share: number
}

/** Smaller differences of weights are rounding. */
const LEAST_SHARE = 1e-9

/** The flows of one request, without the share that does not move. */
function flowsOf(before: readonly Destination[], after: readonly Destination[]): Flow[] {
  if (before.length === 0 && after.length === 0) return []
  if (before.length === 0) return after.map((to) => ({ from: null, to: flowTargetOf(to), share: to.share }))
  if (after.length === 0) {
    return before.map((from) => ({ from: flowTargetOf(from), to: null, share: from.share }))
  }
  const gaining = sharesOf(after)
  const losing = sharesOf(before)
  for (const [name, one] of losing) {
    const other = gaining.get(name)
    if (other === undefined) continue
    const same = Math.min(one.share, other.share)
    one.share -= same
    other.share -= same
  }
  return transport([...losing.values()], [...gaining.values()])
}

interface Share {
  readonly target: FlowTarget
  share: number
}

function sharesOf(destinations: readonly Destination[]): Map<string, Share> {
  const shares = new Map<string, Share>()
  for (const destination of destinations) {
    const target = flowTargetOf(destination)
    const name = `${target.upstream} ${target.model}`
    const known = shares.get(name)
    if (known === undefined) shares.set(name, { target, share: destination.share })
    else known.share += destination.share
  }
  return shares
}

function flowTargetOf({ upstream, model }: Destination): FlowTarget {
  return { upstream, model }
}

/** Assigns the losses of targets to the gains of others, in order. */
function transport(losing: readonly Share[], gaining: readonly Share[]): Flow[] {
  const flows: Flow[] = []
  for (const from of losing) {
    for (const to of gaining) {
      const share = Math.min(from.share, to.share)
      if (share < LEAST_SHARE) continue
      from.share -= share
      to.share -= share
      flows.push({ from: from.target, to: to.target, share })
    }
  }
  return flows
}

/** The costs of a model's requests, in US dollars. */
interface ModelCost {
  readonly model: string
  readonly before_usd: number
  readonly after_usd: number
}

/** The costs of requests with a known price under both configurations. */
export interface CostDifference {
  readonly before_usd: number
  readonly after_usd: number
  readonly difference_usd: number
  /** Number of counted requests. */
  readonly requests: number
  /** Requests without reported tokens. */
  readonly without_usage: number
  /** Requests with an unknown price under one configuration. */
  readonly without_price: number
  /** Models whose costs differ, the largest difference first. */
  readonly models: readonly ModelCost[]
}

const NANO = 1e9

/** Adds up costs. */
class Costs {
  private readonly before: ComparedConfig
  private readonly after: ComparedConfig
  private readonly models = new Map<string, { before: number; after: number }>()
  private requests = 0
  private withoutUsage = 0
  private withoutPrice = 0

  constructor(before: ComparedConfig, after: ComparedConfig) {
    this.before = before
    this.after = after
  }

  /** Adds a request that moves between these targets, by share. */
  add(head: RequestHead, from: readonly Destination[], to: readonly Destination[]): void {
    if (from.length === 0 || to.length === 0) return
    if (head.usage.input === undefined) {
      this.withoutUsage += 1
      return
    }
    const [before, after] = [expected(head, from, this.before), expected(head, to, this.after)]
    if (before === null || after === null) {
      this.withoutPrice += 1
      return
    }
    this.requests += 1
    const sum = this.models.get(head.model) ?? { before: 0, after: 0 }
    sum.before += before
    sum.after += after
    this.models.set(head.model, sum)
  }

  result(): CostDifference {
    let [before, after] = [0, 0]
    const models: ModelCost[] = []
    for (const [model, sum] of this.models) {
      before += sum.before
      after += sum.after
      if (sum.before === sum.after) continue
      models.push({ model, before_usd: usd(sum.before), after_usd: usd(sum.after) })
    }
    const gap = (one: ModelCost): number => Math.abs(one.after_usd - one.before_usd)
    return {
      before_usd: usd(before),
      after_usd: usd(after),
      difference_usd: usd(after - before),
      requests: this.requests,
      without_usage: this.withoutUsage,
      without_price: this.withoutPrice,
      models: models.sort((a, b) => gap(b) - gap(a)),
    }
  }
}

/** A service tier is specific to a vendor: at another upstream the standard price applies. */
function expected(
  head: RequestHead,
  destinations: readonly Destination[],
  side: ComparedConfig,
): number | null {
  let total = 0
  for (const destination of destinations) {
    const cost = side.cost(destination, head.usage, head.tier) ?? side.cost(destination, head.usage, null)
    if (cost === null) return null
    total += cost * destination.share
  }
  return total
}

function usd(nano: number): number {
  return Math.round(nano) / NANO
}

/** Rows with their number of requests, highest first. */
class RowCounts<Row extends object> {
  private readonly counts = new Map<string, { readonly row: Row; requests: number }>()

  add(row: Row, requests: number): void {
    const name = JSON.stringify(row)
    const known = this.counts.get(name)
    if (known === undefined) this.counts.set(name, { row, requests })
    else known.requests += requests
  }

  /** Rounded to a hundredth of a request: shares of targets may not be whole numbers. */
  rows(): (Row & { readonly requests: number })[] {
    return [...this.counts.values()]
      .map(({ row, requests }) => ({ ...row, requests: Math.round(requests * 100) / 100 }))
      .sort((a, b) => b.requests - a.requests)
  }
}

// The outcome of a request at another upstream: lost fields, and the reason if it is refused. Translates a
// request of the same shape with the gateway's own encoders.

/** Why a request cannot be sent. */
interface Refusal {
  /** The client's field, or a property of the model. */
  readonly field: string
  readonly message: string
}

/** A request at one upstream. */
interface Translation {
  /** Null if the upstream lacks the operation. */
  readonly dialect: DialectName | null
  /** Fields of the client's format that are lost, by path. */
  readonly losses: readonly string[]
  readonly refusals: readonly Refusal[]
}

/** Translates the shape of the request for a destination of a configuration. */
function translateHead(head: RequestHead, to: Destination, side: ComparedConfig): Translation {
  const request = sampleRequest(head)
  const { dialect: clientDialect, wire: clientWire } = head
  const at = simulatedTarget(to.target, { dialect: clientDialect, wire: clientWire, request }, side)
  if (at === null) {
    const message = `the upstream ${to.upstream} has no embeddings`
    return { dialect: null, losses: [], refusals: [{ field: 'model', message }] }
  }
  const { dialect, wire, facts } = at
  const limits = limitsOf(head, request, facts)
  if (isEmbeddings(wire)) return { dialect, losses: [], refusals: limits }
  const body = wire === clientWire ? ownBody(head, request) : {}
  const raw = Buffer.from(JSON.stringify(body))
  const { members } = parseObject(raw)
  const found = at.simulate({ dialect: clientDialect, wire: clientWire, raw, members, body, request })
  const clientName = (path: string): string => errorFormatOf(clientDialect).fieldName?.(path) ?? path
  if (found.refusal !== null) {
    const { message, wire: refusal } = found.refusal
    return {
      dialect,
      losses: [],
      refusals: [...limits, { field: clientName(refusal.param ?? 'body'), message }],
    }
  }
  const losses = new LossList()
  for (const path of found.drops.keys()) losses.drop(path)
  const lost = losses.paths.map(clientName)
  if (!found.isLossRefused) return { dialect, losses: lost, refusals: limits }
  const refused = lost.map((field) => ({ field, message: 'on_loss is reject' }))
  return { dialect, losses: [], refusals: [...limits, ...refused] }
}

/** The request in its own format, for an upstream that receives the client's own bytes. */
function ownBody(head: RequestHead, request: ChatRequest): ReturnType<typeof parseObject>['value'] {
  const upstreamCodec = upstreamCodecOf(head.wire)
  if (upstreamCodec === null) return {}
  const facts = ordinaryModel(head.model, head.dialect)
  return upstreamCodec.encodeRequest({ ...request, native: [] }, facts, { drop: () => undefined })
}

/** Limits of the model in the catalogue, which the provider and not the translation enforces. */
function limitsOf(head: RequestHead, request: ChatRequest, facts: ModelFacts): Refusal[] {
  const found: Refusal[] = []
  const refuse = (field: string, what: string): void => {
    found.push({ field, message: `${facts.id} ${what} (catalogue)` })
  }
  const kinds = head.sketch.turns.flatMap((turn) => turn.slice(1))
  const has = (kind: string): boolean => kinds.some((each) => each.startsWith(kind))
  if (facts.vision === false && has('image')) refuse('images', 'does not support images')
  if (facts.audioInput === false && has('audio')) refuse('audio', 'does not support audio')
  if (facts.tools === false && request.tools.length > 0) refuse('tools', 'does not support tools')
  const { contextWindow } = facts
  if (contextWindow !== undefined && head.promptTokens > contextWindow) {
    refuse('prompt', `has a context window of ${contextWindow} tokens`)
  }
  return found
}
