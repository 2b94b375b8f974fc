/** Tells whether two processes may signal each other by process id: the same machine and the same PID namespace. */
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

/** What tells a command on this machine whom to signal: the process that answers on the ops port. */
export function ownProcess(): { readonly pid: number; readonly machine: string } {
  return { pid: process.pid, machine: machineName() }
}
