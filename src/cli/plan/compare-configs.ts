/**
 * Compares two configurations on recent requests: which requests move, which keys lose a model, which
 * requests cannot be translated, and the cost. Names are those of the command's JSON.
 */
import type { RequestHead } from '../../gateway/observe/recent-requests.js'
import { Costs, type CostDifference } from './compare-costs.js'
import { flowsOf, type FlowTarget } from './moved-shares.js'
import type { ComparedConfig } from './compared-config.js'
import { RowCounts } from './count-rows.js'
import { translateHead, type Translation } from './check-and-translate-request.js'

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
export interface Untranslated {
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
export interface Refused extends Untranslated {
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
