/**
 * Settings that a running process cannot change: listeners, processes, the log and the store are opened once.
 * Until a restart the values of the start stay in force.
 */
import type { Config, ServerConfig } from '../config.js'
import { snakeCase } from '../masked-config.js'

const SERVER_KEYS = [
  ...(['host', 'port', 'opsHost', 'opsPort', 'workers', 'maxConnections'] as const),
  ...(['headersTimeoutMs', 'keepAliveMs', 'clientStallMs', 'tls'] as const),
]

/** The settings that differ and need a restart, in the file's spelling: `server.port`. */
export function needsRestart(running: Config, next: Config): string[] {
  const changed = SERVER_KEYS.filter(
    (key) => JSON.stringify(running.server[key]) !== JSON.stringify(next.server[key]),
  ).map((key) => `server.${snakeCase(key)}`)
  if (running.log.level !== next.log.level) changed.push('log.level')
  if (running.telemetry.otlp !== next.telemetry.otlp) changed.push('telemetry.otlp')
  if (running.store !== next.store) changed.push('store')
  if (running.escrow.key !== next.escrow.key) changed.push('escrow.key')
  if (running.ledger.spool !== next.ledger.spool) changed.push('ledger.spool')
  if (running.ledger.spoolMaxBytes !== next.ledger.spoolMaxBytes) {
    changed.push('ledger.spool_max_bytes')
  }
  return changed
}

/** `next` with the values of `running` for settings that need a restart. */
export function inForce(running: Config, next: Config): Config {
  const { store, log, telemetry, escrow, ledger } = running
  const { spool, spoolMaxBytes } = ledger
  const { away } = next.limiting
  // The default is the number of workers.
  const isDefault = away.processes === next.server.workers
  const processes = isDefault ? running.server.workers : away.processes
  return {
    ...next,
    server: { ...next.server, ...startedServer(running.server) },
    store,
    log: { ...next.log, level: log.level },
    telemetry: { ...next.telemetry, otlp: telemetry.otlp },
    escrow: { ...next.escrow, key: escrow.key },
    ledger: { ...next.ledger, spool, spoolMaxBytes },
    limiting: { ...next.limiting, away: { ...away, processes } },
  }
}

function startedServer(server: ServerConfig): Partial<ServerConfig> {
  return Object.fromEntries(SERVER_KEYS.map((key) => [key, server[key]]))
}
