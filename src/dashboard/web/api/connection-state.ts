/**
 * The state of the connection, from the results of all calls. While it is lost, figures are not shown as
 * live.
 */
import { useSyncExternalStore } from 'react'

/** The connection to the gateway. */
export interface Connection {
  readonly isLost: boolean
  /** Time of the last reply, ms since 1970. */
  readonly lastAtMs: number
  /** Number of reconnections. */
  readonly returns: number
}

/** Paths whose last call failed; `true`: without a reply. */
const failing = new Map<string, boolean>()
const listeners = new Set<() => void>()
let connection: Connection = { isLost: false, lastAtMs: Date.now(), returns: 0 }

function change(next: Partial<Connection>): void {
  connection = { ...connection, ...next }
  for (const listener of listeners) listener()
}

/**
 * Records a failed call; `status` is 0 without a reply. Errors of the caller (4xx) do not affect the
 * connection.
 */
export function noteFailure(path: string, status: number): void {
  if (status !== 0 && status < 500) return
  failing.set(path, status === 0)
  if (!connection.isLost) change({ isLost: true })
}

/** Records a reply. */
export function noteReply(path: string): void {
  failing.delete(path)
  for (const [each, isSilent] of failing) if (isSilent) failing.delete(each)
  if (failing.size > 0) return
  if (connection.isLost) {
    change({ isLost: false, lastAtMs: Date.now(), returns: connection.returns + 1 })
  } else connection = { ...connection, lastAtMs: Date.now() }
}

/** Clears the failures of the previous page. */
export function clearFailures(): void {
  for (const [path, isSilent] of failing) if (!isSilent) failing.delete(path)
  if (connection.isLost && failing.size === 0) change({ isLost: false })
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The current state of the connection. */
export function useConnection(): Connection {
  return useSyncExternalStore(subscribe, () => connection)
}
