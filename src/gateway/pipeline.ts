/**
 * The life of a request, from top to bottom: read `serve` first, then `serveEndpoint`. Each phase returns a
 * value, which fills a slot of the exchange (`served-request.ts`); the ledger entry, the metrics and the log
 * line are made from the slots.
 */
import type { Identity } from '../accounts/account.js'
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
import { NO_LISTENERS, SendResult, type ReplyListener } from './attempts/attempt-result.js'
import type { Batches } from './batches/batches.js'
import type { BodyMemory, HeldMemory } from './body-memory.js'
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
import { withoutOperatorObjects } from './objects/operator-objects.js'
import type { OwnedObjects } from './objects/owned-objects.js'
import { admit, assertRecordable } from './phases/admit.js'
import type { Admitted, Authenticated, Identified, Delivery } from './phases/phase-results.js'
import { authenticate } from './phases/authenticate.js'
import { serveStoredResponse, type StoredResponses } from './stored-responses/stored-responses.js'
import { choose, unknownModel, type Route } from './phases/choose-route.js'
import { identify } from './phases/identify.js'
import { receive } from './phases/receive.js'
import { Intake, type Call } from './phases/call.js'
import { calledForOf, judge } from './phases/judge.js'
import { permitTools } from './phases/permit-tools.js'
import { relay, sendObject, sent } from './phases/relay.js'
import { errorHeaders, replyHeaders } from './phases/reply-headers.js'
import type { Overload } from './overload.js'
import { send, termsOf, type Outbound } from './phases/send.js'
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
    if (identified.operation === 'socket') {
      await openSocket(x, authenticated.identity, services)
    } else if (resolved === null) {
      const native = hasValues(x) ? await withValues(x, authenticated, services) : authenticated
      await serveNative(x, { authenticated: native, ending: settlement.ending }, services)
    } else {
      const { identity } = authenticated
      await serveEndpoint(x, { identity, identified, resolved, settlement }, services)
    }
  } catch (thrown) {
    await replyWithError(x, withSuggestion(toGatewayError(thrown), x), settlement)
  } finally {
    const drained = x.attempts?.drained ?? null
    if (drained !== null) await drained
    const recorded = settlement.ending()
    if (recorded !== null) await recorded
    x.intake?.held.end()
    settlement.report()
    services.ended(x)
  }
}

/** Lines of batches wait while clients need the process. */
const LOW_PRIORITY = { priority: 'low' }

/** Opens a WebSocket, whose turns are requests of their own. Rejects with `GatewayError` if it cannot. */
async function openSocket(x: Exchange, identity: Identity, { sockets }: Services): Promise<void> {
  const opening = sockets()
  const opened = opening instanceof Promise ? await opening : opening
  x.cancellation.check()
  if (x.upgrade !== null) opened.open(x, identity, x.upgrade)
}

function hasDimensions({ generation }: Exchange): boolean {
  return generation.snapshot.config.dimensions.length > 0
}

/** Whether a native request has dimensions, none of which may be in its body; `serveNative` reads others. */
function hasValues(x: Exchange): boolean {
  return hasDimensions(x) && !mayBeInBody(x, x.generation.snapshot.config.dimensions)
}

/** A native request with its dimensions. */
async function withValues(
  x: Exchange,
  authenticated: Authenticated,
  { values }: Services,
): Promise<Authenticated> {
  const { identity } = authenticated
  return { ...authenticated, identity: await values.read(x, { identity, body: {} }) }
}

/** An authenticated request to one of the gateway's endpoints. */
interface AuthenticatedRequest {
  readonly identity: Identity
  readonly identified: Identified
  readonly resolved: ResolvedEndpoint
  readonly settlement: Settlement
}

