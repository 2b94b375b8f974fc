/**
 * Lists the differences between two configurations. Entries of lists are matched by their names (a route's
 * model or prefix, a target's upstream), so that a moved or inserted entry does not change the others.
 */
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import { hideSecrets } from '../../hide-secrets.js'
import type { SettingChange, Config, ServerConfig } from '../config.js'
import { snakeCase } from '../masked-config.js'

/** Further differences are not listed. */
const MAX_CHANGES = 200

/**
 * The differences by path, at most 200, with the values of `/config` (secrets masked, also in the names of
 * entries in paths).
 */
export function differencesOf(former: JsonObject, next: JsonObject): SettingChange[] {
  const changes = compare(former, next, '').slice(0, MAX_CHANGES)
  return changes.map((change) => ({ ...change, path: hideSecrets(change.path, '***') }))
}

function compare(before: JsonValue | undefined, after: JsonValue | undefined, path: string): SettingChange[] {
  if (isObject(before) && isObject(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    return Array.from(keys).flatMap((key) =>
      compare(before[key], after[key], path === '' ? key : `${path}.${key}`),
    )
  }
  if (isNamedList(before) && isNamedList(after)) {
    return compareLists(namedEntries(before), namedEntries(after), path)
  }
  const [was, is] = [shown(before), shown(after)]
  return was === is ? [] : [{ path, before: was, after: is }]
}

function compareLists(
  before: ReadonlyMap<string, JsonObject>,
  after: ReadonlyMap<string, JsonObject>,
  path: string,
): SettingChange[] {
  const names = new Set([...before.keys(), ...after.keys()])
  const changes = Array.from(names).flatMap((name) =>
    compare(before.get(name), after.get(name), `${path}[${name}]`),
  )
  // The order of fallbacks matters.
  const [was, is] = [[...before.keys()], [...after.keys()]]
  const hasSameNames = was.length === is.length && was.every((name) => after.has(name))
  if (!hasSameNames || was.every((name, at) => name === is[at])) return changes
  const [former, next] = [JSON.stringify(was), JSON.stringify(is)]
  return [...changes, { path: `${path} (order)`, before: former, after: next }]
}

function isNamedList(value: JsonValue | undefined): value is JsonObject[] {
  return Array.isArray(value) && value.every(isObject)
}

/** JSON without null and empty values; null for an empty list or map. */
function shown(value: JsonValue | undefined): string | null {
  const text = value === undefined ? undefined : JSON.stringify(value, withoutEmpty)
  if (text === undefined || text === '[]' || text === '{}') return null
  return hideSecrets(text, '***')
}

function withoutEmpty(key: string, value: JsonValue): JsonValue | undefined {
  if (key === '') return value
  const isEmpty = typeof value === 'object' && (value === null || Object.keys(value).length === 0)
  return isEmpty ? undefined : value
}

function namedEntries(list: readonly JsonObject[]): Map<string, JsonObject> {
  const entries = new Map<string, JsonObject>()
  const seen = new Map<string, number>()
  for (const entry of list) {
    const name = nameOf(entry)
    const times = (seen.get(name) ?? 0) + 1
    seen.set(name, times)
    entries.set(times === 1 ? name : `${name} (${String(times)})`, entry)
  }
  return entries
}

/** The keys that name an entry of a list, in order of preference. */
const NAMES = 'prefix scope plan account key upstream model id name when'.split(' ')

function nameOf(entry: JsonObject): string {
  const parts = NAMES.flatMap((key) => {
    const value = entry[key]
    if (value === undefined || value === null) return []
    const text = typeof value === 'string' ? value : JSON.stringify(value, withoutEmpty)
    return [key === 'prefix' ? `${text}*` : key === 'when' ? `when ${text}` : text]
  })
  return parts.join(' ')
}

const SERVER_KEYS = [
  ...(['host', 'port', 'opsHost', 'opsPort', 'workers', 'maxConnections'] as const),
  ...(['headersTimeoutMs', 'keepAliveMs', 'clientStallMs', 'tls'] as const),
]

/**
 * The settings that differ and need a restart, in the file's spelling: `server.port`. Listeners, processes,
 * the log and the store are opened once; until a restart the values of the start stay in force.
 */
export function needsRestart(running: Config, next: Config): string[] {
  const changed = SERVER_KEYS.filter(
    (key) => JSON.stringify(running.server[key]) !== JSON.stringify(next.server[key]),
  ).map((key) => `server.${snakeCase(key)}`)
  if (running.log.level !== next.log.level) changed.push('log.level')
  if (running.log.file !== next.log.file) changed.push('log.file')
  if (running.telemetry.otlp !== next.telemetry.otlp) changed.push('telemetry.otlp')
  if (running.store !== next.store) changed.push('store')
  if (running.escrow.key !== next.escrow.key) changed.push('escrow.key')
  if (running.escrow.key === null && next.record !== null) changed.push('record')
  if (running.escrow.key === null && next.files !== null) changed.push('files')
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
    log: { ...next.log, level: log.level, file: log.file },
    telemetry: { ...next.telemetry, otlp: telemetry.otlp },
    escrow: { ...next.escrow, key: escrow.key },
    // A key that ends with the process would leave recordings and files that cannot be opened.
    record: escrow.key === null ? null : next.record,
    files: escrow.key === null ? null : next.files,
    ledger: { ...next.ledger, spool, spoolMaxBytes },
    limiting: { ...next.limiting, away: { ...away, processes } },
  }
}

function startedServer(server: ServerConfig): Partial<ServerConfig> {
  return Object.fromEntries(SERVER_KEYS.map((key) => [key, server[key]]))
}
