/**
 * One request and its reply. Control values travel as arguments; this holds identity, sockets and the
 * facts to report. A phase's result is its return value; `facts` is write-only until `settle`.
 */
import type { Identity } from '../accounts/account.js'
import type { ChatRequest } from '../chat/request.js'
import type { DialectName, Endpoint } from '../dialects/dialect.js'
import type { ClientFormat } from '../dialects/endpoints.js'
import { GatewayError } from '../errors.js'
import type { HttpRequest, HttpResponse, Upgrade } from '../http/message.js'
import { pathOf } from '../http/request-guard.js'
import { hasLeft, REFUSED } from '../http/respond.js'
import type { Lease } from '../limits/limiter.js'
import { BodyBudget } from './body-budget.js'
import { Cancellation } from './cancellation.js'
import type { Drains } from './drains.js'
import type { Generation, Target } from './generation.js'
import { LANDED, type Flight } from './in-flight.js'
import type { Verdict } from './translate.js'

/**
 * What the log line, the metrics and the response headers report. Durations are in ms; null is "did
 * not get that far". Each field is written by exactly one phase:
 *
 * | phase        | fields |
 * | ------------ | ------ |
 * | authenticate | keyId accountId authenticateMs |
 * | receive      | model stream request receivedBytes receiveMs clientRequestId |
 * | choose       | target upstreamModel routeMs |
 * | limit        | admitMs limit |
 * | fetchMedia   | fetchedBytes fetchMs |
 * | forward      | translateMs connectMs firstByteMs replyMs upstreamStatus upstreamRequestId losses verdict attempts countsAreFinal outputWhenLeft |
 * | relay        | firstContentMs relayMs clientWaitMs sentBytes |
 * | refuse       | error |
 * | ending       | bookMs |
 * | settle       | overheadMs |
 */
export interface Facts {
  keyId: string | null
  accountId: string | null
  authenticateMs: number | null
  model: string | null
  stream: boolean
  /** For estimates, where the upstream does not count. */
  request: ChatRequest | null
  receivedBytes: number
  receiveMs: number | null
  clientRequestId: string | null
  target: Target | null
  upstreamModel: string | null
  routeMs: number | null
  admitMs: number | null
  /** The rule that refused it, as the ledger entry names it. */
  limit: string | null
  translateMs: number
  connectMs: number | null
  firstByteMs: number | null
  /** From the upstream's head to the first content of a stream, or the end of a whole body. */
  replyMs: number | null
  upstreamStatus: number | null
  upstreamRequestId: string | null
  losses: readonly string[]
  /** Of media that the client named by URL. */
  fetchedBytes: number
  fetchMs: number
  verdict: Verdict | null
  /** Requests sent to upstreams. */
  attempts: number
  /** The upstream's counts hold although its answer was not read to the end. */
  countsAreFinal: boolean
  /** Output tokens when the client left, where the answer was read on; else null. */
  outputWhenLeft: number | null
  firstContentMs: number | null
  relayMs: number | null
  clientWaitMs: number
  sentBytes: number
  error: GatewayError | null
  /** From the row's making until the ledger or the spool had it. */
  bookMs: number
  overheadMs: number
}

/** What exchanges leave behind: a row in the ledger, and sometimes an answer that nobody waits for. */
export interface Aftercare {
  /**
   * Writes the row of the exchange as it is at `nowMs`; null where nothing has to be waited for. Never
   * rejects.
   */
  book(x: Exchange, nowMs: number): Promise<void> | null
  readonly drains: Drains
}

const NOT_COUNTED = new BodyBudget(Number.POSITIVE_INFINITY)

