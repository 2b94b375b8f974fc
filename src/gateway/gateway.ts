/**
 * The data plane of one process: takes requests, holds the generation in force, ends exchanges on
 * shutdown. Knows no listener; `server.ts` has one.
 */
import { getHeapStatistics } from 'node:v8'
import type { Authenticator } from '../auth/authenticate.js'
import type { Snapshot } from '../config/config.js'
import { GatewayError } from '../errors.js'
import type { Request } from '../http/request.js'
import type { Response } from '../http/response.js'
import type { Logger } from '../log.js'
import type { Metrics } from '../metrics/hops.js'
import type { Escrow } from '../reasoning/escrow.js'
import { Deadlines } from './deadlines.js'
import { Exchange } from './exchange.js'
import { Generation } from './generation.js'
import { newRequestId } from './id.js'
import { serve, type Services } from './pipeline.js'
import { BodyBudget } from './receive.js'

/** Bodies may hold a quarter of the heap; beyond that new ones are refused. */
const BODY_SHARE_OF_HEAP = 0.25

/** Serves requests with the generation in force, until it is drained. */
export class Gateway {
  private readonly services: Services
  private readonly inFlight = new Set<Exchange>()
  private current: Generation
  /** Generations retire in order: an older one may share pools with those after it. */
  private retired: Promise<void> = Promise.resolve()

  constructor(
    parts: { authenticator: Authenticator; escrow: Escrow; metrics: Metrics; log: Logger },
    snapshot: Snapshot,
  ) {
    this.services = {
      ...parts,
      deadlines: new Deadlines(),
      bodies: new BodyBudget(getHeapStatistics().heap_size_limit * BODY_SHARE_OF_HEAP),
    }
    this.current = new Generation(snapshot, parts.metrics, null)
    parts.metrics.configLoaded(snapshot.generation)
    parts.authenticator.watch({
      digests: () => this.digestsInUse(),
      end: (digest, why) => this.endAllOf(digest, why),
    })
  }

  /** The generation that new requests get. */
  get generation(): number {
    return this.current.snapshot.generation
  }

  /** Takes one request that has passed the front door. */
  handle(req: Request, res: Response): void {
    const generation = this.current
    const x = new Exchange(newRequestId(Date.now()), req, res, generation, performance.now())
    generation.enter()
    this.inFlight.add(x)
    void serve(x, this.services).finally(() => {
      this.inFlight.delete(x)
      generation.leave()
    })
  }

  /** New requests get the new generation; running ones keep theirs. */
  adopt(snapshot: Snapshot): void {
    const previous = this.current
    this.current = new Generation(snapshot, this.services.metrics, previous)
    this.services.metrics.configLoaded(snapshot.generation)
    const successor = this.current
    this.retired = this.retired.then(() => previous.supersede(successor))
  }

  /** Ends what still runs with an error that says so; streams get their error event. */
  endAll(): void {
    const reason = new GatewayError('draining', 'The gateway is shutting down; please try again.', {
      retryAfterSeconds: 1,
    })
    for (const x of this.inFlight) x.cancellation.cancel(reason)
  }

  private *digestsInUse(): Generator<string> {
    for (const { keyDigest } of this.inFlight) if (keyDigest !== null) yield keyDigest
  }

  private endAllOf(digest: string, why: GatewayError): void {
    for (const x of this.inFlight) if (x.keyDigest === digest) x.cancellation.cancel(why)
  }

  /** Lets go of every upstream connection and timer. */
  async close(): Promise<void> {
    this.services.deadlines.close()
    await this.current.destroy()
  }
}
