/**
 * Charges the replies of a WebSocket by their usage events, each as a ledger entry of its own that counts
 * against limits per minute and budgets; the session ends when they are exhausted.
 */
import { GatewayError } from '../../errors.js'
import { UsageScan, type ScannedUsage } from '../objects/usage-scan.js'
import { FrameReader } from './frame-reader.js'
import {
  chargeWork,
  maxReplyCost,
  meteredEntry,
  MeteredUsage,
  needsPrice,
  completePrice,
  type Metered,
  type MeterServices,
} from './charge-native-work.js'

/** Entries of one session are numbered. */
export class RealtimeSession {
  /** The maximum cost of the reply that is being generated; null if it is unknown. */
  readonly reservedNanoUsd: number | null
  private readonly metered: Metered
  private readonly services: MeterServices
  private readonly model: string
  private readonly onExhausted: (error: GatewayError) => void
  private readonly reader: FrameReader
  private scan: UsageScan | null = null
  private isReadable = true
  private running = 0
  private count = 0
  private charging: Promise<void> = Promise.resolve()

  /** `model` comes from the address. */
  constructor(
    metered: Metered,
    model: string,
    {
      services,
      onExhausted,
    }: {
      readonly services: MeterServices
      /** Called with the reason for ending the session. */
      readonly onExhausted: (error: GatewayError) => void
    },
  ) {
    this.metered = metered
    this.model = model
    this.services = services
    this.onExhausted = onExhausted
    const { x, target } = metered
    this.reservedNanoUsd = maxReplyCost(x.generation, target.upstream.config.name, model)
    this.reader = new FrameReader({
      part: (bytes) => this.part(bytes),
      end: () => this.message(),
    })
  }

  /** Bytes of the upstream, in order. */
  read(chunk: Buffer): void {
    this.reader.write(chunk)
    if (this.reader.isLost) this.lost()
  }

  /** Whether a reply was being generated when the session ended, which is billed without a usage event. */
  get isInReply(): boolean {
    return this.running > 0
  }

  /** Resolves when all entries are written. */
  ended(): Promise<void> {
    return this.charging
  }

  private part(bytes: Buffer): void {
    if (this.scan === null) {
      this.scan = new UsageScan(false, (value) => this.event(value))
      this.isReadable = true
    }
    if (this.isReadable) this.isReadable = this.scan.write(bytes)
  }

  private message(): void {
    if (this.isReadable) this.scan?.end()
    this.scan = null
  }

  private event(value: ScannedUsage): void {
    const { type, usage } = value
    if (type === 'response.created') this.running += 1
    if (type === 'response.done') this.running = Math.max(0, this.running - 1)
    if (usage === null) return
    const isFinal = type === '' || type === 'response.done' || type.endsWith('.completed')
    if (isFinal) this.charging = this.charging.then(() => this.charge(value))
  }

  private async charge(value: ScannedUsage): Promise<void> {
    const { metered, model } = this
    const { x, target } = metered
    const used = new MeteredUsage()
    const price = completePrice(x.generation, target.upstream.config.name, model)
    used.add({ ...value, model }, price)
    this.count += 1
    const entry = meteredEntry(metered, `${x.id}-${this.count}`, used)
    const exhausted = await chargeWork(metered, entry, this.services)
    if (exhausted !== null) this.onExhausted(exhausted)
  }

  private lost(): void {
    if (needsPrice(this.metered)) {
      const message = 'The frames of the upstream cannot be read for their usage.'
      this.onExhausted(new GatewayError('upstream_malformed', message))
    }
  }
}
