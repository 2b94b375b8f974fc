/**
 * Active health checks: a `GET` to each upstream with `probe`, through its connection pool, whose result goes
 * to the circuit breaker. Their timers do not keep the process running.
 */
import type { ProbeConfig } from '../../../config/config.js'
import type { RequestQueue } from '../../../upstreams/pool/request-queue.js'
import type { ReplyHandler, UpstreamCall } from '../../../upstreams/pool/upstream-call.js'
import type { Breaker } from './breaker.js'

/** The settings of one probe. */
export interface ProbeOptions {
  readonly probe: ProbeConfig
  readonly pool: RequestQueue
  /** Includes the path of the base URL and the configured query. */
  readonly path: string
  /** Returns name, value, …: a credential that is not resting, and the configured headers. */
  readonly headers: () => readonly string[]
  readonly breaker: Breaker
}

/** A probe without a reply within this time has failed. */
const MAX_WAIT_MS = 5_000

/** The health checks of one upstream, until `stop`. */
export class HealthProbe {
  private readonly options: ProbeOptions
  private readonly timer: NodeJS.Timeout
  private running: UpstreamCall | null = null
  private deadline: NodeJS.Timeout | null = null

  constructor(options: ProbeOptions) {
    this.options = options
    this.timer = setInterval(() => this.send(), options.probe.intervalMs)
    this.timer.unref()
    this.send()
  }

  /** Ends the checks; a running one is aborted without a result. */
  stop(): void {
    clearInterval(this.timer)
    this.running?.abort()
    this.clear()
  }

  private send(): void {
    if (this.running !== null) return
    const { pool, path, headers, probe, breaker } = this.options
    const ended = (isHealthy: boolean): void => {
      if (this.running === null) return
      this.clear()
      if (isHealthy) breaker.probeSucceeded()
      else breaker.probeFailed()
    }
    this.running = pool.send(
      { method: 'GET', path, headers: headers(), body: null },
      new ProbeReply(ended),
    )
    const waitMs = Math.min(MAX_WAIT_MS, probe.intervalMs)
    this.deadline = setTimeout(() => {
      this.running?.abort()
      ended(false)
    }, waitMs)
    this.deadline.unref()
  }

  private clear(): void {
    this.running = null
    if (this.deadline !== null) clearTimeout(this.deadline)
    this.deadline = null
  }
}

/** A status below 500 means that the provider is available; the body is read and dropped. */
class ProbeReply implements ReplyHandler {
  private readonly ended: (isHealthy: boolean) => void
  private status = 0

  constructor(ended: (isHealthy: boolean) => void) {
    this.ended = ended
  }

  onRequestStart(): void {
    // The start of the request is not measured.
  }

  onResponseStart(status: number): void {
    this.status = status
  }

  onResponseData(): void {
    // The body is not used.
  }

  onResponseEnd(): void {
    this.ended(this.status < 500)
  }

  onResponseError(): void {
    this.ended(false)
  }
}
