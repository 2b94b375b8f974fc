/**
 * HTTPS for the listener: HTTP/1.1 and HTTP/2 on one port, chosen by ALPN. `node:https` serves HTTP/1.1 with
 * the limits of the plain listener; a `node:http2` server serves connections that chose `h2` (decision 0050).
 */
import { unwatchFile, watchFile } from 'node:fs'
import type { ServerOptions as HttpOptions } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { Http2Sessions, type Http2SessionsOptions } from './http2-sessions.js'
import { readTlsFiles, type TlsFiles, type TlsContents } from './read-tls-files.js'

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

/** Interval of checks of the certificate files. */
const WATCH_MS = 1000

/** The reports about certificates. */
interface ReloadOptions {
  /** Called with the error of changed certificate files; the previous certificate stays in use. */
  readonly onProblem: (problem: Error) => void
  /** Called with the certificate in use, in PEM: at the start and after each change of the files. */
  readonly onCertificate: (pem: string) => void
}

/**
 * Checks the files every second until the returned function is called, and passes changed contents to `use`.
 * Reports files that cannot be used; the previous certificate then stays in use.
 */
function reloadTlsFiles(
  files: TlsFiles,
  use: (contents: TlsContents) => void,
  { onProblem, onCertificate }: ReloadOptions,
): () => void {
  const { cert, key, clientCa } = files
  const paths = clientCa === null ? [cert, key] : [cert, key, clientCa]
  const changed = (): void => {
    try {
      const contents = readTlsFiles(files)
      use(contents)
      onCertificate(contents.cert)
    } catch (error) {
      onProblem(error instanceof Error ? error : new Error(String(error)))
    }
  }
  for (const path of paths) watchFile(path, { interval: WATCH_MS, persistent: false }, changed)
  return () => {
    for (const path of paths) unwatchFile(path, changed)
  }
}
