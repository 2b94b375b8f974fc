/**
 * The gateways that share a store, each with the configuration that it has in force. Whatever the engine; an embedded
 * store is of one machine and has no fleet.
 */

/** A gateway of the fleet. */
export interface FleetMember {
  /** Made at random with each start; 1 to 100 characters. */
  readonly id: string
  /** The name of its machine or container. */
  readonly host: string
  readonly generation: number
  /** SHA-256 of its configuration and catalogue, hex. */
  readonly hash: string
}

/** Fails as the store does. */
export interface Fleet {
  /** Publishes a gateway for `ttlMs` and resolves with all that are published now, at most 1,000, in order of ids. */
  publish(member: FleetMember, ttlMs: number): Promise<FleetMember[]>
  /** Takes a gateway out before its time. */
  leave(id: string): Promise<void>
}

/** More gateways than this are not listed. */
export const MAX_MEMBERS = 1_000
