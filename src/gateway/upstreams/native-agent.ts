/**
 * Opens the connections for native requests to one upstream: an agent of `node:http` with the configured TLS
 * files, address rules and proxy.
 */
import { Agent as HttpAgent, request as requestPlain, type Agent } from 'node:http'
import { Agent as HttpsAgent, request as requestSecure, type AgentOptions } from 'node:https'
import { isIP, Socket } from 'node:net'
import { unescape } from 'node:querystring'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import type { UpstreamConfig } from '../../config/config.js'
import { isPrivateAddress, publicLookup } from '../../http/private-addresses.js'
import { ProxyError } from './connection-pool.js'

/** The settings of an upstream that the agent depends on. */
type AgentSettings = Pick<
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

/** The proxy and the upstream of a tunnel. */
interface TunnelOptions {
  /** The URL of the proxy; its credentials are sent only to the proxy. */
  readonly proxy: URL
  /** `host:port` of the upstream. */
  readonly authority: string
  /** TLS with the upstream; null for plain HTTP. */
  readonly tls: ConnectionOptions | null
  /** Time limit for the proxy's reply and the handshake with the upstream together. */
  readonly connectMs: number
}

type Done = (error: Error | null, socket: Socket) => void

/** Makes the agent open all its connections through the proxy. */
function throughProxy<A extends Agent>(agent: A, options: TunnelOptions): A {
  agent.createConnection = (_options, done) => {
    open(options, done ?? (() => undefined))
    return undefined
  }
  return agent
}

function open({ proxy, authority, tls, connectMs }: TunnelOptions, done: Done): void {
  const request = (proxy.protocol === 'https:' ? requestSecure : requestPlain)(proxy, {
    method: 'CONNECT',
    path: authority,
    headers: { host: authority, ...authorization(proxy) },
    // Node would send them as `authorization`.
    auth: null,
    agent: false,
  })
  let secured: Socket | null = null
  const late = new ProxyError('the proxy opened no tunnel in time')
  const timer = setTimeout(() => (secured ?? request).destroy(late), connectMs)
  const failed = (error: Error): void => {
    clearTimeout(timer)
    // Node ignores the socket if there is an error.
    done(error, new Socket())
  }
  const succeeded = (socket: Socket): void => {
    clearTimeout(timer)
    done(null, socket)
  }
  request
    .once('error', (cause) => failed(new ProxyError('no tunnel', { cause })))
    // Node emits `connect` for replies of every status.
    .once('connect', ({ statusCode }, socket: Socket) => {
      if (statusCode !== 200) {
        socket.destroy()
        failed(new ProxyError(`the proxy replied with status ${statusCode}`))
        return
      }
      if (tls === null) {
        succeeded(socket)
        return
      }
      secured = connectTls({ ...tls, socket })
      awaitHandshake(secured, (error) => {
        if (error === null) succeeded(secured ?? socket)
        else failed(error)
      })
    })
    .end()
}

/** Calls `done` once, when the handshake has succeeded or failed. */
function awaitHandshake(socket: Socket, done: (error: Error | null) => void): void {
  const ended = (error: Error | null): void => {
    socket.off('error', ended).off('close', closed).off('secureConnect', secured)
    done(error)
  }
  const closed = (): void => ended(new ProxyError('the tunnel was closed'))
  const secured = (): void => ended(null)
  socket.once('error', ended).once('close', closed).once('secureConnect', secured)
}

function authorization({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {}
  const credentials = `${unescape(username)}:${unescape(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }
}
