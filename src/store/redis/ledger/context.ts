/**
 * The parts that the classes of a ledger in Redis share.
 */
import type { RedisConnection } from '../connection/redis-connection.js'
import type { Argument } from '../connection/script.js'
import type { Slices } from '../limits/slices.js'
import type { LedgerKeys } from './ledger-keys.js'

/** The parts of one ledger. */
export interface LedgerContext {
  readonly link: RedisConnection
  readonly names: LedgerKeys
  /** The time for scripts, in tests; empty for the server's clock. */
  readonly clock: () => Argument
  readonly slices: Slices
  /** The name of this process in slices and slots. */
  readonly processName: string
}
