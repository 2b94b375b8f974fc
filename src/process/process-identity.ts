/**
 * Identifies the machine and PID namespace of a process: only processes with the same identity can signal
 * each other.
 */
import { readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** The machine's name, on Linux with the PID namespace: a container has its own. */
export function machineName(): string {
  try {
    return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return hostname()
  }
}

/** The process to signal for a restart, for the reply of the ops port. */
export function ownProcess(): { readonly pid: number; readonly machine: string } {
  return { pid: process.pid, machine: machineName() }
}
