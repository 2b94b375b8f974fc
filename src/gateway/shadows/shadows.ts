/**
 * Copies a share of the clients' requests to the shadow targets of their routes. Nothing here is on the path of a reply:
 * a copy begins when its original is sent, has its own connection, breaker and ledger entry, and is dropped, and counted,
 * rather than take memory or capacity that clients need.
 */
import { GatewayError } from '../../errors.js'
import type { LimitReservation } from '../../limits/limit-reservation.js'
import type { RouteShadow } from '../../routing/router.js'
import type { Candidates } from '../attempts/candidates.js'
import type { BodyBudget, Holding } from '../bodies/body-budget.js'
import type { Overload } from '../overload/overload.js'
import type { Call } from '../phases/receive.js'
import {
  SHADOW_ACCOUNT,
  ShadowRun,
  type DropReason,
  type Original,
  type ShadowServices,
} from './shadow-run.js'

/** All copies together may hold this share of the memory for bodies. */
const MEMORY_SHARE = 1 / 8

/** What the copies of a process share. */
export interface ShadowsServices extends ShadowServices {
  readonly bodies: BodyBudget
  readonly overload: Pick<Overload, 'closesConnections'>
}

/** The target of a copy, and the memory and attempts of its original. */
export interface Copying {
  readonly shadow: RouteShadow
  readonly held: Holding
  readonly sending: Pick<Candidates, 'sent' | 'reply'>
}

/** One per process. */
export class Shadows {
  private readonly services: ShadowsServices
  /** Each copy, and what resolves at its end. */
  private readonly running = new Map<ShadowRun, Promise<void>>()
  private isClosed = false

  constructor(services: ShadowsServices) {
    this.services = services
  }

  /** Copies the request if it is drawn; null if it is not, or there is no room. Throws nothing and waits for nothing. */
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
    const own = services.bodies.open(SHADOW_ACCOUNT)
    own.take(bytes)
    const run = new ShadowRun(original, { shadow, held: own }, services)
    this.running.set(run, this.begin(run, sending))
    return run
  }

  /** Calls `visit` for the reservation of each copy. */
  each(visit: (limitReservation: LimitReservation) => void): void {
    for (const { limitReservation } of this.running.keys())
      if (limitReservation !== null) visit(limitReservation)
  }

  /** Cancels all copies and lets none begin; resolves when the ledger has their entries. */
  async close(): Promise<void> {
    this.isClosed = true
    const reason = new GatewayError('draining', 'The gateway is shutting down.')
    for (const run of this.running.keys()) run.cancellation.cancel(reason)
    await Promise.all(this.running.values())
  }

  private async begin(run: ShadowRun, { sent, reply }: Copying['sending']): Promise<void> {
    // A request that is still being prepared, a large one, is out at the latest when its reply begins.
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
    let own = 0
    for (const { shadow } of this.running.keys()) if (shadow.subject === subject) own += 1
    if (own >= config.concurrent) return 'concurrent'
    return bodies.hasSpareRoom(SHADOW_ACCOUNT, bytes, MEMORY_SHARE) ? null : 'memory'
  }
}

/** Whether the reply is kept, by the gateway or the provider: a copy of it must not be. */
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
