/** Finds probably wrong base URLs, for `sluice check`. Sends no request. */
import type { UpstreamConfig } from '../config.js'

/** Paths that the gateway adds to the base URL. */
const ENDPOINT = /\/(?:chat\/completions|completions|responses|messages|embeddings|models)$/i
const VERSION = /\/v\d+(?:(?:alpha|beta)\d*)?(?=\/|$)/gi
/** Hosts with a version before the endpoints' paths, and that version. */
const VERSIONED: Readonly<Record<string, string>> = {
  'api.openai.com': '/v1',
  'api.anthropic.com': '/v1',
  'generativelanguage.googleapis.com': '/v1beta',
  'api.mistral.ai': '/v1',
  'api.x.ai': '/v1',
  'api.together.xyz': '/v1',
  'api.groq.com': '/openai/v1',
  'openrouter.ai': '/api/v1',
  'api.fireworks.ai': '/inference/v1',
}
/** Vendors with endpoints at the root as well. */
const AT_ROOT: ReadonlySet<string> = new Set(['api.deepseek.com'])

/** A sentence about a suspicious `base_url`; null if it looks right. */
export function baseUrlNote(upstream: Pick<UpstreamConfig, 'baseUrl' | 'path'>): string | null {
  // The resolved URL has no trailing slash.
  const { hostname, pathname } = new URL(upstream.baseUrl)
  const path = pathname === '/' ? '' : pathname
  const endpoint = ENDPOINT.exec(path)?.[0]
  if (endpoint !== undefined) {
    return `base_url ends with "${endpoint}", which the gateway adds itself: end it with the version, as in https://api.openai.com/v1`
  }
  if ((path.match(VERSION) ?? []).length > 1) return 'base_url contains a version twice'
  if (upstream.path !== null) return null
  const version = Object.hasOwn(VERSIONED, hostname) ? VERSIONED[hostname] : undefined
  if (version !== undefined && !path.startsWith(version)) {
    return `base_url does not end with "${version}": the endpoints of ${hostname} are below it`
  }
  if (path === '' && !AT_ROOT.has(hostname)) {
    return 'base_url has no path: the endpoints of most servers are below "/v1"'
  }
  return null
}
