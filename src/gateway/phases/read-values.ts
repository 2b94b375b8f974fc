/** Finds the values of the dimensions of a request, such as its run. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Identity } from '../../accounts/account.js'
import type { JsonObject } from '../../base/json.js'
import type { Config } from '../../config/config.js'
import type { DimensionConfig } from '../../config/schema/dimensions-schema.js'
import type { Exchange } from '../client-exchange.js'
import { CalledTools } from '../dimensions/called-tools.js'
import type { LiveValues, RunOfRequest } from '../dimensions/live-values.js'
import { readDimensions } from '../dimensions/read-dimensions.js'

/** An authenticated request; `body` is empty if it is not read. */
export interface UnreadRequest {
  readonly body: JsonObject
  /** It makes a batch, whose lines have bodies of their own. */
  readonly hasLines?: true
}

/** What is read of an exchange, which gets the run. */
interface RequestWithValues extends Pick<
  Exchange,
  'runsAs' | 'batch' | 'run' | 'calledTools' | 'authenticated' | 'identity'
> {
  readonly req: Pick<Exchange['req'], 'headers'>
  readonly cancellation: Pick<Exchange['cancellation'], 'check'>
  readonly generation: { readonly snapshot: { readonly config: Pick<Config, 'dimensions'> } }
}

/** A line of a batch. */
export interface UnreadLine {
  /** With the values of the request that made the batch. */
  readonly identity: Identity
  readonly body: JsonObject
  /** Those of the request that made the batch. */
  readonly headers: IncomingHttpHeaders
}

/**
 * The identity with the dimensions of the request, which limits and the ledger entry get too. A line of a
 * batch has those of its batch where it has none of its own. Rejects with `dimension_required`,
 * `invalid_dimension`, or `run_ended`.
 */
export function readValues(
  x: RequestWithValues,
  { body, hasLines }: UnreadRequest,
  values: LiveValues,
): Identity | Promise<Identity> {
  const { dimensions } = x.generation.snapshot.config
  const { identity } = x
  const { headers } = x.req
  // The playground of the dashboard has no field for a value.
  const isStrict = x.runsAs === null || x.batch !== null
  const refusesMissing = ({ name, places }: DimensionConfig): boolean => {
    if (!isStrict || identity.dimensions?.[name] !== undefined) return false
    return hasLines !== true || places.every(({ kind }) => kind !== 'body')
  }
  const found = readDimensions(dimensions, { headers, body, claims: identity.claims, refusesMissing })
  const begun = (run: RunOfRequest): void => {
    x.run = run
    x.calledTools = new CalledTools()
  }
  const own = distinguish(identity, found, { values, begun })
  if (!(own instanceof Promise)) return known(own, x)
  return own.then((distinguished) => {
    x.cancellation.check()
    return known(distinguished, x)
  })
}

function known(identity: Identity, x: Pick<Exchange, 'authenticated'>): Identity {
  const { authenticated } = x
  if (authenticated !== null) x.authenticated = { identity, tookMs: authenticated.tookMs }
  return identity
}

/** The identity with the dimensions of a line that a vendor runs. Rejects as `readValues`. */
export function readValuesOfLine(
  { identity, body, headers }: UnreadLine,
  dimensions: readonly DimensionConfig[],
  values: LiveValues,
): Identity | Promise<Identity> {
  const refusesMissing = ({ name }: DimensionConfig): boolean => identity.dimensions?.[name] === undefined
  const found = readDimensions(dimensions, { headers, body, claims: identity.claims, refusesMissing })
  return distinguish(identity, found, { values, begun: () => undefined })
}

function distinguish(
  identity: Identity,
  found: Readonly<Record<string, string>>,
  { values, begun }: { readonly values: LiveValues; readonly begun: Parameters<LiveValues['identify']>[2] },
): Identity | Promise<Identity> {
  const all = identity.dimensions === undefined ? found : { ...identity.dimensions, ...found }
  return values.identify(identity, all, begun)
}
