/**
 * Copies a share of the clients' requests to the shadow targets of their routes. A copy never delays a reply:
 * it begins after its original was sent and has its own connection, breaker and ledger entry. If memory or
 * capacity is short, it is dropped and counted.
 */
import { GatewayError } from '../../errors.js'
import type { LimitReservation } from '../../limits/reservation-types.js'
import type { RouteShadow } from '../../routing/router.js'
import type { Candidates } from '../attempts/try-candidates.js'
import type { BodyMemory, HeldMemory } from '../bodies/body-memory.js'
import type { Overload } from '../overload/overload.js'
import type { Call } from '../phases/receive.js'
import {
  SHADOW_ACCOUNT,
  ShadowRun,
  type DropReason,
  type Original,
  type ShadowServices,
} from './shadow-run.js'

/** Maximum share of the memory for bodies that all copies together may use. */
const MEMORY_SHARE = 1 / 8

/** The services that the copies of a process share. */
export interface ShadowsServices extends ShadowServices {
  readonly bodies: BodyMemory
  readonly overload: Pick<Overload, 'closesConnections'>
}

/** The target of a copy, and the memory and attempts of its original. */
export interface Copying {
  readonly shadow: RouteShadow
  readonly held: HeldMemory
  readonly sending: Pick<Candidates, 'sent' | 'reply'>
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
  copy(original: Original, { shadow, held, sending }: Copying): ShadowRun | null {
    const { random } = original.generation.states.clock
    if (random() * 100 >= shadow.config.percent || isStored(original.call)) return null
    const { services } = this
    const bytes = held.heldBytes
    const reason = this.refusal(shadow, bytes)
    if (reason !== null) {
      services.metrics.comparison.shadowDropped(shadow.target.route, reason)
      return null
    }
    const copyMemory = services.bodies.open(SHADOW_ACCOUNT)
    copyMemory.take(bytes)
    const run = new ShadowRun(original, { shadow, held: copyMemory }, services)
    this.running.set(run, this.begin(run, sending))
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

  private async begin(run: ShadowRun, { sent, reply }: Copying['sending']): Promise<void> {
    // A large request may still be being prepared; it has been sent when its reply begins.
    const isOut = sent.attempts.length > 0
    const ready = isOut ? new Promise((resolve) => setImmediate(resolve)) : settled(reply)
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
function isStored({ keep, history, body, ingress }: Call): boolean {
  if (keep !== undefined || history !== undefined || body['store'] === true) return true
  return ingress.storage?.shouldStore(body) === true
}

async function settled(reply: Promise<unknown>): Promise<void> {
  await reply.then(
    () => undefined,
    () => undefined,
  )
}
