/**
 * Active health checks: a `GET` to each upstream with `probe`, through its connection pool, whose result goes
 * to the circuit breaker. Their timers do not keep the process running.
 */
import { isConfigured, type ProbeConfig, type Config } from '../../config/config.js'
import { upstreamCodecOf } from '../../formats/index.js'
import { ownHeaders } from '../upstream-headers.js'
import { requestPathAt } from '../upstreams/upstream-address.js'
import type { ReplyHandler, UpstreamCall } from '../upstreams/upstream-call.js'
import type { Upstream, Upstreams, UpstreamPool } from '../upstreams/upstreams.js'
import type { Breaker } from './breaker.js'
import type { UpstreamStates } from './upstream-state.js'

/** The settings of one probe. */
interface ProbeOptions {
  readonly probe: ProbeConfig
  readonly pool: UpstreamPool
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
    this.running = pool.send({ method: 'GET', path, headers: headers(), body: null }, new ProbeReply(ended))
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

/** Starts the probes; the caller must stop each. Upstreams without `probe` or without a key have none. */
export function startHealthProbes(
  { upstreams }: Pick<Config, 'upstreams'>,
  opened: Upstreams,
  states: UpstreamStates,
): HealthProbe[] {
  return Object.keys(upstreams).flatMap((name) => {
    const upstream = opened.get(name)
    const probe = upstream === undefined ? null : startProbe(upstream, states)
    return probe === null ? [] : [probe]
  })
}

function startProbe({ config, pool, address }: Upstream, states: UpstreamStates): HealthProbe | null {
  const { probe } = config
  if (probe === null || !isConfigured(config)) return null
  const upstreamCodec = upstreamCodecOf(config.dialect === 'openai' ? 'openai-chat' : config.dialect, config)
  if (upstreamCodec === null) return null
  const { breaker, credentials } = states.of(config.name)
  const path = requestPathAt({ ...address, path: null }, { path: probe.path, model: '' })
  const headers = (): string[] => {
    const { key } = credentials.next(new Set(), null) ?? { key: null }
    const own = Object.entries(ownHeaders(config, upstreamCodec, key))
    return ['accept', 'application/json', ...own.flat()]
  }
  return new HealthProbe({ probe, pool, path, headers, breaker })
}
