/**
 * Copies a share of the clients' requests to the shadow targets of their routes. A copy never delays a reply:
 * it begins after its original was sent and has its own connection, breaker and ledger entry. If memory or
 * capacity is short, it is dropped and counted.
 */
import { modelAt, type RouteShadow } from '../routing/router.js'
import type { Identity } from '../../accounts/account.js'
import { NO_LABELS } from '../../accounts/labels.js'
import { isConfigured } from '../../config/config.js'
import { GatewayError } from '../../errors.js'
import { newRequestId } from '../../http/request-id.js'
import { SHADOW_ACCOUNT, type LedgerEntry } from '../../ledger/entry.js'
import { storeReservationOf, type LimitReservation } from '../../limits/reservation-types.js'
import type { ComparedRequest } from '../../observe/metrics/comparison-metrics.js'
import type { Demand } from '../../store/ledger.js'
import { chargedNanoUsd } from '../../store/records/count-usage.js'
import type { ReplyListener } from '../attempts/attempt-result.js'
import type { BodyMemory, HeldMemory } from '../body-memory.js'
import { estimateCandidateCost } from '../charges/estimate-candidate-cost.js'
import { entryOf } from '../charges/ledger-entry.js'
import { maxUseOf, provisionalEntry } from '../charges/provisional-entry.js'
import { maxNanoUsd } from '../charges/refuse-unknown-cost.js'
import { ServedRequest } from '../served-request.js'
import type { Overload } from '../overload.js'
import { directRoute, type Candidate } from '../phases/route.js'
import { refusalAt } from '../objects/operator-objects.js'
import { permitsShadow } from '../phases/permit-tools.js'
import { Intake, type Call } from '../phases/call.js'
import { sent } from '../phases/relay.js'
import { unexpectedFailureOf, toGatewayError } from '../phases/send-error.js'
import { NO_TERMS, send, type SendServices } from '../phases/send.js'
import type { ReportingServices } from '../phases/settle.js'
import type { ReplyTransform } from '../streams/reply-transform.js'

/** Maximum share of the memory for bodies that all copies together may use. */
const MEMORY_SHARE = 1 / 8

/** The services that the copies of a process share. */
interface ShadowsServices extends ShadowServices {
  readonly bodies: BodyMemory
  readonly overload: Pick<Overload, 'closesConnections'>
}

/** The target of a copy, and its original. */
interface Copying {
  readonly shadow: RouteShadow
  /** The reply to the original. */
  readonly reply: Promise<unknown>
  /** Those that listen to the copy, too. */
  readonly listeners: readonly ReplyListener[]
}

/** The shadow requests of one process. */
export class Shadows {
  private readonly services: ShadowsServices
  /** The running copies, each with a promise that resolves at its end. */
  private readonly running = new Map<ShadowRun, Promise<void>>()
  private isClosed = false

  constructor(services: ShadowsServices) {
    this.services = services
  }

  /**
   * Copies the request if it is in the sample; returns null if it is not, or if the copy is dropped. Never
   * throws or blocks.
   */
  copy(original: ServedRequest, copying: Copying): ShadowRun | null {
    const { shadow, reply } = copying
    const { call } = original
    const { random } = original.generation.states.clock
    if (random() * 100 >= shadow.config.percent || isStored(call)) return null
    const { services } = this
    const bytes = original.held.heldBytes
    const reason = this.refusal(shadow, bytes)
    if (reason !== null) {
      services.metrics.comparison.shadowDropped(shadow.target.route, reason)
      return null
    }
    const copyMemory = services.bodies.open(SHADOW_ACCOUNT)
    copyMemory.take(bytes)
    const run = new ShadowRun(original, copying, copyMemory, services)
    this.running.set(run, this.begin(run, isOut(original, reply)))
    return run
  }

  /** Calls `visit` for the reservation of each copy. */
  each(visit: (limitReservation: LimitReservation) => void): void {
    for (const { limitReservation } of this.running.keys())
      if (limitReservation !== null) visit(limitReservation)
  }

  /** Cancels all copies and starts no more; resolves when their ledger entries are written. */
  async close(): Promise<void> {
    this.isClosed = true
    const reason = new GatewayError('draining', 'The gateway is shutting down.')
    for (const run of this.running.keys()) run.cancellation.cancel(reason)
    await Promise.all(this.running.values())
  }

  private async begin(run: ShadowRun, ready: Promise<void>): Promise<void> {
    await run.run(ready)
    this.running.delete(run)
  }