/** Serves an authenticated request. Rejects with `GatewayError`. */
async function serveEndpoint(
  x: Exchange,
  { identity: authenticated, identified, resolved, settlement }: AuthenticatedRequest,
  services: Services,
): Promise<void> {
  const { responses } = services
  const dialect = identified.dialect ?? resolved.dialect
  const own = { ...resolved, dialect }
  const { batches } = services
  const delivering = replyWithoutUpstream(x, own, { identity: authenticated, responses, batches })
  if (delivering !== null) {
    x.delivered = await delivering
    return
  }
  const held = services.bodies.open(authenticated.accountId)
  const { objects } = services
  const intake = new Intake(held)
  x.intake = intake
  const received = await receive(x, resolved, intake)
  x.received = received
  const reading = hasDimensions(x)
    ? services.values.read(x, { identity: authenticated, body: received.body })
    : authenticated
  const identity = reading instanceof Promise ? await reading : reading
  // The stored conversation that the request continues.
  const resuming = responses.resume(received, identity, held, x.turn?.kept)
  const call = resuming instanceof Promise ? await resuming : resuming
  x.received = call
  const isKeptOnly = x.turn?.generates === false
  const recording = isKeptOnly ? null : beginRecording(x, { identity, call }, services)
  if (recording !== null) await recording
  const { plugins } = x.generation
  const calledFor = plugins === null ? undefined : calledForOf(x, identity, services)
  const chosen = choose(call, identity, x.generation, calledFor)
  const allowed = withoutOperatorObjects(chosen, call, x.generation)
  const permitted = permitTools(allowed, call, { identity, generation: x.generation })
  x.routed = permitted
  const { accountId } = identity
  const guarding = guardCall(call, permitted, { accountId, objects })
  const route = guarding instanceof Promise ? await guarding : guarding
  x.routed = route
  if (isKeptOnly) return keepOnly(x, call)
  assertRecordable(services.ledgerWriter)
  const { clientRequestId } = identified
  const routed = { x, identity, clientRequestId, call, candidates: route.candidates }
  const { metrics, log } = services
  if (resolved.endpoint.operation === 'count') {
    const judging = judge(x, route, { call, identity, metrics, log, held })
    const counted = judging === null ? routed : { ...routed, call: await judging }
    return countTokens(counted, settlement, services)
  }
  const admitting = admit(routed, services)
  const admission = admitting instanceof Promise ? await admitting : admitting
  x.admitted = admission
  if (admission.kind === 'refused') throw admission.error
  x.limitReservation = admission.limitReservation
  services.values.admitted(identity)
  x.cancellation.check()
  const judging = judge(x, route, { call: admission.call, identity, metrics, log, held })
  const judged = judging === null ? admission.call : await judging
  if (judging !== null) x.received = judged
  const admitted = {
    identity,
    identified,
    admission,
    call: judged,
    route,
    held,
    settlement,
    mark: null,
  }
  const reply = await sendOrReplay(x, admitted, services)
  // The ledger entry is written before the client gets the end: a stream delays its end, a whole reply waits
  // here.
  const recorded = reply.kind === 'whole' ? settlement.ending() : null
  if (recorded !== null) await recorded
  const headers = replyHeaders(x, reply.kind)
  const { timeouts } = services
  x.delivered = relay(x, reply, { clientCodec: call.clientCodec, headers, timeouts })
  if (x.delivered.closed !== null) await x.delivered.closed
}

/** Begins to record the request; null if the configuration records none. */
function beginRecording(
  x: Exchange,
  { identity, call }: { readonly identity: Identity; readonly call: Call },
  services: Services,
): Promise<void> | null {
  const { record } = x.generation.snapshot.config
  if (record === null || !isRecordable(call.endpoint.operation)) return null
  return Promise.resolve(services.recording()).then((recording) => {
    x.recorder = recording.begin(x, identity, call, record)
  })
}

/** Answers a turn without an upstream. */
async function keepOnly(x: Exchange, call: Call): Promise<void> {
  const { answerKept } = await import('./responses-socket/keep-only.js')
  x.delivered = await answerKept(x, call)
}

/** An admitted request with the values of the earlier phases. */
interface AdmittedRequest {
  readonly identity: Identity
  readonly identified: Identified
  readonly admission: Admitted
  /** The call after the guardrails. */
  readonly call: Call
  readonly route: Route
  readonly held: HeldMemory
  readonly settlement: Settlement
  mark: Outbound['mark']
}

/** Sends the request, unless the route has a cache that answers it. */
async function sendOrReplay(
  x: Exchange,
  admitted: AdmittedRequest,
  services: Services,
): Promise<StartedReply> {
  const { identity, call, route, settlement } = admitted
  const { cache, cacheControl } = route.config
  if (cacheControl !== null) {
    const { ttl } = cacheControl
    const scope = { accountId: identity.accountId, route: route.candidates[0].target.route, ttl }
    admitted.mark = (await services.marking()).marker(scope)
  }
  if (cache === null) return sendAdmitted(x, admitted, call, services)
  const opening = services.caching()
  const caching = opening instanceof Promise ? await opening : opening
  const send = (captured: Call): Promise<StartedReply> => sendAdmitted(x, admitted, captured, services)
  return caching.serve({ x, identity, call, route, cache, settlement, send })
}

