/**
 * HTTPS for the listener: HTTP/1.1 and HTTP/2 on one port, chosen by ALPN. `node:https` serves HTTP/1.1 with
 * the limits of the plain listener; a `node:http2` server serves connections that chose `h2` (decision 0050).
 */
import type { ServerOptions as HttpOptions } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { Http2Sessions, type Http2SessionsOptions } from '../http2-sessions.js'
import { readTlsFiles, type TlsFiles } from './read-tls-files.js'
import { reloadTlsFiles, type ReloadOptions } from './reload-tls-files.js'

/** What the TLS server needs from the listener. */
export type TlsServerOptions = Omit<Http2SessionsOptions, 'keepAliveMs'> & ReloadOptions

/** The listening server for TLS, and its HTTP/2 sessions. */
export interface TlsServer {
  readonly server: Server
  readonly sessions: Http2Sessions
  /** Stops watching the files, and sends GOAWAY to every session. */
  close(): void
}

/** The oldest accepted version of TLS. */
const MIN_VERSION = 'TLSv1.2'

/** Throws a `TlsFileError` if the files cannot be used. */
export function createTlsServer(
  files: TlsFiles,
  settings: HttpOptions,
  options: TlsServerOptions,
): TlsServer {
  const contents = readTlsFiles(files)
  const server = createServer({
    ...settings,
    ...contents,
    ALPNProtocols: ['h2', 'http/1.1'],
    minVersion: MIN_VERSION,
    requestCert: files.clientCa !== null,
    rejectUnauthorized: files.clientCa !== null,
    handshakeTimeout: settings.headersTimeout ?? 10_000,
  })
  const keepAliveMs = settings.keepAliveTimeout ?? 65_000
  const sessions = new Http2Sessions({ ...options, keepAliveMs })
  splitByProtocol(server, sessions)
  const stopWatching = reloadTlsFiles(
    files,
    (changed) => server.setSecureContext({ ...changed, minVersion: MIN_VERSION }),
    options,
  )
  options.onCertificate(contents.cert)
  return {
    server,
    sessions,
    close: () => {
      stopWatching()
      sessions.close()
    },
  }
}

/** `node:https` serves HTTP/1.1 connections, which `http1Connection` announces; the others use HTTP/2. */
function splitByProtocol(server: Server, sessions: Http2Sessions): void {
  const [serveHttp1] = server.listeners('secureConnection')
  server.removeAllListeners('secureConnection')
  server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.alpnProtocol === 'h2') {
      sessions.accept(socket)
      return
    }
    server.emit('http1Connection', socket)
    serveHttp1?.call(server, socket)
  })
}
