/**
 * One generation of the configuration: made once, frozen, and shown with its secrets masked.
 * Reads nothing; knows no file system and no clock.
 */
import { createHash } from 'node:crypto'
import type { JsonObject, JsonValue } from '../chat/json.js'
import {
  isConfigured,
  type Catalogue,
  type Config,
  type EscrowConfig,
  type RouteConfig,
  type Snapshot,
  type UpstreamConfig,
} from './config.js'

/** What a snapshot is made of: a successful load has it. */
export interface SnapshotParts {
  readonly config: Config
  readonly catalogue: Catalogue
  readonly fileHash: string
}

/** A snapshot that nobody can change: every object in it is frozen. */
export function createSnapshot(
  parts: SnapshotParts,
  generation: number,
  loadedAtMs: number,
): Snapshot {
  const { config, catalogue, fileHash } = parts
  return deepFreeze({ generation, fileHash, loadedAtMs, config, catalogue })
}

/**
 * The settings that differ and that a running process cannot take over, in the file's spelling:
 * listeners, processes, the log and the store are opened once, and what is sealed stays readable.
 */
export function needsRestart(running: Config, next: Config): string[] {
  const keys = ['host', 'port', 'opsHost', 'opsPort', 'workers'] as const
  const changed = keys
    .filter((key) => running.server[key] !== next.server[key])
    .map((key) => `server.${snakeCase(key)}`)
  if (running.log.level !== next.log.level) changed.push('log.level')
  if (running.store !== next.store) changed.push('store')
  if (running.escrow.key !== next.escrow.key) changed.push('escrow.key')
  return changed
}

/**
 * The snapshot in the file's spelling for the ops listener's `/config`. Keys, header values and
 * texts set into bodies appear as `***` and four characters that tell one from another.
 */
export function maskedConfig(snapshot: Snapshot): JsonObject {
  const { config } = snapshot
  return {
    generation: snapshot.generation,
    file_hash: snapshot.fileHash,
    loaded_at: new Date(snapshot.loadedAtMs).toISOString(),
    server: snakeKeys(config.server),
    store: config.store,
    auth: snakeKeys(config.auth),
    escrow: maskedEscrow(config.escrow),
    log: snakeKeys(config.log),
    on_loss: config.onLoss,
    on_disconnect: config.onDisconnect,
    allow_synthetic_user: config.allowSyntheticUser,
    fetch_media: snakeKeys(config.fetchMedia),
    upstreams: mapValues(config.upstreams, maskedUpstream),
    routes: config.routes.map((route) => shownRoute(route)),
    plans: mapValues(config.plans, ({ priceUsd, maxKeys }) => {
      return { price_usd: priceUsd, max_keys: maxKeys ?? 'unlimited' }
    }),
    models: snapshot.catalogue.models.length,
  }
}

function maskedEscrow(escrow: EscrowConfig): JsonObject {
  const { enabled, key } = escrow
  return { ...snakeKeys(escrow), enabled, key: key === null ? null : masked(key) }
}

function maskedUpstream(upstream: UpstreamConfig): JsonObject {
  const { quirks } = upstream
  return {
    preset: upstream.preset,
    dialect: upstream.dialect,
    base_url: upstream.baseUrl,
    path: upstream.path,
    query: mapValues(upstream.query, masked),
    key_header: upstream.keyHeader,
    configured: isConfigured(upstream),
    api_key: upstream.apiKey === null ? null : masked(upstream.apiKey),
    api_key_source: upstream.apiKeySource,
    headers: mapValues(upstream.headers, masked),
    timeouts: snakeKeys(upstream.timeouts),
    max_connections: upstream.maxConnections,
    allow_private_address: upstream.allowPrivateAddress,
    quirks: {
      drop: [...quirks.drop],
      rename: { ...quirks.rename },
      set: mapValues(quirks.set, maskedValue),
      messages: {
        drop: [...quirks.messages.drop],
        rename: { ...quirks.messages.rename },
        roles: { ...quirks.messages.roles },
      },
      replies: quirks.replies,
    },
  }
}

function shownRoute(route: RouteConfig): JsonObject {
  const shown: JsonObject = { ...route.match, upstream: route.upstream }
  if (route.upstreamModel !== null) shown['upstream_model'] = route.upstreamModel
  return shown
}

/** `***` and 16 bits of the secret's SHA-256: enough to compare two, useless to find one. */
export function masked(secret: string): string {
  return `***${createHash('sha256').update(secret).digest('hex').slice(0, 4)}`
}

function maskedValue(value: unknown): JsonValue {
  if (typeof value === 'string') return masked(value)
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => maskedValue(item))
  if (typeof value === 'object') return mapValues({ ...value }, maskedValue)
  return null
}

function mapValues<T>(
  values: Readonly<Record<string, T>>,
  map: (value: T) => JsonValue,
): JsonObject {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]))
}

function snakeKeys(values: object): JsonObject {
  const entries: [string, unknown][] = Object.entries(values)
  return Object.fromEntries(
    entries.map(([key, value]) => [
      snakeCase(key),
      typeof value === 'number' || typeof value === 'string' ? value : null,
    ]),
  )
}

function snakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const part of Object.values(value)) deepFreeze(part)
  return Object.freeze(value)
}
