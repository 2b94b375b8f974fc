/**
 * The life of a request. Read `serve` first: each phase takes what it needs and returns a value, top to bottom. What
 * they returned is observed at the end, for the ledger entry, the metrics and the log line.
 */
import type { Identity } from '../accounts/account.js'
import type { Authenticator } from '../auth/authenticate.js'
import type { ResolvedEndpoint } from '../dialects/index.js'
import { GatewayError } from '../errors.js'
import { answerPreflight, isPreflight } from '../http/cors.js'
import { sendReply } from '../http/respond.js'
import type { Escrow } from '../reasoning/escrow.js'
import type { Candidates } from './attempts/candidates.js'
import type { BodyBudget, Holding } from './bodies/body-budget.js'
import { countTokens } from './phases/count-tokens.js'
import type { Deadlines } from './in-flight/deadlines.js'
import type { DrainSlots } from './in-flight/drain-slots.js'
import type { Exchange } from './exchange.js'
import { serveNative } from './native/serve-native.js'
import type { Notify } from '../observe/webhooks/notification.js'
import { Results } from './observe/results.js'
import { admit, type Admitted } from './phases/admit.js'
import { authenticate } from './phases/authenticate.js'
import { serveStoredResponse } from './stored-responses/serve-stored-responses.js'
import { assertAllowed, choose, unknownModel, type Route } from './phases/choose.js'
import { identify, type Identified } from './phases/identify.js'
import { Intake, receive, type Call } from './phases/receive.js'
import { relay, sent, type Delivery } from './phases/relay.js'
import { errorHeaders, replyHeaders } from './phases/reply-headers.js'
import type { Overload } from './overload/overload.js'
import { send, termsOf } from './phases/send.js'
import { Observer, type ReportingServices } from './phases/settle.js'
import { unexpectedFailureOf, refuse, toGatewayError } from './phases/send-error.js'
import type { Shadows } from './shadows/shadows.js'
import type { StoredResponses } from './stored-responses/stored-responses.js'

/** What every exchange of a process shares. */
export interface Services extends ReportingServices {
  readonly authenticator: Authenticator
  readonly deadlines: Deadlines
  readonly drainSlots: DrainSlots
  readonly escrow: Escrow
  readonly responses: StoredResponses
  readonly bodies: BodyBudget
  readonly overload: Overload
  readonly notify: Notify
  readonly shadows: Shadows
  /** Called for every exchange, last. */
  readonly ended: (x: Exchange) => void
}

/** Serves one request to its end. Never rejects. */
export async function serve(x: Exchange, services: Services): Promise<void> {
  const results = new Results()
  const observer = new Observer(x, results, services)
  try {
    if (isPreflight(x.req, x.generation.snapshot.config.server.cors.origins)) {
      answerPreflight(x.req, x.res, ['x-request-id', x.id])
      return
    }
    const identified = identify(x)
    results.identified = identified
    const { at, refusal } = identified
    if (refusal !== null) throw refusal
    services.overload.assertOpen()
    const found = authenticate(x, services.authenticator)
    const authenticated = found instanceof Promise ? await found : found
    services.overload.assertServed(authenticated.identity.labels)
    results.authenticated = authenticated
    x.cancellation.check()
    if (at === null) {
      await serveNative(x, { authenticated, results, ending: observer.ending }, services)
      return
    }
    const { identity } = authenticated
    const spoken = { ...at, dialect: identified.dialect ?? at.dialect }
    const own = answerItself(x, spoken, identity, services)
    if (own !== null) {
      results.delivery = await own
      return
    }
    const held = services.bodies.open(identity.accountId)
    const call = await receiveWhole(x, at, { identity, held, results }, services)
    const route = choose(call, identity, x.generation)
    results.route = route
    if (services.ledgerWriter.isRefusing) throw unrecorded()
    const [{ candidates }, { clientRequestId }] = [route, identified]
    const routed = { x, identity, clientRequestId, call, candidates }
    if (at.endpoint.operation === 'count') {
      await countTokens(routed, results, observer.ending, services)
      return
    }
    const decided = admit(routed, services)
    const admission = decided instanceof Promise ? await decided : decided
    results.admission = admission
    if (admission.kind === 'refused') throw admission.error
    x.limitReservation = admission.limitReservation
    x.cancellation.check()
    const admitted = { identity, identified, admission, route, held }
    const sending = sendAdmitted(x, admitted, { observer, results }, services)
    const reply = await sending.reply
    // A stream holds its own end back.
    const entered = reply.kind === 'whole' ? observer.ending() : null
    if (entered !== null) await entered
    const headers = replyHeaders(x, results, reply.kind)
    const to = { ingress: call.ingress, headers, deadlines: services.deadlines }
    results.delivery = relay(x, reply, to)
    if (results.delivery.closed !== null) await results.delivery.closed
  } catch (thrown) {
    await endWith(toGatewayError(thrown), x, results, observer)
  } finally {
    const drained = results.sent?.drained ?? null
    if (drained !== null) await drained
    const entered = observer.ending()
    if (entered !== null) await entered
    results.intake?.held.end()
    observer.report()
    services.ended(x)
  }
}

