/**
 * Decides whether a native request may run: checks its path, the models of its key, and the limits. Sends
 * nothing.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isConfigured, type NativeRule } from '../../config/config.js'
import { GatewayError, type ErrorKind, type WireError } from '../../errors.js'
import { NO_OUTPUT } from '../../formats/chat/output-size.js'
import type { Usage } from '../../formats/chat/usage.js'
import { retryAfterSeconds } from '../../formats/wire/retry-after.js'
import { limitDemandsOf, needsOf } from '../../limits/find-limits.js'
import type { AttemptResult } from '../attempts/attempt-result.js'
import { provisionalEntry } from '../charges/provisional-entry.js'
import type { Exchange } from '../client-exchange.js'
import type { Timeouts } from '../timeouts.js'
import type { DrainedReply } from '../drained-replies.js'
import type { Target } from '../generation.js'
import { admitDemands, type LimitServices } from '../phases/admit.js'
import type { Call } from '../phases/call.js'
import type { Delivery } from '../phases/phase-results.js'
import type { ReplyResult } from '../../formats/translated-stream.js'
import { ownHeaders } from '../upstream-headers.js'
import { unknownWorkPrice } from './charge-native-work.js'
import type { MessageCheck } from './client-messages.js'
import { headersForUpstream } from './native-headers.js'
import { isAllowed, nativePathOf, nativeUrl } from './native-path.js'
import type { ObjectReplies } from './object-replies.js'
import type { RealtimeSession } from './realtime-session.js'

/** A native request that the configuration allows, in the form in which it is sent. */
export interface NativeCall extends NativePlace {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string | string[]>>
  /**
   * Call with the status and headers of the reply: a credential that the upstream refuses or throttles rests.
   */
  readonly replied: (status: number, headers: IncomingHttpHeaders) => void
}

/** The target of a request, and the rules for it. */
export interface NativePlace {
  readonly target: Target
  /** The path at the upstream, decoded. */
  readonly segments: readonly string[]
  /** The rules that allow it. */
  readonly rules: readonly NativeRule[]
  /** Maximum size of the body. */
  readonly maxBytes: number
  /** It came at a path of the gateway that needs no native access: it is free, and no guardrail reads it. */
  readonly isOfClients: boolean
}

/**
 * The place of a native request. Throws `GatewayError`: `unknown_endpoint` if no rule allows the path,
 * `forbidden` if the models of the key do not include `native:UPSTREAM`.
 */
export function nativePlace(x: Exchange): NativePlace {
  const { models } = x.identity
  const { upstreams, server } = x.generation.snapshot.config
  const path = nativePathOf(x.path, (name) => upstreams[name]?.platform?.name === 'bedrock')
  const target = path === null ? null : x.generation.nativeTarget(path.upstream)
  if (path === null || target === null) throw noNativeRule()
  const { config } = target.upstream
  const { segments } = path
  const method = x.req.method ?? ''
  const rules = config.native.rules.filter((rule) => isAllowed([rule], method, segments))
  if (rules.length === 0) throw noNativeRule()
  if (models !== null && !models.includes(`native:${config.name}`)) {
    throw new GatewayError(
      'forbidden',
      `This API key is not allowed to use native access to "${config.name}"; its list of models must contain "native:${config.name}".`,
    )
  }
  return { target, segments, rules, maxBytes: server.maxBodyBytes, isOfClients: false }
}

/** The request in the form in which it is sent. Throws `upstream_unconfigured`. */
export function openNative(x: Exchange, place: NativePlace): NativeCall {
  const { accountId } = x.identity
  const { target, segments } = place
  const { config } = target.upstream
  if (!isConfigured(config)) {
    const message = `The upstream "${config.name}" has no key: ${config.apiKeySource ?? 'api_key'} is not set.`
    throw new GatewayError('upstream_unconfigured', message)
  }
  const { credentials } = x.generation.states.of(config.name)
  const { index, key } = credentials.next(new Set(), null) ?? { index: 0, key: null }
  const sinceMs = Date.now()
  const { url = '', method = '' } = x.req
  const query = url.includes('?') ? url.slice(url.indexOf('?') + 1) : ''
  return {
    ...place,
    method,
    url: nativeUrl(config, segments, query),
    headers: headersForUpstream(x.req.headers, ownHeaders(config, target.upstreamCodec, key), accountId),
    replied: (status, headers) => {
      if (status !== 401 && status !== 403 && status !== 429) return
      // The next request has new credentials.
      if (status === 401) void target.upstream.authorizer?.renewed(sinceMs)
      const seconds = retryAfterSeconds(headers)
      credentials.refused(index, status, seconds === undefined ? null : seconds * 1_000)
    },
  }
}

