/**
 * Serves native requests: requests to an upstream's own endpoints, which are passed through without
 * translation. The request is authenticated already.
 */
import { GatewayError } from '../../errors.js'
import type { Limiter } from '../../limits/limiter.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import { AttemptResult, NOTHING_SENT } from '../attempts/attempt-result.js'
import { BodyMemory } from '../bodies/body-memory.js'
import type { Deadlines } from '../in-flight/timeout-timer.js'
import type { Exchange } from '../client-exchange.js'
import type { Results } from '../observe/phase-results.js'
import { assertRecordable } from '../phases/admit.js'
import type { Authenticated } from '../phases/find-client-key.js'
import { Intake } from '../phases/receive.js'
import { NativeAttempt } from './native-attempt.js'
import { admitNative, nativeTarget, openNative, type NativeCall } from './admit-native.js'
import { NativeDelivery } from './native-run.js'
import { WebSocketAttempt } from './websocket-attempt.js'

/** The services that native requests use. */
export interface NativeServices {
  readonly deadlines: Deadlines
  readonly limiter: Limiter
  readonly metrics: Metrics
  readonly ledgerWriter: { readonly isRefusing: boolean }
}

/** Native bodies are not buffered, so their memory is not limited. */
const NOT_COUNTED = new BodyMemory(Number.POSITIVE_INFINITY)

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
  const admission = await admitNative({ x, identity, clientRequestId, target }, services)
  results.admission = admission
  if (admission.kind === 'refused') throw admission.error
  x.limitReservation = admission.limitReservation
  x.cancellation.check()
  const result = new AttemptResult(candidate, [])
  results.sent = { ...NOTHING_SENT, attempts: [result], final: result }
  const intake = new Intake(NOT_COUNTED.open(''))
  results.intake = intake
  const delivery = new NativeDelivery()
  results.delivery = delivery
  const { rateHeaders } = admission
  const { deadlines } = services
  const run = { result, intake, delivery, rateHeaders, deadlines, ending }
  const sent = traced(x, call, result)
  const { upgrade: client } = x
  if (client === null) await new NativeAttempt(x, sent, run).send(agent)
  else results.error = await new WebSocketAttempt(x, sent, { run, client }).send(agent)
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
