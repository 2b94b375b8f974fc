/**
 * Serves native requests: requests to an upstream's own endpoints, which are passed through without
 * translation. The request is authenticated already.
 */
import { GatewayError } from '../../errors.js'
import type { Limiter } from '../../limits/limiter.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import { AttemptResult, NOTHING_SENT } from '../attempts/attempt-result.js'
import type { BodyMemory } from '../bodies/body-memory.js'
import type { Deadlines } from '../in-flight/timeout-timer.js'
import type { Exchange } from '../client-exchange.js'
import type { Results } from '../observe/phase-results.js'
import { assertRecordable } from '../phases/admit.js'
import type { Authenticated } from '../phases/find-client-key.js'
import { Intake } from '../phases/receive.js'
import { NativeAttempt } from './native-attempt.js'
import { guardObjects } from './guard-objects.js'
import { openBody } from './body-streams.js'
import type { OwnedObjects } from '../objects/owned-objects.js'
import { admitNative, nativeTarget, openNative, type NativeCall } from './admit-native.js'
import { NativeDelivery } from './native-run.js'
import { WebSocketAttempt } from './websocket-attempt.js'

/** The services that native requests use. */
export interface NativeServices {
  readonly bodies: BodyMemory
  readonly deadlines: Deadlines
  readonly objects: OwnedObjects
  readonly limiter: Limiter
  readonly metrics: Metrics
  readonly ledgerWriter: { readonly isRefusing: boolean }
}

/** An authenticated native request, and the record of its results. */
export interface NativeRequest {
  readonly authenticated: Authenticated
  readonly results: Results
  /** Writes the ledger entry before the client gets the end of the reply. */
  readonly ending: () => Promise<void> | null
}

/** Serves one request to its end. Rejects with `GatewayError`. */
export async function serveNative(
  x: Exchange,
  { authenticated, results, ending }: NativeRequest,
  services: NativeServices,
): Promise<void> {
  const { identity } = authenticated
  const clientRequestId = results.identified?.clientRequestId ?? null
  const target = nativeTarget(x, identity)
  const candidate = { target, model: '', isFallback: false, latency: null, canary: null }
  results.route = { candidates: [candidate], tookMs: null }
  const call = openNative(x, target)
  const { agent } = target.upstream
  if (agent === null || 'problem' in agent) {
    throw new GatewayError('upstream_unreachable', agent?.problem ?? 'The upstream has no agent.')
  }
  assertRecordable(services.ledgerWriter)
  const intake = new Intake(services.bodies.open(identity.accountId))
  results.intake = intake
  const { upgrade: client } = x
  const source = client === null ? openBody(x, call.method, intake) : null
  // Its error is read when the body is.
  source?.on('error', () => undefined)
  try {
    const { objects } = services
    const { body, replies } = await guardObjects(
      { x, call, owner: identity, objects, held: intake.held },
      source,
    )
    const admission = await admitNative({ x, identity, clientRequestId, target }, services)
    results.admission = admission
    if (admission.kind === 'refused') throw admission.error
    x.limitReservation = admission.limitReservation
    x.cancellation.check()
    const result = new AttemptResult(candidate, [])
    results.sent = { ...NOTHING_SENT, attempts: [result], final: result }
    const delivery = new NativeDelivery()
    results.delivery = delivery
    const { rateHeaders } = admission
    const { deadlines } = services
    const run = { result, intake, delivery, rateHeaders, deadlines, replies, ending }
    const sent = traced(x, call, result)
    if (client !== null)
      results.error = await new WebSocketAttempt(x, sent, { run, client }).send(agent)
    else await new NativeAttempt(x, sent, run).send(agent, { source, body })
  } finally {
    if (source !== null) {
      x.req.unpipe(source)
      source.destroy()
    }
  }
}

/** The request with the headers of its trace in place of the client's. */
function traced({ trace }: Exchange, call: NativeCall, result: AttemptResult): NativeCall {
  result.beganAtMs = performance.now()
  if (trace === null) return call
  const headers = { ...call.headers }
  const list = trace.headers(result)
  for (let index = 0; index < list.length; index += 2)
    headers[list[index] ?? ''] = list[index + 1] ?? ''
  return { ...call, headers }
}