/** A request that may run. */
interface AdmittedRequest {
  readonly identity: Identity
  readonly identified: Identified
  readonly admission: Admitted
  readonly route: Route
  readonly held: Holding
}

/** Sends the request, and a copy of it if the route has a shadow and the request is drawn. */
function sendAdmitted(
  x: Exchange,
  { identity, identified, admission, route, held }: AdmittedRequest,
  { observer, results }: { readonly observer: Observer; readonly results: Results },
  services: Services,
): Candidates {
  const { generation } = x
  const { call, reservation } = admission
  const outbound = {
    ...{ exchange: x, call, route, held, reservation },
    terms: termsOf(x.req),
    states: generation.states,
    reasoning: { accountId: identity.accountId, isKept: true },
  }
  const sending = send(outbound, observer.ending, services)
  results.sent = sending.sent
  const { shadow } = route
  if (shadow === null) return sending
  const original = { id: x.id, generation, identity, identified, call }
  results.shadow = services.shadows.copy(original, { shadow, held, sending })
  return sending
}

/** The checked request, with the conversation that it goes on from. */
async function receiveWhole(
  x: Exchange,
  at: ResolvedEndpoint,
  { identity, held, results }: { identity: Identity; held: Holding; results: Results },
  { responses }: Services,
): Promise<Call> {
  const intake = new Intake(held)
  results.intake = intake
  const call = await receive(x, at, intake)
  results.call = call
  const resumed = responses.resume(call, identity.accountId, held)
  results.call = resumed instanceof Promise ? await resumed : resumed
  return results.call
}

/** What the gateway answers without an upstream; null if the endpoint needs one. */
function answerItself(
  x: Exchange,
  at: ResolvedEndpoint,
  identity: Identity,
  { responses }: Services,
): Delivery | Promise<Delivery> | null {
  switch (at.endpoint.operation) {
    case 'models':
      return answerModels(x, at, identity)
    case 'stored':
    case 'stored-input':
      return serveStoredResponse(x, at, { identity, responses })
    default:
      return null
  }
}

/** The client gets the error, once the ledger entry is written. */
async function endWith(
  error: GatewayError,
  x: Exchange,
  results: Results,
  observer: Observer,
): Promise<void> {
  results.error = error
  results.failure = unexpectedFailureOf(error)
  // A reply that is read on has its entry when it ends.
  const drained = results.sent?.drained ?? null
  if (drained === null) await observer.ending()
  const dialect = results.identified?.dialect ?? null
  const sentBytes = refuse(x, error, { dialect, headers: errorHeaders(x, results) })
  results.delivery ??= sent(sentBytes)
}

/** The operator wants no request whose cost cannot be recorded. */
function unrecorded(): GatewayError {
  return new GatewayError(
    'store_unavailable',
    'The gateway cannot record what requests cost at the moment; try again.',
    { retryAfterSeconds: 5 },
  )
}

/** Replies with the models that the key may use, in the format of the client. */
function answerModels(
  x: Exchange,
  { dialect, endpoint }: Pick<ResolvedEndpoint, 'dialect' | 'endpoint'>,
  identity: Identity,
): Delivery {
  const { model } = endpoint
  const { models } = x.generation
  const query = (x.req.url ?? '').slice(x.path.length + 1)
  const json =
    model === undefined ? models.of(identity.models, dialect, query) : models.one(model, dialect)
  if (json === null) throw unknownModel(model ?? '')
  if (model !== undefined) assertAllowed(identity, model)
  const generation = String(x.generation.snapshot.generation)
  sendReply(
    x.res,
    200,
    ['content-type', 'application/json', 'x-request-id', x.id, 'x-sluice-generation', generation],
    json,
  )
  return sent(Buffer.byteLength(json))
}
