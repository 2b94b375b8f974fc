/**
 * The life of a request, from top to bottom: read `serve` first, then `serveEndpoint`. Each phase returns a
 * value, which fills a slot of the exchange (`served-request.ts`); the ledger entry, the metrics and the log
 * line are made from the slots.
 */
import { assertModelAllowed } from '../accounts/allowed-models.js'
import type { Authenticator } from '../accounts/authentication/authenticator.js'
import { isRecordable } from '../formats/chat/operations.js'
import { errorCodecOf, type ResolvedEndpoint } from '../formats/index.js'
import { gatewayError, type GatewayError } from '../errors.js'
import { answerPreflight, isPreflight } from '../http/cors.js'
import { headerOf } from '../http/message.js'
import type { RecordingService } from './recording/record-requests.js'
import type { Escrow } from './reasoning/escrow.js'
import { refuseControls } from '../formats/wire/request-fields.js'
import type { StartedReply } from './attempts/attempt.js'
import { NO_LISTENERS, type ReplyListener } from './attempts/attempt-result.js'
import type { Batches } from './batches/batches.js'
import type { BodyMemory } from './body-memory.js'
import type { SocketPlaces } from './socket-places.js'
import type { Marking } from '../policy/prompt-cache-marks.js'
import type { CacheStore } from '../policy/cache-in-store.js'
import type { Caching } from './cache/answer-from-cache.js'
import { countTokens } from './phases/count-tokens.js'
import type { Timeouts } from './timeouts.js'
import type { DrainedReplySlots } from './drained-replies.js'
import type { Exchange } from './client-exchange.js'
import { mayBeInBody } from './native/body-values.js'
import { serveNative } from './native/serve-native.js'
import { programOf } from '../http/client-program.js'
import type { Notify } from '../observe/notification.js'
import { guardCall } from './objects/check-translated-request.js'
import { objectListener } from './objects/made-by-replies.js'
import type { OwnedObjects } from './objects/owned-objects.js'
import { admit, assertRecordable } from './phases/admit.js'
import type { Admitted, Delivery, Refused } from './phases/phase-results.js'
import { authenticate } from './phases/authenticate.js'
import { serveStoredResponse, type StoredResponses } from './stored-responses/stored-responses.js'
import { unknownModel } from './phases/choose-route.js'
import { identify } from './phases/identify.js'
import { receive } from './phases/receive.js'
import { Intake, type Call } from './phases/call.js'
import { calledForOf, judge } from './phases/judge.js'
import { permittedRoute } from './phases/permit-route.js'
import { relay, sendObject, sent } from './phases/relay.js'
import { errorHeaders, replyHeaders } from './phases/reply-headers.js'
import type { Overload } from './overload.js'
import { keeper, send, termsOf, type Outbound } from './phases/send.js'
import { Settlement, type ReportingServices } from './phases/settle.js'
import { sendErrorReply, toGatewayError, unexpectedFailureOf } from './phases/send-error.js'
import type { ResponsesSockets } from './responses-socket/responses-sockets.js'
import type { Shadows } from './shadow/shadows.js'

/** The services that all requests of a process share. */
export interface Services extends ReportingServices {
  readonly authenticator: Authenticator
  readonly timeouts: Timeouts
  readonly drainedReplySlots: DrainedReplySlots
  readonly escrow: Escrow
  readonly responses: StoredResponses
  readonly objects: OwnedObjects
  readonly bodies: BodyMemory
  readonly socketPlaces: SocketPlaces
  readonly overload: Overload
  readonly notify: Notify
  readonly shadows: Shadows
  /** The cache of routes that have one, loaded at its first use. */
  readonly caching: () => Caching | Promise<Caching>
  readonly cacheStore: CacheStore
  /** Records requests, loaded at its first use. */
  readonly recording: () => RecordingService | Promise<RecordingService>
  /** Marks prompts for the providers' caches, loaded at its first use. */
  readonly marking: () => Marking | Promise<Marking>
  /** Files and batches, loaded at their first use. */
  readonly batches: () => Batches | Promise<Batches>
  /** The WebSockets of Responses, loaded when the first is opened. */
  readonly sockets: () => ResponsesSockets | Promise<ResponsesSockets>
  /** Called once for every exchange, after its report. */
  readonly ended: (x: Exchange) => void
}

