/** Finds the values of the dimensions of a request, such as its run. */
import type { Identity } from '../../accounts/account.js'
import type { JsonObject } from '../../base/json.js'
import type { Exchange } from '../client-exchange.js'
import type { LiveValues } from '../dimensions/live-values.js'
import { readDimensions } from '../dimensions/read-dimensions.js'
import type { Results } from './phase-results.js'

/** An authenticated request; `body` is empty if it is not read. */
export interface UnreadRequest {
  readonly identity: Identity
  readonly body: JsonObject
  readonly results: Results
}

/**
 * The identity with the dimensions of the request, which limits and the ledger entry get too. Rejects with
 * `dimension_required`, `invalid_dimension`, or `run_ended`.
 */
export async function readValues(
  x: Exchange,
  { identity, body, results }: UnreadRequest,
  values: LiveValues,
): Promise<Identity> {
  const { dimensions } = x.generation.snapshot.config
  const { claims, accountId } = identity
  // The playground of the dashboard has no field for a value.
  const isStrict = x.runsAs === null
  const found = readDimensions(dimensions, { headers: x.req.headers, body, claims, isStrict })
  const { dimensions: own } = await values.identify(accountId, found, (run) => void (x.run = run))
  x.cancellation.check()
  const distinguished = { ...identity, dimensions: own }
  if (results.authenticated !== null)
    results.authenticated = { ...results.authenticated, identity: distinguished }
  return distinguished
}
