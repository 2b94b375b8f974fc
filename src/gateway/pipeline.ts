/**
 * The life of a request. Read `serve` first: each phase hands on to the next, top to bottom.
 * Knows no engine, no YAML and no provider.
 */
import type { Authenticator } from '../auth/authenticate.js'
import { namesModel, type Identity } from '../accounts/account.js'
import type { Addressed } from '../dialects/index.js'
import { GatewayError } from '../errors.js'
import { answerPreflight, isPreflight } from '../http/cors.js'
import { headerOf, type HttpRequest } from '../http/message.js'
import { sendReply } from '../http/respond.js'
import type { Books } from '../ledger/books.js'
import type { Limiter } from '../limits/limiter.js'
import type { Logger } from '../log.js'
import type { Metrics } from '../metrics/hops.js'
import type { Escrow } from '../reasoning/escrow.js'
import type { Deadlines } from './deadlines.js'
import type { Exchange } from './exchange.js'
import { forward } from './forward.js'
import { endpointOf } from './front.js'
import type { Target } from './generation.js'
import { limit } from './limit.js'
import { serveNative } from './native/native.js'
import { fetchMedia } from './media.js'
import type { BodyBudget } from './body-budget.js'
import { clientKeyOf } from './client-key.js'
import { receive, type Call } from './receive.js'
import { refuse, understood } from './refuse.js'
import { relay } from './relay.js'
import { settle } from './settle.js'

/** What every exchange of a process shares. */
export interface Services {
  readonly authenticator: Authenticator
  readonly metrics: Metrics
  readonly log: Logger
  readonly deadlines: Deadlines
  readonly escrow: Escrow
  readonly limiter: Limiter
  readonly books: Books
  readonly bodies: BodyBudget
  /** Told of every exchange, last. */
  readonly ended: (x: Exchange) => void
}

/** Serves one request to its end. Never rejects. */
export async function serve(x: Exchange, services: Services): Promise<void> {
  try {
    if (isPreflight(x.req, x.generation.snapshot.config.server.cors.origins)) {
      answerPreflight(x.req, x.res, ['x-request-id', x.id])
      return
    }
    const at = identify(x)
    const identity = authenticate(x, services)
    if (identity instanceof Promise) await identity
    if (at === null) {
      await serveNative(x, services)
      return
    }
    if (at.endpoint.operation === 'models') {
      answerModels(x, at)
      return
    }
    x.held = services.bodies.open(x.accountId ?? '')
    const received = await receiveTimed(x, at)
    const { target, model } = choose(x, received)
    if (services.books.isRefusing) throw unrecorded()
    const limited = limit(x, received, target, model, services)
    const admitted = limited instanceof Promise ? await limited : limited
    const fetching = fetchMedia(x, admitted, target, x.held)
    const call = fetching === null ? admitted : await fetching
    const answer = await forward(x, call, target, model, services)
    // A stream holds its own end back.
    const ending = answer.kind === 'whole' ? x.ending() : null
    if (ending !== null) await ending
    const relayed = relay(x, answer, call.ingress, services.deadlines)
    if (relayed !== undefined) await relayed
  } catch (thrown) {
    const error = understood(x, thrown)
    // An answer that is read on has its row when it ends.
    const ending = x.draining === null ? x.ending() : null
    if (ending !== null) await ending
    refuse(x, error)
  } finally {
    if (x.draining !== null) await x.draining
    const ending = x.ending()
    if (ending !== null) await ending
    x.held.end()
    report(x, services)
  }
}

/** What is said of the exchange; it is over, whatever comes of that. */
function report(x: Exchange, { metrics, log, ended }: Services): void {
  try {
    settle(x, metrics, log)
    if (x.failure !== null) log.error('unforeseen failure', x.failure, { request_id: x.id })
  } finally {
    ended(x)
  }
}

/** Method and path → dialect and endpoint; null for native access. Throws for what does not exist. */
function identify(x: Exchange): Addressed | null {
  x.facts.clientRequestId = clientRequestId(x.req)
  return endpointOf(x)
}

/** Characters of a client's own request id that are kept. */
const CLIENT_ID_CHARS = 128

/**
 * The request id that the client chose, for the log line: printable ASCII without quotes and backslashes,
 * the rest removed, at most 128 characters. Null if nothing is left.
 */
