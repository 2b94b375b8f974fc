/** Addresses of upstreams that are probably wrong, for `sluice check`. Pure; asks no upstream. */
import type { UpstreamConfig } from '../config.js'

/** Paths that the gateway itself adds. */
const ENDPOINT = /\/(?:chat\/completions|completions|responses|messages|embeddings|models)$/i
const VERSION = /\/v\d+(?:(?:alpha|beta)\d*)?(?=\/|$)/gi
/** Hosts whose endpoints are below a version, and that version. */
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
/** Vendors whose endpoints are at the root too. */
const AT_ROOT: ReadonlySet<string> = new Set(['api.deepseek.com'])

/** What is suspicious about `base_url`, as a sentence that begins with it; null: nothing. */
export function baseUrlNote(upstream: Pick<UpstreamConfig, 'baseUrl' | 'path'>): string | null {
  // A configured address has no slash at its end.
  const { hostname, pathname } = new URL(upstream.baseUrl)
  const path = pathname === '/' ? '' : pathname
  const endpoint = ENDPOINT.exec(path)?.[0]
  if (endpoint !== undefined) {
    return `base_url ends with "${endpoint}", which the gateway adds itself: end it with the version, as in https://api.openai.com/v1`
  }
  if ((path.match(VERSION) ?? []).length > 1) return 'base_url has a version twice'
  if (upstream.path !== null) return null
  const wanted = Object.hasOwn(VERSIONED, hostname) ? VERSIONED[hostname] : undefined
  if (wanted !== undefined && !path.startsWith(wanted)) {
    return `base_url has no "${wanted}": the endpoints of ${hostname} are below it`
  }
  if (path === '' && !AT_ROOT.has(hostname)) {
    return 'base_url has no path: most servers have their endpoints below "/v1"'
  }
  return null
}