function noNativeRule(): GatewayError {
  return new GatewayError(
    'unknown_endpoint',
    'No upstream opens this method and path below /native/; see "native" in its configuration.',
  )
}

/** What a native request may cost. */
interface NativeCost {
  readonly isOfClients: boolean
  /** The maximum cost of a reply of a WebSocket; null: it is unknown; absent for other requests. */
  readonly replyNanoUsd?: number | null
}

/**
 * Checks all limits that apply. Refuses with `rate_limited`, `store_unavailable`, or `forbidden` if a budget
 * applies and the upstream has no `native_usd_per_request`.
 */
export async function admitNative(
  x: Exchange,
  { replyNanoUsd, isOfClients }: NativeCost,
  services: Pick<LimitServices, 'limiter' | 'metrics'>,
): ReturnType<typeof admitDemands> {
  const { generation, identity } = x
  const [{ target }] = x.route.candidates
  const { name, native } = target.upstream.config
  const model = `native:${name}`
  const limits = generation.limits.of({
    identity,
    model,
    strippedModel: model,
    modelName: model,
    upstream: name,
  })
  const perRequest = isOfClients ? 0 : native.nanoUsdPerRequest
  const nanoUsd =
    replyNanoUsd === undefined
      ? perRequest
      : replyNanoUsd === null
        ? null
        : replyNanoUsd + (native.nanoUsdPerRequest ?? 0)
  const provisional = { x, target, request: null, model: null, modelName: 'other' }
  const unsettled = provisionalEntry(provisional, {
    usage: { input: 0 },
    nanoUsd,
    isPriced: nanoUsd !== null,
  })
  const admissionRequest = { requestId: x.id, accountId: identity.accountId, unsettled }
  const { unknownPrice, budgetStatus } = generation.snapshot.config.limiting
  if (nanoUsd === null && needsOf(limits).money && unknownPrice !== 'allow') {
    if (replyNanoUsd === null) {
      throw unknownWorkPrice('the replies of a WebSocket', name, 'the model in its address')
    }
    throw new GatewayError(
      'forbidden',
      `A budget applies, and the price of a native request is not known: set native_usd_per_request for the upstream "${name}", or limiting.unknown_price to allow.`,
    )
  }
  const limitDemands = limitDemandsOf(limits, { tokens: 0, mostTokens: 0, nanoUsd: nanoUsd ?? 0 })
  return admitDemands(admissionRequest, limitDemands, { ...services, budgetStatus })
}

/** The record of a native request while it runs. */
export interface NativeRun {
  readonly result: AttemptResult
  readonly delivery: NativeDelivery
  readonly timeouts: Timeouts
  /** Reads the reply for its objects; null if the objects of the upstream are shared. */
  readonly replies: ObjectReplies | null
  /** Checks what the client of a WebSocket sends; null if all of it may pass. */
  readonly checkMessage: MessageCheck | null
  /** Charges the replies of a WebSocket; null for other requests. */
  readonly session: RealtimeSession | null
  /** The request whose reply guardrails judge; null if it passes as bytes. */
  readonly judged: Call | null
  /** Reads the rest of a refused reply; null if `on_disconnect` does not, or too many are read. */
  readonly drain: () => DrainedReply | null
}

/** The delivery of its reply to the client. */
export class NativeDelivery implements Delivery {
  sentBytes = 0
  readonly chunks = 0
  readonly wholeMs = null
  headMs: number | null = null
  relayMs: number | null = null
  readonly clientWaitMs = 0
  readonly closed = null
}

/** The result of a reply that passed to the client unchanged, for the metrics, the log and the ledger. */
export function nativeReplyResult(status: number, usage: Usage): ReplyResult {
  return {
    outcome: 'complete',
    error: status < 400 ? null : errorOf(status),
    breach: null,
    usage,
    reason: null,
    model: null,
    tier: null,
    lost: [],
    outputSize: NO_OUTPUT,
  }
}

function errorOf(status: number): WireError {
  return { kind: kindOf(status), message: `The upstream replied with status ${status}.` }
}

function kindOf(status: number): ErrorKind {
  if (status === 429) return 'upstream_busy'
  return status < 500 ? 'upstream_rejected' : 'upstream_failed'
}
