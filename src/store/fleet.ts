/**
 * The gateways that share a store, each with its configuration in force. An embedded store has no fleet.
 */

/** A gateway of the fleet. */
export interface FleetMember {
  /** Random at each start; 1 to 100 characters. */
  readonly id: string
  /** The name of its machine or container. */
  readonly host: string
  readonly generation: number
  /** SHA-256 of its configuration and catalogue, hex. */
  readonly hash: string
}

/** Methods fail as those of `Store` do. */
export interface Fleet {
  /**
   * Publishes a gateway for `ttlMs` and resolves with all published gateways, at most 1,000, in order of ids.
   */
  publish(member: FleetMember, ttlMs: number): Promise<FleetMember[]>
  /** Removes a gateway before `ttlMs` is over. */
  leave(id: string): Promise<void>
}

/** More gateways than this are not listed. */
export const MAX_MEMBERS = 1_000
