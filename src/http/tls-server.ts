/**
 * HTTPS for the listener: HTTP/1.1 and HTTP/2 on one port, chosen by ALPN. `node:https` serves HTTP/1.1 with the
 * limits of the plain listener; a `node:http2` server serves connections that chose `h2` (decision 0050).
 */
import { unwatchFile, watchFile } from 'node:fs'
import type { ServerOptions as HttpOptions } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { Http2Sessions, type Http2SessionsOptions } from './http2-sessions.js'
import { readTlsFiles, type TlsFiles } from './tls-files.js'

/** What the TLS server needs from the listener. */
export interface TlsServerOptions extends Omit<Http2SessionsOptions, 'keepAliveMs'> {
  /** Called with the error of changed certificate files; the previous certificate stays in use. */
  readonly onProblem: (problem: string) => void
  /** Called with the certificate in use, in PEM: at the start and after each change of the files. */
  readonly onCertificate: (pem: string) => void
}

/** The listening server for TLS, and its HTTP/2 sessions. */
export interface TlsServer {
  readonly server: Server
  readonly sessions: Http2Sessions
  /** Stops watching the files, and sends GOAWAY to every session. */
  close(): void
}

const MIN_VERSION = 'TLSv1.2'
/** Interval of checks of the certificate files. */
const WATCH_MS = 1000

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
  const stopWatching = watchTlsFiles(files, server, options)
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

/** Applies changed files; reports files that cannot be used and keeps the previous ones. */
function watchTlsFiles(
  files: TlsFiles,
  server: Server,
  { onProblem, onCertificate }: Pick<TlsServerOptions, 'onProblem' | 'onCertificate'>,
): () => void {
  const { cert, key, clientCa } = files
  const paths = clientCa === null ? [cert, key] : [cert, key, clientCa]
  const changed = (): void => {
    try {
      const contents = readTlsFiles(files)
      server.setSecureContext({ ...contents, minVersion: MIN_VERSION })
      onCertificate(contents.cert)
    } catch (error) {
      onProblem(error instanceof Error ? error.message : String(error))
    }
  }
  for (const path of paths) watchFile(path, { interval: WATCH_MS, persistent: false }, changed)
  return () => {
    for (const path of paths) unwatchFile(path, changed)
  }
}
