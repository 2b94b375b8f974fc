/**
 * Opens the connections for native requests to one upstream: an agent of `node:http` with the configured TLS
 * files, address rules and proxy.
 */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent, type AgentOptions } from 'node:https'
import { isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type { UpstreamConfig } from '../config/config.js'
import { isPrivateAddress, publicLookup } from './private-addresses.js'
import { throughProxy } from './pool/proxy-tunnel.js'

/** The settings of an upstream that the agent depends on. */
export type AgentSettings = Pick<
  UpstreamConfig,
  'baseUrl' | 'maxConnections' | 'allowPrivateAddress' | 'tls' | 'proxy'
> & { readonly timeouts: Pick<UpstreamConfig['timeouts'], 'connectMs'> }

/** The reason why an upstream cannot be reached by native requests, for the client. */
export interface Unreachable {
  readonly problem: string
}

/** An idle connection is closed after this time, before most upstreams close it. */
const KEEP_ALIVE_MS = 4000

/** Creates the agent. Connections are opened by requests. */
export function openAgent(config: AgentSettings): HttpAgent | Unreachable {
  const url = new URL(config.baseUrl)
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (!config.allowPrivateAddress && isIP(host) !== 0 && isPrivateAddress(host)) {
    return { problem: 'The address of the upstream is private.' }
  }
  const proxy = proxyOf(url, host, config.proxy)
  if (proxy !== '' && !(URL.canParse(proxy) && /^https?:$/.test(new URL(proxy).protocol))) {
    return { problem: 'The address of the proxy to the upstream is not a URL.' }
  }
  const { ca = null, cert = null, key = null, serverName = null } = config.tls ?? {}
  const tls: ConnectionOptions = {
    ...(ca === null ? {} : { ca }),
    ...(cert === null ? {} : { cert }),
    ...(key === null ? {} : { key }),
    ...(serverName === null ? {} : { servername: serverName }),
  }
  const options: AgentOptions = {
    keepAlive: true,
    timeout: KEEP_ALIVE_MS,
    maxSockets: config.maxConnections,
    ...(config.allowPrivateAddress ? {} : { lookup: publicLookup }),
    ...tls,
  }
  const isTls = url.protocol === 'https:'
  const agent = isTls ? new HttpsAgent(options) : new HttpAgent(options)
  if (proxy === '') return agent
  const servername = serverName ?? (isIP(host) === 0 ? host : '')
  return throughProxy(agent, {
    proxy: new URL(proxy),
    authority: `${url.hostname}:${portOf(url.protocol, url.port)}`,
    tls: isTls ? { ...tls, host, servername, ALPNProtocols: ['http/1.1'] } : null,
    connectMs: config.timeouts.connectMs,
  })
}

/** The address of the proxy, by the rules of undici's `EnvHttpProxyAgent`; empty if there is none. */
function proxyOf({ protocol, port }: URL, host: string, proxy: string): string {
  if (proxy !== 'env') return proxy === 'none' ? '' : proxy
  const plain = fromEnv('http_proxy')
  const proxyUrl = protocol === 'https:' ? fromEnv('https_proxy') || plain : plain
  const exceptions = fromEnv('no_proxy').split(/[\s,]+/)
  const isExcepted = exceptions.some((exception) => {
    const [, name = exception, onlyPort = null] = /^(.+):(\d+)$/.exec(exception) ?? []
    const suffix = name.replace(/^\*?\./, '').toLowerCase()
    if (exception === '*') return true
    const isHost = suffix !== '' && (host === suffix || host.endsWith(`.${suffix}`))
    return isHost && (onlyPort === null || onlyPort === portOf(protocol, port))
  })
  return isExcepted ? '' : proxyUrl
}

function portOf(protocol: string, port: string): string {
  if (port !== '') return port
  return protocol === 'https:' ? '443' : '80'
}

function fromEnv(name: string): string {
  return process.env[name] ?? process.env[name.toUpperCase()] ?? ''
}