  private refusal({ subject, config }: RouteShadow, bytes: number): DropReason | null {
    const { bodies, ledgerWriter, overload } = this.services
    if (this.isClosed) return 'draining'
    if (ledgerWriter.isRefusing) return 'store_unavailable'
    if (overload.closesConnections) return 'overload'
    let runningCopies = 0
    for (const { shadow } of this.running.keys()) if (shadow.subject === subject) runningCopies += 1
    if (runningCopies >= config.concurrent) return 'concurrent'
    return bodies.hasSpareRoom(SHADOW_ACCOUNT, bytes, MEMORY_SHARE) ? null : 'memory'
  }
}

/**
 * Whether the gateway or the provider stores the reply. Such requests are not copied, because the copy's
 * reply would be stored too.
 */
function isStored({ keep, history, body, clientCodec }: Call): boolean {
  if (keep !== undefined || history !== undefined || body['store'] === true) return true
  return clientCodec.storage?.shouldStore(body) === true
}

/** Resolves when the original request has been sent. A large one may take until its reply begins. */
async function isOut({ attempts }: ServedRequest, reply: Promise<unknown>): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
  if (attempts !== null && attempts.list.length > 0) return
  await reply.catch(() => undefined)
}

/** The reply of a copy is dropped, so it is not judged. */
function unguarded(call: Call): Call {
  if (call.guard === undefined) return call
  const copy = { ...call }
  delete copy.guard
  return copy
}

const SHADOW: Identity = {
  keyId: SHADOW_ACCOUNT,
  accountId: SHADOW_ACCOUNT,
  plan: 'max',
  digest: null,
  expiresAtMs: null,
  models: null,
  allowTools: null,
  limits: null,
  labels: NO_LABELS,
}

/** Reasons for not copying a sampled request. */
type DropReason =
  | 'concurrent'
  | 'spend'
  | 'memory'
  | 'overload'
  | 'breaker'
  | 'store_unavailable'
  | 'unsupported'
  | 'draining'

/** The services that a shadow request uses. */
type ShadowServices = SendServices & ReportingServices

/** Runs in parallel with its original, and shares only the parsed body with it. */
class ShadowRun extends ServedRequest {
  readonly shadow: RouteShadow
  /** The request that is copied, and its account. */
  private readonly original: { readonly id: string; readonly accountId: string }
  private readonly listeners: readonly ReplyListener[]
  private readonly services: ShadowServices
  private ownEntry: LedgerEntry | null = null
  private originalEntry: LedgerEntry | null = null

  /** `held` counts the memory of the body; the run ends it. */
  constructor(
    original: ServedRequest,
    { shadow, listeners }: Copying,
    held: HeldMemory,
    services: ShadowServices,
  ) {
    super(newRequestId(Date.now()), original.generation)
    this.original = { id: original.id, accountId: original.identity.accountId }
    this.identified = original.identified
    this.authenticated = { identity: SHADOW, tookMs: 0 }
    this.intake = new Intake(held)
    this.received = unguarded(original.call)
    this.shadow = shadow
    this.listeners = listeners
    this.services = services
  }

  /** Runs to the end. `ready` resolves when the original request has been sent. Never rejects. */
  async run(ready: Promise<unknown>): Promise<void> {
    this.generation.enter()
    try {
      await ready
      const dropped = await this.admitAndSend()
      if (dropped !== null) this.services.metrics.comparison.shadowDropped(this.shadow.target.route, dropped)
    } catch (thrown) {
      this.services.log.error('unforeseen failure', thrown, { request_id: this.id })
    } finally {
      this.held.end()
      this.generation.leave()
    }
  }

  /** The ledger entry of the original request: both sides are compared when both have ended. */
  originalEnded(entry: LedgerEntry): void {
    this.originalEntry = entry
    this.compare()
  }

  private async admitAndSend(): Promise<DropReason | null> {
    if (this.cancellation.reason !== null) return 'draining'
    const candidate = this.copyCandidate()
    if (candidate === null) return 'unsupported'
    const { name } = candidate.target.upstream.config
    if (!this.generation.shadowStates.of(name).breaker.allows()) return 'breaker'
    const refused = await this.admit(candidate)
    if (refused !== null) return refused
    await this.send(candidate)
    await this.settle()
    return null
  }

