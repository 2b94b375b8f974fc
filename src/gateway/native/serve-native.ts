/**
 * Serves native requests: requests to an upstream's own endpoints, which are passed through without
 * translation. The request is authenticated already.
 */
import type { Agent } from 'node:http'
import { Readable } from 'node:stream'
import { gatewayError, GatewayError } from '../../errors.js'
import { readNative } from '../../http/native-proxy.js'
import type { LedgerWriter } from '../../ledger/ledger-writer.js'
import type { Limiter } from '../../limits/limiter.js'
import type { Logger } from '../../observe/log.js'
import type { Metrics } from '../../observe/metrics/metrics.js'
import { AttemptResult, SendResult } from '../attempts/attempt-result.js'
import type { BodyMemory, HeldMemory } from '../body-memory.js'
import type { SocketPlaces } from '../socket-places.js'
import type { Timeouts } from '../timeouts.js'
import { DrainedReply, type DrainedReplySlots } from '../drained-replies.js'
import type { Exchange } from '../client-exchange.js'
import type { RequestValues } from '../dimensions/request-values.js'
import { assertRecordable } from '../phases/admit.js'
import { directRoute } from '../phases/route.js'
import { Intake } from '../phases/call.js'
import { bodyMembers, mayBeInBody } from './body-values.js'
import { NativeAttempt, openBody } from './native-attempt.js'
import { chargeBatch, planBatch, releaseBatch, type BatchFacts, type ReadResults } from './batches.js'
import {
  admitNative,
  nativePlace,
  openNative,
  NativeDelivery,
  type NativeCall,
  type NativePlace,
} from './admit-native.js'
import { headersForReading } from './native-headers.js'
import { judgeNative } from './judge-native.js'
import { guardObjects } from './check-objects.js'
import type { Metered } from './charge-native-work.js'
import type { ObjectReplies } from './object-replies.js'
import { RealtimeSession } from './realtime-session.js'
import { transportError } from '../transport-errors.js'
import type { OwnedObjects } from '../objects/owned-objects.js'
import { filesPlace, isAtUpstream } from './vendor-files.js'
import { WebSocketAttempt } from './websocket-attempt.js'

/** The services that native requests use. */
interface NativeServices {
  readonly bodies: BodyMemory
  readonly socketPlaces: SocketPlaces
  readonly timeouts: Timeouts
  readonly drainedReplySlots: DrainedReplySlots
  readonly objects: OwnedObjects
  readonly limiter: Limiter
  readonly values: RequestValues
  readonly metrics: Metrics
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly ledgerWriter: Pick<LedgerWriter, 'isRefusing' | 'settle'>
}

/** Serves one authenticated request to its end. Rejects with `GatewayError`. */
export async function serveNative(x: Exchange, services: NativeServices): Promise<void> {
  const { identity: authorized } = x
  const place = placeOf(x)
  const { target, isOfClients } = place
  const usual = { defaults: null, isFallback: false, latency: null, canary: null }
  const candidate = { target, model: '', ...usual }
  x.routed = directRoute(candidate)
  const call = openNative(x, place)
  const { agent } = target.upstream
  if ('problem' in agent) throw new GatewayError('upstream_unreachable', agent.problem)
  assertRecordable(services.ledgerWriter)
  const intake = new Intake(services.bodies.open(authorized.accountId))
  x.intake = intake
  const { upgrade: client } = x
  const { maxConnections } = x.generation.snapshot.config.server
  const release = client === null ? null : services.socketPlaces.take(authorized, maxConnections)
  const arriving = client === null ? openBody(x, call, intake) : null
  // Its error is read when the body is.
  arriving?.on('error', () => undefined)
  try {
    const source = await withBodyValues(x, arriving, services)
    const metered = { x, target }
    const session = client === null ? null : openSession(x, call, metered, services)
    const { objects } = services
    const guarded = await guardObjects({ x, call, metered, objects, held: intake.held }, source)
    const cost = session === null ? {} : { replyNanoUsd: session.reservedNanoUsd }
    const admission = await admitNative(x, { ...cost, isOfClients }, services)
    x.admitted = admission
    if (admission.kind === 'refused') throw admission.error
    x.limitReservation = admission.limitReservation
    services.values.admitted(x.identity)
    x.cancellation.check()
    const result = new AttemptResult(candidate, [])
    if (isOfClients) result.nativeNanoUsd = 0
    const batch = guarded.batch === null ? null : await planBatch(metered, guarded.batch, services)
    const sent = new SendResult()
    x.attempts = sent
    sent.began(result)
    const delivery = new NativeDelivery()
    x.delivered = delivery
    const { timeouts } = services
    const { replies, checkMessage } = guarded
    const { held } = intake
    const { metrics, log } = services
    const unjudged = { call, body: guarded.body, reply: null }
    const judging = { call, body: guarded.body, metrics, log }
    const judged = (client === null && !isOfClients ? await judgeNative(x, judging) : null) ?? unjudged
    const { call: signed, body } = await authorize(judged.call, judged.body, held)
    x.cancellation.check()
    const reading = { replies, checkMessage, session, judged: judged.reply }
    const drain = (): DrainedReply | null => drainedReplyOf(result, x, services)
    const run = { result, delivery, timeouts, ...reading, drain }
    const last = traced(x, signed, result)
    if (replies !== null) watchBatches(replies, batch, { call: last, agent, metered, services })
    try {
      if (client === null) await new NativeAttempt(x, last, run).send(agent, { source: arriving, body })
      else x.error = await new WebSocketAttempt(x, last, { run, client }).send(agent)
    } finally {
      if (session !== null) await endSession(session, result)
      const isRefused = !result.wasSent || (result.status ?? 0) >= 400
      if (batch !== null && isRefused) await releaseBatch(metered, batch, services)
    }
  } finally {
    release?.()
    if (arriving !== null) {
      x.req.unpipe(arriving)
      arriving.destroy()
    }
  }
}

