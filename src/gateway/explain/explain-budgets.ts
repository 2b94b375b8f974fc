/**
 * How budgets count a model under a configuration: for `sluice check` and `sluice explain`.
 */
import { factsAt } from '../../config/catalogue.js'
import type { Catalogue, Config, UpstreamConfig } from '../../config/config.js'
import { isComplete, isOutputFree, priceFor } from '../../ledger/price.js'
import { limitsMoney } from '../../limits/find-limits.js'
import { Prices } from '../../ledger/find-price.js'
import { modelAt, createRouter } from '../routing/router.js'

/** The values that a budget counts a model with. */
export interface BudgetTerms {
  /** `known`: its price. Otherwise the value of `limiting.unknown_price`. */
  readonly price: 'known' | 'assume' | 'allow' | 'refuse'
  /** Maximum tokens of a reply; null if unknown. */
  readonly reply_tokens: number | null
  /** Prompt tokens that are reserved for input that the gateway cannot see; null: such requests get 403. */
  readonly unseen_tokens: number | null
  /** Whether reply tokens are free, so that no maximum is needed. */
  readonly free_replies: boolean
  /** Whether no request can cost more than the budget reserves for it. */
  readonly bounded: boolean
}

/** A model that a budget cannot bound; `llama*` means a prefix. */
interface Unbounded {
  readonly model: string
  readonly upstream: string
  readonly terms: BudgetTerms
}

/** The values for all models of one configuration. */
export class Budgets {
  private readonly config: Config
  private readonly catalogue: Catalogue
  private readonly prices: Prices

  constructor(config: Config, catalogue: Catalogue) {
    this.config = config
    this.catalogue = catalogue
    this.prices = new Prices(catalogue.models, Object.values(config.upstreams), Date.now())
  }

  /** The values for a model of an upstream; for one of `operations` those of its first. */
  terms(upstream: UpstreamConfig, model: string): BudgetTerms {
    const { unknownPrice, unknownLength, unseenInput } = this.config.limiting
    const facts = factsAt(this.catalogue, upstream, model)
    const { contextWindow, operations: [kind] = [] } = facts
    const task = kind === undefined ? {} : { task: { kind } }
    const found = priceFor(this.prices.find(upstream.name, model, null), task)
    const price = found !== null && isComplete(found) ? found : null
    const draws = kind === 'images' || kind === 'image_edits'
    const maxOutputTokens = draws ? facts.maxImageTokens : facts.maxOutputTokens
    const isFree = price !== null && isOutputFree(price)
    return {
      price: price === null ? unknownPrice : 'known',
      reply_tokens: maxOutputTokens ?? null,
      unseen_tokens: unseenInput === 'refuse' ? null : (contextWindow ?? null),
      free_replies: isFree,
      bounded:
        price === null
          ? unknownPrice === 'refuse'
          : isFree || maxOutputTokens !== undefined || unknownLength === null,
    }
  }

  /**
   * The models that a budget cannot bound: ids of the catalogue and of exact routes, and prefixes of routes
   * without a model in the catalogue. Each with its upstream and values, in order.
   */
  unbounded(): Unbounded[] {
    const router = createRouter(this.config)
    const names = new Set(this.catalogue.models.map(({ id }) => id))
    const prefixes = new Set<string>()
    for (const { match } of this.config.routes) {
      if ('model' in match) names.add(match.model)
      else if (![...names].some((id) => id.startsWith(match.prefix))) prefixes.add(match.prefix)
    }
    const unbounded = (id: string, model: string): Unbounded[] => {
      const found = new Map<string, Unbounded>()
      for (const route of router.all(id)) {
        for (const target of [...route.targets, ...route.fallback]) {
          const terms = this.terms(target.upstream, modelAt(target, id))
          const { name } = target.upstream
          if (!terms.bounded) found.set(name, { model, upstream: name, terms })
        }
      }
      return [...found.values()]
    }
    return [
      ...[...names].flatMap((id) => unbounded(id, id)),
      ...[...prefixes].flatMap((prefix) => unbounded(prefix, `${prefix}*`)),
    ]
  }
}

/** Whether the file has a budget, under `limits` or in a plan; keys may have their own. */
export function hasBudget({ limits, plans }: Config): boolean {
  return (
    limits.some(({ amounts }) => limitsMoney(amounts)) ||
    Object.values(plans).some((plan) => limitsMoney(plan.limits))
  )
}

/** The values as text. */
export function termsText(terms: BudgetTerms, { limiting }: Config): string {
  const { assumedPrice } = limiting
  const price = {
    known: 'its price is known',
    assume: `its price is not known: budgets count USD ${assumedPrice.input} in, ${assumedPrice.output} out per million tokens (limiting.assumed_price)`,
    allow: 'its price is not known: budgets count nothing (limiting.unknown_price: allow)',
    refuse: 'its price is not known: 403 under a budget (limiting.unknown_price: refuse)',
  }[terms.price]
  return `${price}${lengthText(terms, limiting.unknownLength)}${unseenText(terms, limiting)}`
}

function unseenText(terms: BudgetTerms, { unseenInput }: Config['limiting']): string {
  if (terms.price === 'allow' || terms.price === 'refuse') return ''
  const { unseen_tokens: tokens } = terms
  if (tokens !== null) {
    return `; ${tokens} prompt tokens if the gateway cannot see all input (limiting.unseen_input)`
  }
  const why = unseenInput === 'refuse' ? 'limiting.unseen_input: refuse' : 'its context window is not known'
  return `; 403 if the gateway cannot see all input (${why})`
}

function lengthText(terms: BudgetTerms, unknownLength: number | null): string {
  if (terms.price === 'allow' || terms.price === 'refuse') return ''
  if (terms.free_replies) return ' and the tokens of its replies are free'
  if (terms.reply_tokens !== null) return `; budgets reserve ${terms.reply_tokens} reply tokens`
  const unknown = '; its longest reply is not known:'
  if (unknownLength === null) {
    return `${unknown} 400 under a budget without a maximum in the request (limiting.unknown_length: refuse)`
  }
  return `${unknown} budgets reserve ${unknownLength} tokens (limiting.unknown_length)`
}
