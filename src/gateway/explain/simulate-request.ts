/**
 * A request at one target, rendered as the gateway would send it. For `sluice explain` and `sluice plan`.
 * Sends nothing.
 */
import { factsFor } from '../../config/catalogue.js'
import type { Catalogue, Config } from '../../config/config.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import type { DialectName, UpstreamCodec, WireFormat } from '../../formats/dialect.js'
import { upstreamCodecOf } from '../../formats/index.js'
import { refusesLosses } from '../../formats/losses.js'
import { refuseUnjudged } from '../../formats/wire/vendor-rules.js'
import { GatewayError } from '../../errors.js'
import { render, type Rendered } from '../attempts/render-for-upstream.js'
import { formatFor, quirksFor } from '../generation.js'
import type { Call } from '../phases/call.js'
import { modelAt, type RouteTarget } from '../routing/router.js'

/** A client's request, decoded. */
export type SimulatedCall = Pick<Call, 'dialect' | 'wire' | 'raw' | 'members' | 'body' | 'request'>

/** What the target makes of a request. */
export interface SimulatedRequest {
  /** Null if the target refuses it. */
  readonly rendered: Rendered | null
  /** Path and reason of each field that is left out. */
  readonly drops: ReadonlyMap<string, string>
  /**
   * Why it is refused, apart from `on_loss`: `untranslatable`, or `malformed_request` if no upstream of this
   * kind takes it. Null if it is not.
   */
  readonly refusal: GatewayError | null
  /** Whether `on_loss` refuses it because of `drops`. */
  readonly isLossRefused: boolean
}

/** A target for a request, in the format in which it gets it. */
export interface SimulatedTarget {
  readonly dialect: DialectName
  readonly wire: WireFormat
  readonly upstreamCodec: UpstreamCodec
  /** The model that is requested from the upstream. */
  readonly model: string
  readonly facts: ModelFacts
  /** Renders a request of the same kind. */
  simulate(call: SimulatedCall): SimulatedRequest
}

/** The target for this request and others like it; null if its upstream does not support the operation. */
export function simulatedTarget(
  target: RouteTarget,
  { dialect: clientDialect, wire: clientWire, request }: Pick<Call, 'dialect' | 'wire' | 'request'>,
  { config, catalogue }: { readonly config: Config; readonly catalogue: Catalogue },
): SimulatedTarget | null {
  const { upstream, defaults } = target
  const model = modelAt(target, request.model)
  const facts = factsFor(catalogue, model)
  const client = { dialect: clientDialect, wire: clientWire }
  const format = formatFor(target, { request, client, facts })
  if (format === null) return null
  const { dialect, wire } = format
  const upstreamCodec = upstreamCodecOf(wire, upstream, dialect)
  if (upstreamCodec === null) throw new Error(`no format ${wire}`)
  const { name, allowBetas: betas } = upstream
  const { allowSyntheticUser, onLoss } = config
  const quirks = quirksFor(wire, upstream)
  const destination = { name, wire, upstreamCodec, model, facts, quirks, defaults, betas, allowSyntheticUser }
  return {
    ...{ dialect, wire, upstreamCodec, model, facts },
    simulate(call) {
      const drops = new Map<string, string>()
      try {
        refuseUnjudged(call.request, call.wire, [{ wire, dialect: upstream.dialect }])
        const losses = { drop: (path: string, reason: string) => drops.set(path, reason) }
        const rendered = render(call, destination, losses)
        return { rendered, drops, refusal: null, isLossRefused: refusesLosses(onLoss, [...drops.keys()]) }
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error
        return { rendered: null, drops, refusal: error, isLossRefused: false }
      }
    },
  }
}