/** Sends the request, and a copy of it if the route has a shadow target and the request is in its sample. */
function sendAdmitted(
  x: Exchange,
  admitted: AdmittedRequest,
  call: Call,
  services: Services,
): Promise<StartedReply> {
  const { identity, identified, admission, route, held, settlement, mark } = admitted
  const { generation } = x
  const { reservation } = admission
  const made = objectListener(call, identity, services.objects)
  const sent = new SendResult()
  sent.listeners = listenersOf(made, x.recorder, services.tracing?.listener(x) ?? null)
  x.attempts = sent
  // Without a spread: V8 would make a new hidden class for each request (docs/explanation/performance.md).
  const outbound = {
    exchange: x,
    identity,
    call,
    route,
    held,
    reservation,
    sent,
    terms: termsOf(x.req, identity.accountId),
    states: generation.states,
    reasoning: { accountId: identity.accountId, isKept: true },
    mark,
  }
  const reply = send(outbound, settlement.ending, services)
  const { shadow } = route
  if (shadow === null) return reply
  const listeners = listenersOf(made)
  const original = { id: x.id, generation, identity, identified, call: unguarded(admitted.call), listeners }
  x.copied = services.shadows.copy(original, { shadow, held, sent, reply })
  return reply
}

/** Those that are set: most requests have no listener. */
function listenersOf(...listeners: readonly (ReplyListener | null)[]): readonly ReplyListener[] {
  const set = listeners.filter((listener) => listener !== null)
  return set.length === 0 ? NO_LISTENERS : set
}

/** The reply of a copy is dropped, so it is not judged. */
function unguarded(call: Call): Call {
  if (call.guard === undefined) return call
  const copy = { ...call }
  delete copy.guard
  return copy
}

/** What replies without an upstream are made with. */
interface ServedHere extends Pick<Services, 'responses' | 'batches'> {
  readonly identity: Identity
}

/** Serves files and batches, whose endpoints may name an object. */
async function serveObjects(
  x: Exchange,
  resolved: ResolvedEndpoint,
  { identity, batches }: ServedHere,
): Promise<Delivery> {
  return (await batches()).serve(x, resolved, { identity })
}

/** Replies to model lists, stored responses, files and batches; null if the endpoint needs an upstream. */
function replyWithoutUpstream(
  x: Exchange,
  resolved: ResolvedEndpoint,
  served: ServedHere,
): Delivery | Promise<Delivery> | null {
  const { identity, responses } = served
  switch (resolved.endpoint.operation) {
    case 'models':
      return replyWithModels(x, resolved, identity)
    case 'stored':
    case 'stored-input':
      return serveStoredResponse(x, resolved, { identity, responses })
    case 'files':
    case 'batches':
      return serveObjects(x, resolved, served)
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
async function replyWithError(
  x: Exchange,
  error: GatewayError,
  { ending }: Settlement,
): Promise<void> {
  x.error = error
  x.failure = unexpectedFailureOf(error)
  // If the upstream's reply is still being read for its usage, the entry is written when that ends.
  const drained = x.attempts?.drained ?? null
  if (drained === null) await ending()
  const { dialect = null, resolved = null } = x.identified ?? {}
  const format = errorCodecOf(resolved?.wire ?? null, dialect)
  const sentBytes = sendErrorReply(x, error, { format, headers: errorHeaders(x) })
  x.delivered ??= sent(sentBytes)
}

/** Replies with the models that the key may use, in the format of the client. */
function replyWithModels(
  x: Exchange,
  { dialect, endpoint }: Pick<ResolvedEndpoint, 'dialect' | 'endpoint'>,
  identity: Identity,
): Delivery {
  const { model } = endpoint
  const { models } = x.generation
  if (model !== undefined) refuseControls(model)
  const query = (x.req.url ?? '').slice(x.path.length + 1)
  const wanted = { allowed: identity.models, dialect, query }
  const json = model === undefined ? models.of(wanted) : models.one(model, wanted)
  if (json === null) throw unknownModel(model ?? '')
  if (model !== undefined) assertModelAllowed(identity, model)
  return sendObject(x, json)
}