  /**
   * Null if the target does not support the operation, is not configured, or does not allow a tool of the
   * request.
   */
  private copyCandidate(): Candidate | null {
    const { generation, call, shadow } = this
    const { request } = call
    const target = generation.target(shadow.target, request, call)
    if (target === null || !isConfigured(target.upstream.config)) return null
    if (!permitsShadow(call, { target })) return null
    const model = modelAt(shadow.target, request.model)
    if (refusalAt(call, { target, model }, generation) !== null) return null
    return { target, model, defaults: null, isFallback: false, latency: null, canary: null }
  }

  /** Reserves a slot and the maximum cost of the copy. */
  private async admit(candidate: Candidate): Promise<DropReason | null> {
    const { original, generation, call, shadow, services } = this
    const { request } = call
    const { target, model } = candidate
    const estimate = estimateCandidateCost(generation, call, candidate, {
      withUnknown: true,
    })
    const { limiting } = generation.snapshot.config
    let costNanoUsd: number
    try {
      costNanoUsd = maxNanoUsd(estimate, model, limiting)
    } catch (error) {
      if (error instanceof GatewayError) return 'spend'
      throw error
    }
    const { subject } = shadow
    const { concurrent, nanoUsdPerDay: limitNanoUsd } = shadow.config
    const demands: Demand[] = [
      { kind: 'concurrent', subject, shared: true, limit: concurrent },
      { kind: 'usd_day', subject, shared: true, limitNanoUsd, costNanoUsd },
    ]
    const modelName = generation.limitedAs(request.model, target)
    const unsettled = {
      ...provisionalEntry({ x: this, request, target, model, modelName }, maxUseOf(estimate)),
      shadowOf: original.id,
    }
    const admissionRequest = { requestId: this.id, accountId: SHADOW_ACCOUNT, demands, unsettled }
    const { limitReservation, closed, limitStates } = await services.limiter.admit(admissionRequest)
    if (limitReservation === null) {
      if (closed) return 'store_unavailable'
      return limitStates[0]?.retryAfterMs === 0 ? 'spend' : 'concurrent'
    }
    this.limitReservation = limitReservation
    return null
  }

  private async send(candidate: Candidate): Promise<void> {
    const { original, services, generation, listeners } = this
    this.routed = directRoute(candidate)
    this.startedMs = performance.now()
    try {
      const states = generation.shadowStates
      // The reasoning state of earlier turns is the account's own; that of the copy's reply is dropped.
      const reasoning = { accountId: original.accountId, isKept: false }
      const outbound = { states, terms: NO_TERMS, reasoning, mark: null, listeners }
      const reply = await send(this, outbound, services)
      const headMs = reply.kind === 'stream' ? performance.now() - this.startedMs : null
      // A shadow request has no client.
      this.delivered = { ...sent(0), headMs }
      if (reply.kind === 'stream') await drained(reply.stream)
    } catch (thrown) {
      this.error = toGatewayError(thrown)
      this.failure = unexpectedFailureOf(this.error)
    }
  }

  /** Writes the ledger entry, which frees the reservation. */
  private async settle(): Promise<void> {
    const { services, limitReservation } = this
    const { ledgerWriter, limiter, log } = services
    const nowMs = performance.now()
    const entry = { ...entryOf(this, nowMs), shadowOf: this.original.id }
    if (limitReservation !== null) {
      limiter.end(limitReservation, chargedNanoUsd(entry))
      this.limitReservation = null
      await ledgerWriter.settle(entry, storeReservationOf(limitReservation))
    }
    this.ownEntry = entry
    this.compare()
    const failure = this.attempts?.failure ?? this.failure ?? null
    if (failure !== null) log.error('unforeseen failure', failure, { request_id: this.id })
  }

  private compare(): void {
    const { originalEntry, ownEntry } = this
    if (originalEntry === null || ownEntry === null) return
    const { metrics } = this.services
    const { route } = this.shadow.target
    metrics.comparison.compared(route, 'primary', figuresOf(originalEntry))
    metrics.comparison.compared(route, 'shadow', figuresOf(ownEntry))
  }
}

function figuresOf({ upstream, status, outcome, hops, usage, costNanoUsd }: LedgerEntry): ComparedRequest {
  const { firstContent, receive = 0 } = hops
  const firstContentMs = firstContent === undefined ? null : Math.max(0, firstContent - receive)
  return { upstream: upstream ?? 'none', status, outcome, firstContentMs, usage, costNanoUsd }
}

/** Reads a stream to its end, or to its failure, and drops it. */
function drained(stream: ReplyTransform): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => resolve()
    stream.once('end', done).once('failed', done).once('close', done)
    stream.drain()
    if (stream.hasFailed) done()
  })
}
