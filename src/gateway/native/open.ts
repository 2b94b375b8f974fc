/**
 * Whether a native request may run: its path, its key's models, and the limits. Sends nothing.
 */
import { isConfigured } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import { claimsOf, needsOf, NO_LIMITS } from '../../limits/rules.js'
import { rateHeaders } from '../../limits/standing.js'
import type { Exchange } from '../exchange.js'
import { ownHeaders, type Target } from '../generation.js'
import { refused, type Admission } from '../limit.js'
import { unsettledRow } from '../unsettled.js'
import { headersForUpstream } from './headers.js'
import { isOpen, nativePathOf, nativeUrl } from './path.js'

/** A native request that its upstream opens to the key. */
export interface NativeCall {
  readonly target: Target
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string | string[]>>
}

/**
 * Throws `GatewayError`: `unknown_endpoint` for what no rule opens, `forbidden` for a key whose models do not
 * include `native:UPSTREAM`, `upstream_unconfigured`.
 */
export function openNative(x: Exchange): NativeCall {
  const method = x.req.method ?? ''
  const path = nativePathOf(x.path)
  const target = path === null ? null : x.generation.nativeTarget(path.upstream)
  if (path === null || target === null) throw notOpen()
  const { config } = target.upstream
  if (!isOpen(config.native.rules, method, path.segments)) throw notOpen()
  const { allowedModels } = x
  if (allowedModels !== null && !allowedModels.includes(`native:${config.name}`)) {
    throw new GatewayError(
      'forbidden',
      `This API key is not allowed to use native access to "${config.name}"; its list of models must contain "native:${config.name}".`,
    )
  }
  x.facts.target = target
  if (!isConfigured(config)) {
    const message = `The upstream "${config.name}" has no key: ${config.apiKeySource ?? 'api_key'} is not set.`
    throw new GatewayError('upstream_unconfigured', message)
  }
  const { url = '' } = x.req
  const query = url.includes('?') ? url.slice(url.indexOf('?') + 1) : ''
  return {
    target,
    method,
    url: nativeUrl(config, path.segments, query),
    headers: headersForUpstream(x.req.headers, ownHeaders(config, target.egress)),
  }
}

function notOpen(): GatewayError {
  return new GatewayError(
    'unknown_endpoint',
    'No upstream opens this method and path below /native/; see "native" in its configuration.',
  )
}

/**
 * Asks all limits that apply. Throws `GatewayError`: `rate_limited`, `store_unavailable`, or `forbidden` if a budget
 * applies and the upstream has no `native_usd_per_request`.
 */
export async function admitNative(x: Exchange, target: Target, to: Admission): Promise<void> {
  const { identity, generation } = x
  if (identity === null) throw new GatewayError('bug', 'A request without a key was to be limited.')
  const { name, native } = target.upstream.config
  const model = `native:${name}`
  const limits = generation.limits.of({ identity, model, modelName: model, upstream: name })
  const nanoUsd = native.nanoUsdPerRequest
  const unsettled = unsettledRow(x, 'other', { input: 0, output: null, nanoUsd })
  const wish = { requestId: x.id, accountId: x.accountId ?? '', unsettled }
  if (limits === NO_LIMITS) {
    x.lease = to.limiter.note({ ...wish, demands: [] })
    return
  }
  const { unknownPrice } = generation.snapshot.config.limiting
  if (nanoUsd === null && needsOf(limits).money && unknownPrice === 'refuse') {
    throw new GatewayError(
      'forbidden',
      `A budget applies, and the price of a native request is not known: set native_usd_per_request for the upstream "${name}".`,
    )
  }
  const beganMs = performance.now()
  const claims = claimsOf(limits, { tokens: 0, nanoUsd: nanoUsd ?? 0 })
  const demands = claims.map(({ demand }) => demand)
  const decision = await to.limiter.admit({ ...wish, demands })
  x.lease = decision.lease
  x.rateHeaders = rateHeaders(claims, decision.standings)
  x.facts.admitMs = performance.now() - beganMs
  if (decision.lease === null) throw refused(x, claims, decision, to.metrics)
  x.cancellation.check()
}
