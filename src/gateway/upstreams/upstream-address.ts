/** Builds the path of a request to an upstream: base path, dialect's or configured path, and query. Pure. */
import type { UpstreamConfig } from '../../config/config.js'

/** The parts that all requests to an upstream share. */
export interface UpstreamAddress {
  readonly origin: string
  /** The path of `base_url`, before every other path; '' or starts with '/'. */
  readonly basePath: string
  /** The configured path, which may contain `{model}`; null: the dialect's path is used. */
  readonly path: string | null
  /** Appended to every path; '' or starts with '?'. */
  readonly query: string
  /** The same as parameters; they replace those of clients. */
  readonly ownQuery: Readonly<Record<string, string>>
}

/** The address in the configuration of an upstream. */
export function upstreamAddressOf(config: UpstreamConfig): UpstreamAddress {
  const { origin, pathname } = new URL(config.baseUrl)
  const entries = Object.entries(config.query)
  return {
    origin,
    basePath: pathname === '/' ? '' : pathname.replace(/\/$/, ''),
    path: config.path,
    ownQuery: config.query,
    query: entries.length === 0 ? '' : `?${new URLSearchParams(entries).toString()}`,
  }
}

/** The parameter of an upload's address in place of a key (`gateway/upload-ticket.ts`). */
export const UPLOAD_TICKET = 'upload_ticket'

/** Query parameters with a client's credential, which is never forwarded. */
const CREDENTIAL_PARAMETERS = new Set([
  'key',
  'api_key',
  'api-key',
  'access_token',
  'oauth_token',
  UPLOAD_TICKET,
])

/**
 * Query parameters that the gateway reads itself, or that would change what it has checked or reads from the
 * reply: the form of the reply, its fields, and the model.
 */
const OWN = new Set(['alt', '$alt', 'callback', '$callback', 'fields', '$fields', 'model', 'stream'])

/** A client's query, without the question mark, without credentials and without parameters in `own`. */
export function keptQuery(query: string, own: Readonly<Record<string, string>>): string {
  const isKept = (pair: string): boolean => {
    const [name] = new URLSearchParams(pair).keys()
    return name !== undefined && !CREDENTIAL_PARAMETERS.has(name.toLowerCase()) && !(name in own)
  }
  return query === '' ? '' : query.split('&').filter(isKept).join('&')
}

/**
 * The part of a client's query that an upstream of the same format gets, whose own parameters are `own`; with
 * none, the part that upstreams may get.
 */
export function passedQuery(query: string, own: Readonly<Record<string, string>> = {}): string {
  const isPassed = (pair: string): boolean => {
    const [name = ''] = new URLSearchParams(pair).keys()
    return !OWN.has(name.toLowerCase())
  }
  return keptQuery(query, own).split('&').filter(isPassed).join('&')
}

const CHATS = '/chat/completions'

/** The path of a request in its format. */
interface FormatPath {
  /** The format's own path, below the upstream's base path. */
  readonly path: string
  /** The part of the upstream's base path that `path` is below; absent: all of it. */
  readonly basePath?: ((base: string) => string) | undefined
  /** The upstream's name of the model; '' if the request has none. */
  readonly model: string
  /**
   * False for all other requests; they use the configured path only if it ends with
   * `/chat/completions`, which is replaced. Default true.
   */
  readonly isChat?: boolean
  /** The client's query for an upstream of the same format, without the question mark. Default ''. */
  readonly clientQuery?: string
}

/** The path and query of a request to an upstream. */
export function requestPathAt(
  address: UpstreamAddress,
  { path, basePath: baseOf, model, isChat = true, clientQuery = '' }: FormatPath,
): string {
  const basePath = baseOf?.(address.basePath) ?? address.basePath
  const passed = clientQuery === '' ? '' : passedQuery(clientQuery, address.ownQuery)
  const query = passed === '' ? address.query : `?${passed}${address.query.replace('?', '&')}`
  const chats = address.path?.replaceAll('{model}', () => encodeURIComponent(model))
  // A path with a base of its own is not below that of chats.
  const isBeside = baseOf === undefined && chats?.endsWith(CHATS) === true
  const others = isBeside ? chats.slice(0, -CHATS.length) + path : path
  const pathOfRequest = isChat ? (chats ?? path) : others
  return basePath + pathOfRequest + (pathOfRequest.includes('?') ? query.replace('?', '&') : query)
}
