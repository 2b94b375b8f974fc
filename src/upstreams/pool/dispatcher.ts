/**
 * undici's dispatcher for one upstream: connections, TLS, HTTP/2 and the proxy of the configuration.
 * Sends nothing; `pool.ts` does.
 */
import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { type buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool, ProxyAgent } from 'undici'
import type { UpstreamConfig } from '../../config/config.js'
import { isPrivateAddress } from '../private-addresses.js'
import { ANY, guardedConnector, PUBLIC } from './guarded-connector.js'

/**
 * An idle connection is closed after this, or a second before the time that the upstream names (`keep-alive:
 * timeout=`). A shorter idle time than the peer's prevents the keep-alive race: 2.4 % of requests failed without.
 */
const KEEP_ALIVE_MS = 4000
const KEEP_ALIVE_MARGIN_MS = 1000
/** The head of a reply above this is an upstream's mistake; nginx and Node chose 8 and 16 KiB. */
const MAX_HEAD_BYTES = 16_384
/** What EnvHttpProxyAgent reads. */
const PROXY_VARIABLES = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY']

/** What of an upstream's configuration its connections depend on. */
export type ConnectionSettings = Pick<
  UpstreamConfig,
  'name' | 'baseUrl' | 'maxConnections' | 'allowPrivateAddress' | 'tls' | 'http2' | 'proxy'
> & { readonly timeouts: Pick<UpstreamConfig['timeouts'], 'connectMs'> }

/** The proxy closed the connection instead of opening the tunnel. */
export class ProxyError extends Error {
  readonly code = 'PROXY_FAILED'
}

/**
 * Equal for configurations that can share connections. The credential is no part of it: it travels with each request.
 * A digest, so that no private key is kept in a second place.
 */
export function settingsOf(config: ConnectionSettings): string {
  const { name, maxConnections, timeouts, allowPrivateAddress, tls, http2, proxy } = config
  const { origin } = new URL(config.baseUrl)
  const settings = [name, origin, maxConnections, timeouts.connectMs, allowPrivateAddress]
  return createHash('sha256')
    .update(JSON.stringify([...settings, tls, http2, proxy]))
    .digest('hex')
}

/** Opens no connection yet. */
export function openDispatcher(config: ConnectionSettings): Dispatcher {
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
  if (proxy === 'none' || proxies.length === 0 || isRefused(config))
    return new Pool(origin, options)
  if (!proxies.every((url) => URL.canParse(url))) return new Pool(origin, { connect: noProxy })
  // Behind a proxy it is the proxy that looks names up and decides which addresses may be reached.
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

/** An address that may not be used is refused without asking a proxy for it. */
function isRefused({ baseUrl, allowPrivateAddress }: ConnectionSettings): boolean {
  const host = new URL(baseUrl).hostname.replace(/^\[|\]$/g, '')
  return !allowPrivateAddress && isIP(host) !== 0 && isPrivateAddress(host)
}

function proxiesInEnv(): string[] {
  return PROXY_VARIABLES.map((name) => process.env[name] ?? '').filter((value) => value !== '')
}

/** A proxy is never bypassed, not even one whose address is wrong. */
function noProxy(_asked: buildConnector.Options, callback: buildConnector.Callback): void {
  callback(new ProxyError('the address of the proxy in the environment is not a URL'), null)
}

/**
 * Connections to the proxy itself. A proxy that closes the connection without a reply fails with undici's code for a
 * socket that was lost, on which undici connects again, for ever; another code ends the request.
 */
function openProxyClient(url: URL, given: object, connectMs: number): Dispatcher {
  const client = new Pool(url, { ...given, headersTimeout: connectMs })
  return client.compose((dispatch) => (request, handler) => {
    return dispatch(request, {
      onRequestStart: (controller, context) => handler.onRequestStart?.(controller, context),
      onRequestUpgrade: (controller, status, headers, socket) =>
        handler.onRequestUpgrade?.(controller, status, headers, socket),
      onResponseStart: (controller, status, headers, message) =>
        handler.onResponseStart?.(controller, status, headers, message),
      onResponseData: (controller, chunk) => handler.onResponseData?.(controller, chunk),
      onResponseEnd: (controller, trailers) => handler.onResponseEnd?.(controller, trailers),
      onResponseError: (controller, cause) =>
        handler.onResponseError?.(controller, new ProxyError('no tunnel', { cause })),
    })
  })
}
