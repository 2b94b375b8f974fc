/**
 * Publishes the configuration of this gateway to the fleet, and compares it with those of the other gateways.
 * All workers of a gateway publish the same member, so the loss of one worker leaves no gap.
 */
import { shownHash, type Snapshot } from '../config/config.js'
import type { Metrics } from '../observe/metrics/metrics.js'
import type { Fleet, FleetMember } from '../store/store.js'

const PUBLISH_MS = 5_000
/** Longer than two rounds, so that two failures do not remove this gateway from the fleet. */
const TTL_MS = 16_000

/** Options of a `FleetWatch`. */
export interface FleetWatchOptions {
  /** Null if the store is for one machine. */
  readonly fleet: Fleet | null
  /** The gateway, the same for all its workers. */
  readonly id: string
  readonly snapshot: () => Snapshot
  readonly metrics: Metrics
}

/** Runs until `close`. Does not keep the process running. */
export class FleetWatch {
  private readonly options: FleetWatchOptions
  private readonly timer: NodeJS.Timeout | null
  private known: readonly FleetMember[] | null = null
  private publishing: Promise<void> = Promise.resolve()

  constructor(options: FleetWatchOptions) {
    this.options = options
    this.timer = options.fleet === null ? null : setInterval(() => this.publish(), PUBLISH_MS)
    this.timer?.unref()
    this.publish()
  }

  /** The gateways of the fleet with this one; null without a fleet, or while the store is unavailable. */
  get members(): readonly FleetMember[] | null {
    return this.known
  }

  /** `ok`, or the gateways with another configuration. */
  get state(): string {
    const others = this.differing()
    if (others.length === 0) return 'ok'
    const all = this.known?.length ?? 0
    const names = others.slice(0, 5).map(({ host, hash }) => `${host} (${shownHash(hash)})`)
    const more = others.length > names.length ? ', …' : ''
    return `${others.length} of ${all} gateways have another configuration: ${names.join(', ')}${more}`
  }

  /** Publishes at once, for a new generation. */
  publish(): void {
    const { fleet, id, snapshot } = this.options
    if (fleet === null) return
    this.publishing = this.publishing.then(async () => {
      const { generation, fileHash: hash, config } = snapshot()
      const { name: host } = config.server
      try {
        this.known = await fleet.publish({ id, host, generation, hash }, TTL_MS)
      } catch {
        // The probe of the store reports the failure.
        this.known = null
      }
      const { metrics } = this.options
      metrics.fleet(this.known?.length ?? 0, this.differing().length)
    })
  }

  /** Leaves the fleet. Other workers of this gateway publish it again. */
  async close(): Promise<void> {
    if (this.timer !== null) clearInterval(this.timer)
    await this.publishing
    await this.options.fleet?.leave(this.options.id).catch(() => undefined)
  }

  private differing(): FleetMember[] {
    const { id, snapshot } = this.options
    const { fileHash } = snapshot()
    return (this.known ?? []).filter((member) => member.id !== id && member.hash !== fileHash)
  }
}
