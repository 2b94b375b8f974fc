/**
 * Checks the token of administrators of the ops port. Wrong tokens are logged, and an address that sends many
 * of them is throttled.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { WrongKeyCounts } from '../../auth/wrong-key-throttle.js'
import type { ConfigSource } from '../../config/generations/reload-and-roll-back.js'
import { GatewayError } from '../../errors.js'
import type { Logger } from '../../observe/log/log.js'

/** Wrong tokens of one address: 10 at once, then one a second. */
const RATE = { burst: 10, perSecond: 1 }
const MAX_ADDRESSES = 1_000

/** Compares tokens with `server.admin_token` in force. */
export class AdminTokens {
  private readonly failures = new WrongKeyCounts(MAX_ADDRESSES, RATE)
  private readonly source: ConfigSource
  private readonly log: Logger

  constructor(source: ConfigSource, log: Logger) {
    this.source = source
    this.log = log
  }

  /**
   * Whether the request has the token; false if it has none or `server.admin_token` is not set. Compares in
   * constant time. Throws `auth_throttled`, also for the right token, while its address sends too many wrong
   * ones: otherwise the throttle would not slow guesses.
   */
  accepts(req: Pick<IncomingMessage, 'headers' | 'socket'>): boolean {
    const { authorization } = req.headers
    const { adminToken } = this.source.current().config.server
    if (adminToken === null || authorization === undefined) return false
    const address = req.socket.remoteAddress ?? ''
    if (this.failures.isThrottled(address, performance.now())) {
      throw new GatewayError(
        'auth_throttled',
        'Too many wrong tokens came from this address: try again later.',
        { retryAfterSeconds: 1 },
      )
    }
    const given = /^bearer (\S+)$/i.exec(authorization)?.[1] ?? ''
    if (timingSafeEqual(digest(given), digest(adminToken))) return true
    this.failures.note(address, performance.now())
    this.log.warn('wrong admin token on the ops port', { client_address: address })
    return false
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
