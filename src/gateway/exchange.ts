/**
 * One request and its reply. Control values travel as arguments; this holds identity, sockets and the
 * facts to report. A phase's result is its return value; `facts` is write-only until `settle`.
 */
import type { DialectName, Endpoint } from '../dialects/dialect.js'
import { GatewayError } from '../errors.js'
import type { Request } from '../http/request.js'
import type { Response, ResponseOwner } from '../http/response.js'
import { pathOf } from './admit.js'
import { Cancellation } from './cancellation.js'
import type { Generation, Target } from './generation.js'
import type { Verdict } from './translate.js'

/**
 * What the log line, the metrics and the response headers report. Durations are in ms; null is "did
 * not get that far". Each field is written by exactly one phase:
 *
 * | phase        | fields |
 * | ------------ | ------ |
 * | authenticate | keyId accountId authenticateMs |
 * | receive      | model stream receivedBytes receiveMs clientRequestId |
 * | choose       | target upstreamModel routeMs |
 * | fetchMedia   | fetchedBytes fetchMs |
 * | forward      | translateMs connectMs firstByteMs replyMs upstreamStatus upstreamRequestId losses verdict |
 * | relay        | firstContentMs relayMs clientWaitMs sentBytes |
 * | refuse       | error |
 * | settle       | overheadMs |
 */
export interface Facts {
  keyId: string | null
  accountId: string | null
  authenticateMs: number | null
  model: string | null
  stream: boolean
  receivedBytes: number
  receiveMs: number | null
  clientRequestId: string | null
  target: Target | null
  upstreamModel: string | null
  routeMs: number | null
  translateMs: number
  connectMs: number | null
  firstByteMs: number | null
  /** From the upstream's head to the end of its body, for a whole reply. */
  replyMs: number | null
  upstreamStatus: number | null
  upstreamRequestId: string | null
  losses: readonly string[]
  /** Of media that the client named by URL. */
  fetchedBytes: number
  fetchMs: number
  verdict: Verdict | null
  firstContentMs: number | null
  relayMs: number | null
  clientWaitMs: number
  sentBytes: number
  error: GatewayError | null
  overheadMs: number
}

/** Identity, sockets, cancellation and facts of one request, from its head to `settle`. */
export class Exchange implements ResponseOwner {
  readonly id: string
  readonly req: Request
  readonly res: Response
  readonly generation: Generation
  readonly cancellation = new Cancellation()
  /** Monotonic, in ms. */
  readonly startedMs: number
  /** Without the query. */
  readonly path: string
  /** Set as soon as the path is known, so that even a 401 is spelled in the client's dialect. */
  dialect: DialectName | null = null
  operation: Endpoint['operation'] | null = null
  /** What was thrown and nobody foresaw, for the log. */
  failure: unknown = null
  /** The digest of the key it runs with, once that is known. */
  keyDigest: string | null = null
  /** Whose it is, once that is known. */
  accountId: string | null = null
  /** What must be done before the client hears that its answer is complete; null where nothing must. */
  holding: Promise<void> | null = null
  readonly facts: Facts = {
    keyId: null,
    accountId: null,
    authenticateMs: null,
    model: null,
    stream: false,
    receivedBytes: 0,
    receiveMs: null,
    clientRequestId: null,
    target: null,
    upstreamModel: null,
    routeMs: null,
    translateMs: 0,
    connectMs: null,
    firstByteMs: null,
    replyMs: null,
    upstreamStatus: null,
    upstreamRequestId: null,
    losses: [],
    fetchedBytes: 0,
    fetchMs: 0,
    verdict: null,
    firstContentMs: null,
    relayMs: null,
    clientWaitMs: 0,
    sentBytes: 0,
    error: null,
    overheadMs: 0,
  }

  constructor(id: string, req: Request, res: Response, generation: Generation, startedMs: number) {
    this.id = id
    this.req = req
    this.res = res
    this.generation = generation
    this.startedMs = startedMs
    this.path = pathOf(req.url)
    res.owner = this
  }

  /**
   * The connection tells so in every phase, read or not (another gateway once held 24,000 zombie
   * streams).
   */
  closed(): void {
    const { req, res } = this
    if (!res.writableFinished || !req.complete) this.cancellation.cancel(whyClosed(res))
  }
}

/** The front door answers a body that breaks the protocol by itself, in the middle of our reading it. */
function whyClosed(res: Response): GatewayError {
  const message = 'The request body did not arrive whole.'
  switch (res.writableFinished ? res.statusCode : 0) {
    case 400:
      return new GatewayError('malformed_request', message)
    case 408:
      return new GatewayError('request_timeout', message)
    case 413:
      return new GatewayError('body_too_large', message)
    case 431:
      return new GatewayError('headers_too_large', message)
    default:
      return new GatewayError('client_gone', 'The client closed the connection.')
  }
}
