/**
 * Whether replies come: figures are not shown as live while they do not. Every call reports its end here; nothing is
 * asked by this module.
 */
import { useSyncExternalStore } from 'react'

/** The connection to the gateway. */
export interface Connection {
  readonly isLost: boolean
  /** When the last reply came, ms since 1970. */
  readonly lastAtMs: number
  /** How often the connection came back. */
  readonly returns: number
}

/** Paths whose last call failed; `true`: no reply came at all. */
const failing = new Map<string, boolean>()
const listeners = new Set<() => void>()
let connection: Connection = { isLost: false, lastAtMs: Date.now(), returns: 0 }

function change(next: Partial<Connection>): void {
  connection = { ...connection, ...next }
  for (const listener of listeners) listener()
}

/** A call failed: `status` is 0 if no reply came. What the caller did wrong is no loss of the connection. */
export function noteFailure(path: string, status: number): void {
  if (status !== 0 && status < 500) return
  failing.set(path, status === 0)
  if (!connection.isLost) change({ isLost: true })
}

/** A reply came. */
export function noteReply(path: string): void {
  failing.delete(path)
  for (const [each, isSilent] of failing) if (isSilent) failing.delete(each)
  if (failing.size > 0) return
  if (connection.isLost) {
    change({ isLost: false, lastAtMs: Date.now(), returns: connection.returns + 1 })
  } else connection = { ...connection, lastAtMs: Date.now() }
}

/** Another page is shown: what the one before asked for does not count any more. */
export function clearFailures(): void {
  for (const [path, isSilent] of failing) if (!isSilent) failing.delete(path)
  if (connection.isLost && failing.size === 0) change({ isLost: false })
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The connection as it is now. */
export function useConnection(): Connection {
  return useSyncExternalStore(subscribe, () => connection)
}
