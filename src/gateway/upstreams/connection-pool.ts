/**
 * Creates the connection pool (undici dispatcher) of one upstream, with the configured connections, TLS,
 * HTTP/2 and proxy. `request-queue.ts` sends requests with it.
 */
import { createHash } from 'node:crypto'
import { isIP, type LookupFunction } from 'node:net'
import { buildConnector, EnvHttpProxyAgent, Pool, ProxyAgent, type Dispatcher } from 'undici'
import type { UpstreamConfig } from '../../config/config.js'
import { isPrivateAddress, PrivateAddressError, publicLookup } from '../../http/private-addresses.js'

/**
 * An idle connection is closed after this time, or one second before the time that the upstream announces
 * (`keep-alive: timeout=`). A shorter idle time than the peer's prevents the keep-alive race; without it 2.4
 * % of requests failed.
 */
const KEEP_ALIVE_MS = 4000
const KEEP_ALIVE_MARGIN_MS = 1000
/** Maximum size of a reply's head; the limits of nginx and Node are 8 and 16 KiB. */
const MAX_HEAD_BYTES = 16_384
/** The environment variables that EnvHttpProxyAgent reads. */
const PROXY_VARIABLES = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY']

/** The settings of an upstream that its connections depend on. */
export type ConnectionSettings = Pick<
  UpstreamConfig,
  'name' | 'baseUrl' | 'maxConnections' | 'allowPrivateAddress' | 'tls' | 'http2' | 'proxy'
> & { readonly timeouts: Pick<UpstreamConfig['timeouts'], 'connectMs'> }

/** The proxy closed the connection instead of opening the tunnel. */
export class ProxyError extends Error {
  readonly code = 'PROXY_FAILED'
}

/**
 * A digest that is equal for configurations that can share connections. It does not include the credential,
 * which each request carries. A digest, so that private keys are not copied.
 */
export function settingsOf(config: ConnectionSettings): string {
  const { name, maxConnections, timeouts, allowPrivateAddress, tls, http2, proxy } = config
  const { origin } = new URL(config.baseUrl)
  const settings = [name, origin, maxConnections, timeouts.connectMs, allowPrivateAddress]
  return createHash('sha256')
    .update(JSON.stringify([...settings, tls, http2, proxy]))
    .digest('hex')
}

/** Creates the dispatcher. Connections are opened by requests. */
export function openConnectionPool(config: ConnectionSettings): Dispatcher {
  const { maxConnections, allowPrivateAddress, timeouts, proxy } = config
  const requestTls = tlsOptions(config)
  const options: Pool.Options = {
    connections: maxConnections,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
    maxHeaderSize: MAX_HEAD_BYTES,
    connect: guardedConnector(allowPrivateAddress ? ANY : PUBLIC, requestTls),
  }
  const { origin } = new URL(config.baseUrl)
  const proxies = proxy === 'env' ? proxiesInEnv() : [proxy]
  if (proxy === 'none' || proxies.length === 0 || isRefused(config)) return new Pool(origin, options)
  if (!proxies.every((url) => URL.canParse(url))) return new Pool(origin, { connect: noProxy })
  // With a proxy, the proxy resolves names and decides which addresses may be reached.
  const proxied = {
    ...options,
    requestTls,
    proxyTls: { timeout: timeouts.connectMs },
    clientFactory: (url: URL, given: object) => openProxyClient(url, given, timeouts.connectMs),
  }
  if (proxy === 'env') return new EnvHttpProxyAgent(proxied)
  return new ProxyAgent({ ...proxied, uri: proxy })
}

function tlsOptions(settings: ConnectionSettings): buildConnector.BuildOptions {
  const options: buildConnector.BuildOptions = {
    timeout: settings.timeouts.connectMs,
    allowH2: settings.http2,
  }
  const { ca = null, cert = null, key = null, serverName = null } = settings.tls ?? {}
  return {
    ...options,
    ...(ca === null ? {} : { ca }),
    ...(cert === null ? {} : { cert }),
    ...(key === null ? {} : { key }),
    ...(serverName === null ? {} : { servername: serverName }),
  }
}

/** Whether the base URL is a forbidden IP address, which is refused without a request to the proxy. */
function isRefused({ baseUrl, allowPrivateAddress }: ConnectionSettings): boolean {
  const host = new URL(baseUrl).hostname.replace(/^\[|\]$/g, '')
  return !allowPrivateAddress && isIP(host) !== 0 && isPrivateAddress(host)
}

function proxiesInEnv(): string[] {
  return PROXY_VARIABLES.map((name) => process.env[name] ?? '').filter((value) => value !== '')
}

/** Fails every connection: a proxy with an invalid address is not bypassed. */
function noProxy(_options: buildConnector.Options, callback: buildConnector.Callback): void {
  callback(new ProxyError('the address of the proxy in the environment is not a URL'), null)
}

/**
 * Creates the connections to the proxy itself. If the proxy closes a connection without a reply, undici
 * reports a lost socket and would reconnect endlessly; the changed error code ends the request.
 */
function openProxyClient(url: URL, given: object, connectMs: number): Dispatcher {
  const client = new Pool(url, { ...given, headersTimeout: connectMs })
  return client.compose((dispatch) => (request, handler) => {
    return dispatch(request, {
      onRequestStart: (controller, context) => handler.onRequestStart?.(controller, context),
      onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
      onResponseStart: (...args) => handler.onResponseStart?.(...args),
      onResponseData: (controller, chunk) => handler.onResponseData?.(controller, chunk),
      onResponseEnd: (controller, trailers) => handler.onResponseEnd?.(controller, trailers),
      onResponseError: (controller, cause) =>
        handler.onResponseError?.(controller, new ProxyError('no tunnel', { cause })),
    })
  })
}

/** The permitted addresses, and the function that resolves names (default: Node's own). */
export interface Network {
  permits(address: string): boolean
  readonly lookup?: LookupFunction
}

/** The public internet. */
export const PUBLIC: Network = {
  permits: (address) => !isPrivateAddress(address),
  lookup: publicLookup,
}
/** Every address. */
export const ANY: Network = { permits: () => true }

/**
 * A connector with three checks: IP literals are checked directly, the lookup drops addresses that are not
 * public, and the address of the connected socket is checked before any data is sent. The last check alone
 * would be sufficient; it also covers names that resolve differently the second time.
 *
 * Prevents undici's connections from reaching private addresses: a name that resolves to one (DNS rebinding,
 * a typo) must not give clients access to the network behind the gateway.
 */
export function guardedConnector(
  network: Network,
  options: buildConnector.BuildOptions,
): buildConnector.connector {
  const { lookup } = network
  const connect = buildConnector({ ...options, ...(lookup === undefined ? {} : { lookup }) })
  return (connectOptions, callback) => {
    const host = connectOptions.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0 && !network.permits(host)) {
      callback(new PrivateAddressError('the URL is a private address'), null)
      return
    }
    connect(connectOptions, (...result) => {
      const [error, socket] = result
      if (error !== null || network.permits(socket.remoteAddress ?? '::')) {
        callback(...result)
        return
      }
      socket.destroy()
      callback(new PrivateAddressError('the connection leads to a private address'), null)
    })
  }
}