function clientRequestId(req: HttpRequest): string | null {
  const sent = headerOf(req, 'x-request-id') ?? headerOf(req, 'x-client-request-id')
  if (sent === undefined) return null
  const kept = sent.replace(/[^ -~]|["'`\\]/g, '').slice(0, CLIENT_ID_CHARS)
  return kept === '' ? null : kept
}

/** Before a byte of the body is read. Synchronous where the key is in memory. */
function authenticate(x: Exchange, { authenticator }: Services): Promise<void> | undefined {
  if (x.runsAs !== null) {
    accept(x, x.runsAs)
    return undefined
  }
  const { text, keyIn } = clientKeyOf(x.req, x.path)
  const found = authenticator.identifyBy(text, keyIn, x.clientAddress)
  if (found instanceof Promise) return found.then((identity) => accept(x, identity))
  accept(x, found)
  return undefined
}

function accept(x: Exchange, identity: Identity): void {
  x.keyDigest = identity.digest
  x.accountId = identity.accountId
  x.allowedModels = identity.models
  x.identity = identity
  x.facts.keyId = identity.keyId
  x.facts.accountId = identity.accountId
  x.facts.authenticateMs = performance.now() - x.startedMs
  x.cancellation.check()
}

async function receiveTimed(x: Exchange, at: Addressed): Promise<Call> {
  const beganMs = x.startedMs + (x.facts.authenticateMs ?? 0)
  try {
    return asked(x, await receive(x, at, x.held))
  } finally {
    x.facts.receiveMs = performance.now() - beganMs
  }
}

function asked(x: Exchange, call: Call): Call {
  const { request } = call
  x.held.endParsing(call.body)
  x.facts.request = request
  x.facts.model = request.model
  x.facts.stream = request.stream
  return call
}

function choose(x: Exchange, call: Call): { target: Target; model: string } {
  const { authenticateMs, receiveMs } = x.facts
  const beganMs = x.startedMs + (authenticateMs ?? 0) + (receiveMs ?? 0)
  const { request } = call
  const [first] = x.generation.route(request, { keyId: x.facts.keyId, labels: {} })?.order ?? []
  if (first === undefined) throw unknownModel(request.model)
  assertAllowed(x, request.model)
  const target = x.generation.target(first, request)
  const model = first.model ?? request.model
  x.facts.target = target
  x.facts.upstreamModel = model
  x.facts.routeMs = performance.now() - beganMs
  return { target, model }
}

function unknownModel(model: string): GatewayError {
  return new GatewayError(
    'unknown_model',
    `The model '${shortened(model)}' is not known here; GET /v1/models lists those that are.`,
    { param: 'model' },
  )
}

/** Throws `forbidden` for a model that the key's list does not name. */
function assertAllowed({ allowedModels }: Exchange, model: string): void {
  if (allowedModels === null || namesModel(allowedModels, model)) return
  throw new GatewayError(
    'forbidden',
    `This API key may not ask for the model '${shortened(model)}'; its owner says which it may.`,
    { param: 'model' },
  )
}

function shortened(model: string): string {
  return model.length > 100 ? `${model.slice(0, 100)}…` : model
}

/** What it costs could be written down nowhere, and the operator wants no such request. */
function unrecorded(): GatewayError {
  return new GatewayError(
    'store_unavailable',
    'The gateway cannot record what requests cost at the moment; try again.',
    { retryAfterSeconds: 5 },
  )
}

/** Answers with the models that the key may use, in the format of the client. */
function answerModels(x: Exchange, { dialect, endpoint }: Addressed): void {
  const { model } = endpoint
  const { models } = x.generation
  const format = x.dialect ?? dialect
  const query = (x.req.url ?? '').slice(x.path.length + 1)
  const json =
    model === undefined ? models.of(x.allowedModels, format, query) : models.one(model, format)
  if (json === null) throw unknownModel(model ?? '')
  if (model !== undefined) assertAllowed(x, model)
  x.facts.sentBytes = Buffer.byteLength(json)
  const generation = String(x.generation.snapshot.generation)
  sendReply(
    x.res,
    200,
    ['content-type', 'application/json', 'x-request-id', x.id, 'x-sluice-generation', generation],
    json,
  )
}
