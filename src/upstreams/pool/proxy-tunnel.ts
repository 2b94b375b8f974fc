/**
 * Opens connections to one upstream through an HTTP proxy (`CONNECT`) for an agent of `node:http`. All other
 * requests use undici's own tunnels.
 */
import { request as requestPlain, type Agent } from 'node:http'
import { request as requestSecure } from 'node:https'
import { Socket } from 'node:net'
import { unescape } from 'node:querystring'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import { ProxyError } from './connection-pool.js'

/** The proxy and the upstream of a tunnel. */
export interface TunnelOptions {
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
export function throughProxy<A extends Agent>(agent: A, options: TunnelOptions): A {
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
