/** When the certificates in use expire, for the metrics: that of the data port and the client certificates for upstreams. */
import type { UpstreamConfig } from '../config/config.js'
import { expiryOf } from '../http/tls-files.js'
import type { Levels } from '../observe/metrics/levels.js'

/** The name of the data port's certificate, beside those of upstreams. */
const DATA_PORT = 'none'

/** What of an upstream names its client certificate. */
type Certified = Pick<UpstreamConfig, 'name' | 'tls'>

/** Reports every certificate whenever one changes. */
export class Certificates {
  private readonly levels: Pick<Levels, 'certificatesExpire'>
  private listener: number | null = null
  private upstreams: readonly Certified[] = []

  constructor(levels: Pick<Levels, 'certificatesExpire'>) {
    this.levels = levels
  }

  /** The listener uses this certificate, in PEM. */
  listens(pem: string): void {
    this.listener = expiryOf(pem)
    this.report()
  }

  /** The upstreams of the generation in force. */
  adopt(upstreams: readonly Certified[]): void {
    this.upstreams = upstreams
    this.report()
  }

  private report(): void {
    const expiries = new Map<string, number>()
    if (this.listener !== null) expiries.set(DATA_PORT, this.listener)
    for (const { name, tls } of this.upstreams) {
      const pem = tls?.cert ?? null
      if (pem !== null) expiries.set(name, expiryOf(pem))
    }
    this.levels.certificatesExpire(expiries)
  }
}
