/**
 * Where at an upstream a request goes: base path, the dialect's path or the configured one, query.
 * Pure; opens no connection.
 */
import type { UpstreamConfig } from '../config/config.js'

/** What is the same for every request to an upstream. */
export interface UpstreamAddress {
  readonly origin: string
  /** The path of `base_url`, put before every other; '' or starts with '/'. */
  readonly basePath: string
  /** Instead of the dialect's path, with `{model}`; null where that holds. */
  readonly path: string | null
  /** Put after every path; '' or starts with '?'. */
  readonly query: string
}

/** The address that a configuration names. */
export function upstreamAddressOf(config: UpstreamConfig): UpstreamAddress {
  const { origin, pathname } = new URL(config.baseUrl)
  const entries = Object.entries(config.query)
  return {
    origin,
    basePath: pathname === '/' ? '' : pathname.replace(/\/$/, ''),
    path: config.path,
    query: entries.length === 0 ? '' : `?${new URLSearchParams(entries).toString()}`,
  }
}

const CHATS = '/chat/completions'

/**
 * The path and query of a request for a model; `path` is the format's own. `isChat` is false for embeddings and legacy
 * completions, which have a configured path only if that ends as the one for chats does.
 */
export function requestPathAt(
  address: UpstreamAddress,
  path: string,
  model: string,
  isChat = true,
): string {
  const { basePath, query } = address
  const chats = address.path?.replaceAll('{model}', () => encodeURIComponent(model))
  const others = chats?.endsWith(CHATS) === true ? chats.slice(0, -CHATS.length) + path : path
  const own = isChat ? (chats ?? path) : others
  return basePath + own + (own.includes('?') ? query.replace('?', '&') : query)
}