/** Identity, sockets, cancellation and facts of one request, from its head to `settle`. */
export class Exchange implements Flight {
  place = LANDED
  readonly id: string
  readonly req: HttpRequest
  readonly res: HttpResponse
  readonly generation: Generation
  readonly cancellation = new Cancellation()
  /** Monotonic, in ms. */
  readonly startedMs: number
  /** Where the client is, behind trusted proxies too. */
  readonly clientAddress: string
  /** Without the query. */
  readonly path: string
  /** Set as soon as the path is known, so that even a 401 is spelled in the client's dialect. */
  dialect: DialectName | null = null
  operation: Endpoint['operation'] | 'native' | null = null
  /** What the client speaks, for metrics and the ledger; null if the path is unknown. */
  format: ClientFormat | 'native' | null = null
  /** The connection of a request for a WebSocket. */
  upgrade: Upgrade | null = null
  /** The reply was ended with an error: that its connection closes does not mean that the client left. */
  isBrokenOff = false
  /** What was thrown and nobody foresaw, for the log. */
  failure: unknown = null
  /** Who it runs as, where somebody else has seen to that; null: its key says. */
  readonly runsAs: Identity | null
  /** The digest of the key it runs with, once that is known. */
  keyDigest: string | null = null
  /** Whose it is, once that is known. */
  accountId: string | null = null
  /** The models that its key may ask for; null: all. */
  allowedModels: readonly string[] | null = null
  /** What it runs as, once that is known. */
  identity: Identity | null = null
  /** The memory that its bodies take; counted from when its account is known. */
  held = NOT_COUNTED.open('')
  /** What is held for it by the limits, once it is admitted. */
  lease: Lease | null = null
  /** Name, value, …: what every answer says of the limits that apply. */
  rateHeaders: readonly string[] = []
  /** Reasoning state on its way to the store, which the client's next turn may need; see `ending`. */
  holding: Promise<void> | null = null
  readonly facts: Facts = {
    keyId: null,
    accountId: null,
    authenticateMs: null,
    model: null,
    stream: false,
    request: null,
    receivedBytes: 0,
    receiveMs: null,
    clientRequestId: null,
    target: null,
    upstreamModel: null,
    routeMs: null,
    admitMs: null,
    limit: null,
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
    attempts: 0,
    countsAreFinal: false,
    outputWhenLeft: null,
    firstContentMs: null,
    relayMs: null,
    clientWaitMs: 0,
    sentBytes: 0,
    error: null,
    bookMs: 0,
    overheadMs: 0,
  }
  /** The upstream's answer is read on without the client, until this resolves; null where it is not. */
  draining: Promise<void> | null = null
  readonly after: Aftercare
  private isBooked = false

  /** `as`: who it runs as and the path that it asks for, where its own head does not say. */
  constructor(
    id: string,
    req: HttpRequest,
    res: HttpResponse,
    generation: Generation,
    startedMs: number,
    after: Aftercare,
    as: { readonly identity: Identity; readonly path: string } | null = null,
  ) {
    this.id = id
    this.after = after
    this.req = req
    this.res = res
    this.generation = generation
    this.startedMs = startedMs
    this.clientAddress = generation.proxies.addressOf(req)
    this.path = as === null ? pathOf(req.url ?? '') : as.path
    this.runsAs = as === null ? null : as.identity
    res.once('close', () => this.closed())
    res.once(REFUSED, (error: GatewayError) => this.cancellation.cancel(error))
  }

  /**
   * The exchange is about to end: its row goes to the ledger, once, and `facts` must say by now what it
   * is about. Resolves when the client may hear the end; null where it may at once.
   */
  ending(): Promise<void> | null {
    const { holding } = this
    this.holding = null
    const booked = this.book()
    return holding === null || booked === null ? (holding ?? booked) : both(holding, booked)
  }

  /** Of authenticated requests for a chat or to an upstream's own endpoints; a list of models costs nothing. */
  private book(): Promise<void> | null {
    if (this.isBooked || this.accountId === null) return null
    if (this.operation !== 'chat' && this.operation !== 'native') return null
    this.isBooked = true
    const beganMs = performance.now()
    const note = (): void => void (this.facts.bookMs = performance.now() - beganMs)
    const booked = this.after.book(this, beganMs)
    if (booked === null) note()
    // Before whoever waits for it goes on.
    else void booked.then(note)
    return booked
  }

  /** A client may leave in any phase (another gateway once held 24,000 zombie streams). */
  private closed(): void {
    if (this.isBrokenOff || hasLeft(this.res)) return
    this.cancellation.cancel(new GatewayError('client_gone', 'The client closed the connection.'))
  }
}

async function both(one: Promise<void>, other: Promise<void>): Promise<void> {
  await one
  await other
}