/** Serves one request to its end. Never rejects. */
export async function serve(x: Exchange, services: Services): Promise<void> {
  const settlement = new Settlement(x, services)
  try {
    if (isPreflight(x.req, x.generation.snapshot.config.server.cors.origins)) {
      answerPreflight(x.req, x.res, ['x-request-id', x.id])
      return
    }
    const identified = identify(x)
    x.identified = identified
    x.program = programOf(headerOf(x.req, 'user-agent'))
    if (identified.refusal !== null) throw identified.refusal
    services.overload.assertOpen()
    // Phases that may finish at once are awaited only if they return a promise: an `await` costs a turn of
    // the queue.
    const authenticating = authenticate(x, services.authenticator)
    const authenticated = authenticating instanceof Promise ? await authenticating : authenticating
    services.overload.assertServed(x.batch !== null ? LOW_PRIORITY : authenticated.identity.labels)
    x.authenticated = authenticated
    x.cancellation.check()
    const { resolved } = identified
    if (identified.operation === 'socket') await openSocket(x, services)
    else if (resolved !== null) await serveEndpoint(x, resolved, services)
    else {
      if (hasValues(x)) await services.values.read(x, { body: {} })
      await serveNative(x, services)
    }
  } catch (thrown) {
    await replyWithError(x, withSuggestion(toGatewayError(thrown), x))
  } finally {
    const drained = x.attempts?.drained ?? null
    if (drained !== null) await drained
    const recorded = x.ending()
    if (recorded !== null) await recorded
    x.intake?.held.end()
    settlement.report()
    services.ended(x)
  }
}

/** Lines of batches wait while clients need the process. */
const LOW_PRIORITY = { priority: 'low' }

/** Opens a WebSocket, whose turns are requests of their own. Rejects with `GatewayError` if it cannot. */
async function openSocket(x: Exchange, { sockets }: Services): Promise<void> {
  const opening = sockets()
  const opened = opening instanceof Promise ? await opening : opening
  x.cancellation.check()
  if (x.upgrade !== null) opened.open(x, x.identity, x.upgrade)
}

function hasDimensions({ generation }: Exchange): boolean {
  return generation.snapshot.config.dimensions.length > 0
}

/** Whether a native request has dimensions, none of which may be in its body; `serveNative` reads others. */
function hasValues(x: Exchange): boolean {
  return hasDimensions(x) && !mayBeInBody(x, x.generation.snapshot.config.dimensions)
}

/** Serves an authenticated request to one of the gateway's endpoints. Rejects with `GatewayError`. */
async function serveEndpoint(x: Exchange, resolved: ResolvedEndpoint, services: Services): Promise<void> {
  const delivering = replyWithoutUpstream(x, resolved, services)
  if (delivering !== null) {
    x.delivered = await delivering
    return
  }
  const intake = new Intake(services.bodies.open(x.identity.accountId))
  x.intake = intake
  x.received = await receive(x, resolved, intake)
  const reading = hasDimensions(x) ? services.values.read(x, { body: x.received.body }) : null
  if (reading instanceof Promise) await reading
  // The stored conversation that the request continues.
  const resuming = services.responses.resume(x)
  x.received = resuming instanceof Promise ? await resuming : resuming
  const isKeptOnly = x.turn?.generates === false
  const recording = isKeptOnly ? null : beginRecording(x, services)
  if (recording !== null) await recording
  x.routed = permittedRoute(x, x.generation.plugins === null ? undefined : calledForOf(x, services))
  const guarding = guardCall(x, services.objects)
  x.routed = guarding instanceof Promise ? await guarding : guarding
  if (isKeptOnly) return keepOnly(x)
  assertRecordable(services.ledgerWriter)
  if (resolved.endpoint.operation === 'count') {
    const judging = judge(x, services)
    if (judging !== null) x.received = await judging
    return countTokens(x, services)
  }
  const admitting = admit(x, services)
  x.received = admitted(x, admitting instanceof Promise ? await admitting : admitting, services)
  const judging = judge(x, services)
  if (judging !== null) x.received = await judging
  const reply = await sendOrReplay(x, services)
  // The ledger entry is written before the client gets the end: a stream delays its end, a whole reply waits
  // here.
  const recorded = reply.kind === 'whole' ? x.ending() : null
  if (recorded !== null) await recorded
  const headers = replyHeaders(x, reply.kind)
  const { timeouts } = services
  x.delivered = relay(x, reply, { clientCodec: x.received.clientCodec, headers, timeouts })
  if (x.delivered.closed !== null) await x.delivered.closed
}

/** Notes the decision; the call that may be sent. Throws the error of a refusal, and a cancellation. */
function admitted(x: Exchange, admission: Admitted | Refused, { values }: Services): Call {
  x.admitted = admission
  if (admission.kind === 'refused') throw admission.error
  x.limitReservation = admission.limitReservation
  values.admitted(x.identity)
  x.cancellation.check()
  return admission.call ?? x.call
}

/** Begins to record the request; null if the configuration records none. */
function beginRecording(x: Exchange, services: Services): Promise<void> | null {
  const { record } = x.generation.snapshot.config
  if (record === null || !isRecordable(x.call.endpoint.operation)) return null
  return Promise.resolve(services.recording()).then((recording) => {
    x.recorder = recording.begin(x, record)
  })
}

/** Answers a turn without an upstream. */
async function keepOnly(x: Exchange): Promise<void> {
  const { answerKept } = await import('./responses-socket/keep-only.js')
  x.delivered = await answerKept(x)
}

