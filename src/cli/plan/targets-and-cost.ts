/** One of the two configurations that a plan compares: the targets and the cost of a request. */
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import type { Usage } from '../../formats/chat/usage.js'
import { factsFor } from '../../config/catalogue.js'
import type { Catalogue, Config } from '../../config/config.js'
import type { RequestHead } from '../../gateway/report/recent-requests.js'
import { costNanoUsd, tierPrice } from '../../ledger/price.js'
import { Prices } from '../../ledger/find-price.js'
import {
  createRouter,
  modelAt,
  shareOf,
  type RouteTarget,
  type Router,
} from '../../gateway/routing/router.js'

/** A target, and the share of requests for which it is the first choice. */
export interface Destination {
  readonly upstream: string
  /** The model that is requested from the upstream. */
  readonly model: string
  /** 0 to 1; the shares of a request add up to 1. */
  readonly share: number
  readonly target: RouteTarget
}

/** A loaded configuration with its router and prices. */
export class ComparedConfig {
  readonly config: Config
  readonly catalogue: Catalogue
  readonly router: Router
  private readonly prices: Prices

  constructor({ config, catalogue }: { readonly config: Config; readonly catalogue: Catalogue }) {
    this.config = config
    this.catalogue = catalogue
    this.router = createRouter(config)
    this.prices = new Prices(catalogue.models, Object.values(config.upstreams), Date.now())
  }

  /**
   * The targets of the request by weight; empty if no route matches it. Health, stickiness and missing keys
   * are ignored.
   */
  destinations(head: RequestHead): Destination[] {
    const { model, labels, sketch } = head
    const hasImages = sketch.turns.some(([role, ...kinds]) => {
      return (role === 'user' || role === 'tool') && kinds.some((kind) => kind.startsWith('image'))
    })
    const found = this.router.find(model, {
      labels,
      hasImages: () => hasImages,
      hasTools: () => sketch.tools.length > 0,
      promptTokens: () => head.promptTokens,
      plugin: () => false,
    })
    const targets = (found?.targets ?? []).filter(({ weight }) => weight > 0)
    return targets.map((target) => ({
      upstream: target.upstream.name,
      model: modelAt(target, model),
      share: shareOf(target, targets),
      target,
    }))
  }

  facts(model: string): ModelFacts {
    return factsFor(this.catalogue, model)
  }

  /** The cost of the usage there, in nano-dollars; null if a price is unknown. */
  cost({ upstream, model }: Destination, usage: Usage, tier: string | null): number | null {
    const usual = this.prices.find(upstream, model, null)
    const price = usual === null ? null : tierPrice(usual, tier)
    return price === null ? null : costNanoUsd(price, usage)
  }
}
