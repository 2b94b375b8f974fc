/**
 * Connections of native access to one upstream: an agent of `node:http` with the TLS files and the address rules of
 * the configuration. It has no proxies; an upstream that needs one is refused, never reached directly.
 */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent, type AgentOptions } from 'node:https'
import { isIP } from 'node:net'
import type { UpstreamConfig } from '../config/config.js'
import { isPrivateAddress, publicLookup } from './address.js'

/** What of an upstream's configuration the agent depends on. */
export type AgentSettings = Pick<
  UpstreamConfig,
  'baseUrl' | 'maxConnections' | 'allowPrivateAddress' | 'tls' | 'proxy'
>

/** Why an upstream cannot be reached by native access, for the client. */
export interface Unreachable {
  readonly problem: string
}

/** An idle connection is closed after this: before most upstreams close it. */
const KEEP_ALIVE_MS = 4000

/** Opens no connection yet. */
export function openAgent(config: AgentSettings): HttpAgent | Unreachable {
  const url = new URL(config.baseUrl)
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (!config.allowPrivateAddress && isIP(host) !== 0 && isPrivateAddress(host)) {
    return { problem: 'The address of the upstream is private.' }
  }
  if (needsProxy(url.protocol, host, config.proxy)) {
    return { problem: 'Native access cannot reach the upstream: it needs a proxy.' }
  }
  const { ca = null, cert = null, key = null, serverName = null } = config.tls ?? {}
  const options: AgentOptions = {
    keepAlive: true,
    timeout: KEEP_ALIVE_MS,
    maxSockets: config.maxConnections,
    ...(config.allowPrivateAddress ? {} : { lookup: publicLookup }),
    ...(ca === null ? {} : { ca }),
    ...(cert === null ? {} : { cert }),
    ...(key === null ? {} : { key }),
    ...(serverName === null ? {} : { servername: serverName }),
  }
  return url.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options)
}

function needsProxy(protocol: string, host: string, proxy: string): boolean {
  if (proxy !== 'env') return proxy !== 'none'
  const name = protocol === 'https:' ? 'https_proxy' : 'http_proxy'
  if (fromEnv(name) === '') return false
  const exceptions = fromEnv('no_proxy').split(/[\s,]+/)
  return !exceptions.some((each) => {
    const suffix = each.replace(/^\*?\./, '').toLowerCase()
    return each === '*' || (suffix !== '' && (host === suffix || host.endsWith(`.${suffix}`)))
  })
}

function fromEnv(name: string): string {
  return process.env[name] ?? process.env[name.toUpperCase()] ?? ''
}