/** The target by the operator's rules, or that of files of a vendor's clients. */
function placeOf(x: Exchange): NativePlace {
  const dialect = x.identified?.dialect ?? null
  return dialect !== null && isAtUpstream(dialect) ? filesPlace(x, dialect) : nativePlace(x)
}

/** The body to send, after the values of dimensions in it were read. */
async function withBodyValues(
  x: Exchange,
  arriving: Readable | null,
  { values }: NativeServices,
): Promise<Readable | null> {
  const { dimensions } = x.generation.snapshot.config
  if (arriving === null || !mayBeInBody(x, dimensions)) return arriving
  const { body, source } = await bodyMembers(arriving, x.held)
  await values.read(x, { body })
  return source
}

/** The rest of a reply that a guardrail refused; null if it is not read. */
function drainedReplyOf(
  result: AttemptResult,
  x: Exchange,
  { drainedReplySlots }: Pick<NativeServices, 'drainedReplySlots'>,
): DrainedReply | null {
  const drained = DrainedReply.of(result, { x, drainedReplySlots })
  if (drained !== null) x.attempts?.drain(drained.ended)
  return drained
}

/**
 * The request with the credentials of the gateway's identity. A signature covers the whole body, which is
 * read first; other bodies stream. Rejects with `upstream_credential`.
 */
async function authorize(
  call: NativeCall,
  body: Readable,
  held: HeldMemory,
): Promise<{ readonly call: NativeCall; readonly body: Readable }> {
  const { authorizer } = call.target.upstream
  if (authorizer === null) return { call, body }
  const { method, url, headers } = call
  const list = Object.entries(headers).flatMap(([name, value]) => [name, [value].flat().join(', ')])
  const bytes = authorizer.readsBody && BODIES.has(method) ? await bytesOf(body, held) : null
  const request = { method, path: url.pathname + url.search, headers: list, body: bytes }
  let signed: readonly string[]
  try {
    signed = await authorizer.headers(request)
  } catch (cause) {
    throw gatewayError(transportError(cause, 'connecting'), cause)
  }
  const added: Record<string, string> = {}
  for (let at = list.length; at < signed.length; at += 2) {
    added[signed[at] ?? ''] = signed[at + 1] ?? ''
  }
  const authorized = { ...call, headers: { ...headers, ...added } }
  return { call: authorized, body: bytes === null ? body : Readable.from([bytes]) }
}

/** Methods with a body. */
const BODIES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

async function bytesOf(body: Readable, held: HeldMemory): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of body as AsyncIterable<Buffer>) {
    held.take(chunk.length)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The session of a WebSocket, whose address names the model. */
function openSession(
  x: Exchange,
  call: NativeCall,
  metered: Metered,
  services: NativeServices,
): RealtimeSession {
  return new RealtimeSession(metered, call.url.searchParams.get('model') ?? '', {
    services,
    onExhausted: (error) => x.cancellation.cancel(error),
  })
}

/** A reply that was being generated when the session ended is charged its maximum. */
async function endSession(session: RealtimeSession, result: AttemptResult): Promise<void> {
  await session.ended()
  const { reservedNanoUsd } = session
  const { nanoUsdPerRequest } = result.candidate.target.upstream.config.native
  const isUnknown = reservedNanoUsd === null && nanoUsdPerRequest === null
  const inReply = session.isInReply ? (reservedNanoUsd ?? 0) : 0
  result.nativeNanoUsd = isUnknown ? null : (nanoUsdPerRequest ?? 0) + inReply
}

/** Records the batch that a request creates, and charges one whose results a client reads. */
function watchBatches(
  replies: ObjectReplies,
  batch: BatchFacts | null,
  {
    call,
    agent,
    metered,
    services,
  }: {
    readonly call: NativeCall
    readonly agent: Agent
    readonly metered: Metered
    readonly services: NativeServices
  },
): void {
  replies.batch = batch
  replies.onBatch = async (object, reply) => {
    const { url } = call
    const read: ReadResults = (results, onChunk) =>
      readNative({ url: results, headers: headersForReading(call.headers), agent }, onChunk)
    if (!(await chargeBatch(metered, { object, reply, url, read }, services))) return
    // It is charged once; the ledger refuses a second entry in any case.
    await services.objects.record([{ ...object, facts: '' }])
  }
}

/** The request with the headers of its trace in place of the client's. */
function traced({ trace }: Exchange, call: NativeCall, result: AttemptResult): NativeCall {
  result.beganAtMs = performance.now()
  if (trace === null) return call
  const headers = { ...call.headers }
  const list = trace.headers(result)
  for (let index = 0; index < list.length; index += 2) headers[list[index] ?? ''] = list[index + 1] ?? ''
  return { ...call, headers }
}
