/**
 * Accepts tokens of workloads while the configuration has `identity`: loads their code with the first such
 * generation, and fetches the keys of issuers.
 */
import type { Authenticator } from '../accounts/authentication/authenticator.js'
import type { WorkloadTokens } from '../accounts/workload-identity/verify-token.js'
import type { Config } from '../config/config.js'
import { openConnectionPool } from '../gateway/upstreams/connection-pool.js'
import type { Logger } from '../observe/log.js'
import type { Store } from '../store/store.js'

/** Time limit of a request to an issuer. */
const TIMEOUT_MS = 5_000
const CONNECT_MS = 3_000
/** The key sets of large providers have about 10 KB. */
const MAX_BYTES = 1_048_576
/** Minimum time between two log lines about one issuer. */
const LOG_EVERY_MS = 60_000

export class WorkloadIdentities {
  private readonly authenticator: Authenticator
  private readonly store: Store
  private readonly log: Pick<Logger, 'warn'>
  private tokens: WorkloadTokens | null = null
  private identity: Config['identity'] = []
  private readonly loggedAtMs = new Map<string, number>()

  constructor(authenticator: Authenticator, store: Store, log: Pick<Logger, 'warn'>) {
    this.authenticator = authenticator
    this.store = store
    this.log = log
  }

  /** Puts the identities of a generation in force; resolves when their code is loaded. */
  async adopt({ identity }: Pick<Config, 'identity'>): Promise<void> {
    this.identity = identity
    if (identity.length === 0) {
      this.tokens?.adopt([])
      this.authenticator.acceptTokens(null)
      return
    }
    this.tokens ??= await this.load()
    // Another generation may have come in between.
    if (this.identity !== identity) return
    this.tokens.adopt(identity)
    this.authenticator.acceptTokens(this.tokens)
  }

  private async load(): Promise<WorkloadTokens> {
    const { WorkloadTokens: Loaded } = await import('../accounts/workload-identity/verify-token.js')
    return new Loaded({
      store: this.store,
      get: getText,
      now: () => performance.now(),
      wallClock: Date.now,
      onFailure: (issuer, reason) => this.failed(issuer, reason),
    })
  }

  private failed(issuer: string, reason: string): void {
    const nowMs = performance.now()
    const lastMs = this.loggedAtMs.get(issuer) ?? Number.NEGATIVE_INFINITY
    if (nowMs - lastMs < LOG_EVERY_MS) return
    this.loggedAtMs.set(issuer, nowMs)
    this.log.warn('the keys of an issuer of tokens cannot be fetched', { host: issuer, reason })
  }
}

/** The body of a 200 reply; redirects are not followed. */
async function getText(url: string): Promise<string> {
  const { origin, pathname, search } = new URL(url)
  const pool = openConnectionPool({
    name: 'identity',
    baseUrl: origin,
    maxConnections: 1,
    allowPrivateAddress: true,
    tls: null,
    http2: false,
    proxy: 'env',
    timeouts: { connectMs: CONNECT_MS },
  })
  try {
    const { statusCode, body } = await pool.request({
      origin,
      path: pathname + search,
      method: 'GET',
      headers: { accept: 'application/json', 'user-agent': 'sluice' },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    if (statusCode !== 200) throw new Error(`answers with status ${statusCode}`)
    let text = ''
    body.setEncoding('utf8')
    for await (const chunk of body) {
      text += String(chunk)
      if (text.length > MAX_BYTES) throw new Error('answers with more than 1 MiB')
    }
    return text
  } finally {
    // Keys are fetched every few minutes: the connection is not kept.
    await pool.destroy()
  }
}
