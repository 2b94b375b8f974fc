/**
 * Builds the path of a request to an upstream: base path, the dialect's path or the configured one, query. Pure.
 */
import type { UpstreamConfig } from '../config/config.js'

/** The parts that all requests to an upstream share. */
export interface UpstreamAddress {
  readonly origin: string
  /** The path of `base_url`, before every other path; '' or starts with '/'. */
  readonly basePath: string
  /** The configured path, which may contain `{model}`; null: the dialect's path is used. */
  readonly path: string | null
  /** After every path; '' or starts with '?'. */
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