/** Sends the request, unless the route has a cache that answers it. */
async function sendOrReplay(x: Exchange, services: Services): Promise<StartedReply> {
  const { config, candidates } = x.route
  let mark: Outbound['mark'] = null
  if (config !== null && config.cacheControl !== null) {
    const { ttl } = config.cacheControl
    const scope = { accountId: x.identity.accountId, route: candidates[0].target.route, ttl }
    mark = (await services.marking()).marker(scope)
  }
  if (config === null || config.cache === null) return sendAdmitted(x, { mark, cached: null }, services)
  const { cache } = config
  const opening = services.caching()
  const caching = opening instanceof Promise ? await opening : opening
  const send = (cached: ReplyListener | null): Promise<StartedReply> => {
    return sendAdmitted(x, { mark, cached }, services)
  }
  return caching.serve({ x, config, cache, send })
}

/** What the settings of a route add to a request. */
interface RouteUse {
  readonly mark: Outbound['mark']
  /** Gets the reply for the cache; null if the route has none. */
  readonly cached: ReplyListener | null
}

/** Sends the request, and a copy of it if the route has a shadow target and the request is in its sample. */
function sendAdmitted(x: Exchange, { mark, cached }: RouteUse, services: Services): Promise<StartedReply> {
  const { generation, identity, route, call } = x
  const { accountId } = identity
  const { calledTools, recorder } = x
  const made = objectListener(call, identity, services.objects)
  const traced = services.tracing?.listener(x) ?? null
  // Without a spread: V8 would make a new hidden class for each request (docs/explanation/performance.md).
  const outbound = {
    states: generation.states,
    terms: termsOf(x.req, accountId),
    reasoning: { accountId, isKept: true },
    mark,
    // The only place with their order; the one that keeps reasoning state is the last of each candidate.
    listeners: listenersOf(made, calledTools, recorder, traced, cached, keeper(x)),
  }
  const reply = send(x, outbound, services)
  const { shadow } = route
  if (shadow === null) return reply
  const copying = { shadow, reply, listeners: listenersOf(made) }
  x.copied = services.shadows.copy(x, copying)
  return reply
}

/** Those that are set: most requests have no listener. */
function listenersOf(...listeners: readonly (ReplyListener | null)[]): readonly ReplyListener[] {
  const set = listeners.filter((listener) => listener !== null)
  return set.length === 0 ? NO_LISTENERS : set
}

/** Serves files and batches, whose endpoints may name an object. */
async function serveObjects(x: Exchange, own: ResolvedEndpoint, { batches }: Services): Promise<Delivery> {
  return (await batches()).serve(x, own)
}

/** Replies to model lists, stored responses, files and batches; null if the endpoint needs an upstream. */
function replyWithoutUpstream(
  x: Exchange,
  resolved: ResolvedEndpoint,
  services: Services,
): Delivery | Promise<Delivery> | null {
  const { operation } = resolved.endpoint
  switch (operation) {
    case 'models':
    case 'stored':
    case 'stored-input':
    case 'files':
    case 'batches': {
      const own = { ...resolved, dialect: x.identified?.dialect ?? resolved.dialect }
      if (operation === 'models') return replyWithModels(x, own)
      if (operation === 'files' || operation === 'batches') return serveObjects(x, own, services)
      return serveStoredResponse(x, own, { identity: x.identity, responses: services.responses })
    }
    default:
      return null
  }
}

/** The error with the most similar model that the key may use, if the model is unknown. */
function withSuggestion(
  error: GatewayError,
  { generation, identified, authenticated, received }: Exchange,
): GatewayError {
  const model = received?.request.model ?? identified?.resolved?.endpoint.model
  if (error.kind !== 'unknown_model' || authenticated === null || model === undefined) return error
  const similar = generation.models.similar(model, authenticated.identity.models)
  if (similar === null) return error
  const { wire, cause } = error
  return gatewayError({ ...wire, message: `${wire.message} Did you mean '${similar}'?` }, cause)
}

/** Sends the error to the client after the ledger entry is written. */
async function replyWithError(x: Exchange, error: GatewayError): Promise<void> {
  x.error = error
  x.failure = unexpectedFailureOf(error)
  // If the upstream's reply is still being read for its usage, the entry is written when that ends.
  const drained = x.attempts?.drained ?? null
  if (drained === null) await x.ending()
  const { dialect = null, resolved = null } = x.identified ?? {}
  const format = errorCodecOf(resolved?.wire ?? null, dialect)
  const sentBytes = sendErrorReply(x, error, { format, headers: errorHeaders(x) })
  x.delivered ??= sent(sentBytes)
}

/** Replies with the models that the key may use, in the format of the client. */
function replyWithModels(
  x: Exchange,
  { dialect, endpoint }: Pick<ResolvedEndpoint, 'dialect' | 'endpoint'>,
): Delivery {
  const { model } = endpoint
  const { identity } = x
  const { models } = x.generation
  if (model !== undefined) refuseControls(model)
  const query = (x.req.url ?? '').slice(x.path.length + 1)
  const wanted = { allowed: identity.models, dialect, query }
  const json = model === undefined ? models.of(wanted) : models.one(model, wanted)
  if (json === null) throw unknownModel(model ?? '')
  if (model !== undefined) assertModelAllowed(identity, model)
  return sendObject(x, json)
}
