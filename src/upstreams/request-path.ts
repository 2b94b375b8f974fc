/** Builds the path of a request to an upstream: base path, dialect's or configured path, and query. Pure. */
import type { UpstreamConfig } from '../config/config.js'

/** The parts that all requests to an upstream share. */
export interface UpstreamAddress {
  readonly origin: string
  /** The path of `base_url`, before every other path; '' or starts with '/'. */
  readonly basePath: string
  /** The configured path, which may contain `{model}`; null: the dialect's path is used. */
  readonly path: string | null
  /** Appended to every path; '' or starts with '?'. */
  readonly query: string
}

/** The address in the configuration of an upstream. */
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

/** The path of a request in its format. */
export interface FormatPath {
  /** The format's own path, below the upstream's base path. */
  readonly path: string
  /** The upstream's name of the model; '' if the request has none. */
  readonly model: string
  /**
   * False for embeddings and legacy completions; they use the configured path only if it ends with
   * `/chat/completions`, which is replaced. Default true.
   */
  readonly isChat?: boolean
}

/** The path and query of a request to an upstream. */
export function requestPathAt(
  address: UpstreamAddress,
  { path, model, isChat = true }: FormatPath,
): string {
  const { basePath, query } = address
  const chats = address.path?.replaceAll('{model}', () => encodeURIComponent(model))
  const others = chats?.endsWith(CHATS) === true ? chats.slice(0, -CHATS.length) + path : path
  const pathOfRequest = isChat ? (chats ?? path) : others
  return basePath + pathOfRequest + (pathOfRequest.includes('?') ? query.replace('?', '&') : query)
}
