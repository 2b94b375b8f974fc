/**
 * HTTPS for the listener: HTTP/1.1 and HTTP/2 on one port, chosen by ALPN. `node:https` serves HTTP/1.1 with the limits
 * of the plain listener; connections that chose `h2` are handed to a `node:http2` server. `createSecureServer` with
 * `allowHTTP1` has no documented options for its HTTP/1.1 side on Node 20 to 24, so its limits could not be set.
 */
import { watchFile, unwatchFile } from 'node:fs'
import { constants, createServer as createHttp2Server, type ServerHttp2Session } from 'node:http2'
import type { Http2Server, ServerHttp2Stream } from 'node:http2'
import type { ServerOptions as HttpOptions } from 'node:http'
import { createServer as createHttpsServer, type Server } from 'node:https'
import type { TLSSocket } from 'node:tls'
import type { HttpRequest, HttpResponse } from './message.js'
import { abandon } from './respond.js'
import { readTlsFiles, type TlsFiles } from './tls-files.js'

/** What the listener does for HTTP/2. */
export interface TlsHooks {
  /** Serves one request of a stream. */
  readonly handler: (req: HttpRequest, res: HttpResponse, awaitsContinue: boolean) => void
  /** How long a client may read nothing of a reply. */
  readonly clientStallMs: number
  /** Called with what is wrong with changed certificate files. */
  readonly onProblem: (problem: string) => void
}

/** The listening server for TLS, and the end of its HTTP/2 sessions. */
export interface TlsServer {
  readonly server: Server
  /** Sends GOAWAY to every session: open streams finish, new ones are not accepted. */
  close(): void
  /** Ends every session at once. */
  destroy(): void
}

/** Streams of one session at once, as nginx has it. */
const MAX_STREAMS = 128
/** Header fields, and bytes of them, of one request. */
const MAX_HEADER_PAIRS = 110
const MAX_HEADER_LIST_BYTES = 16 * 1024
/** Streams that a client may reset in a second before its session ends (CVE-2023-44487). */
const MAX_RESETS_PER_SECOND = 100
/** How often the certificate files are looked at. */
const WATCH_MS = 1000

/** Throws a `TlsFileError` if the files cannot be used. */
export function createTlsServer(
  files: TlsFiles,
  settings: HttpOptions,
  hooks: TlsHooks,
): TlsServer {
  const server = createHttpsServer({
    ...settings,
    ...readTlsFiles(files),
    ALPNProtocols: ['h2', 'http/1.1'],
    minVersion: 'TLSv1.2',
    requestCert: files.clientCa !== null,
    rejectUnauthorized: files.clientCa !== null,
    handshakeTimeout: settings.headersTimeout ?? 10_000,
  })
  const sessions = new Set<ServerHttp2Session>()
  const http2 = createSessions(sessions, settings, hooks)
  splitByProtocol(server, http2)
  const stopWatching = watchTlsFiles(files, server, hooks.onProblem)
  server.once('close', stopWatching)
  return {
    server,
    close: () => {
      stopWatching()
      for (const session of sessions) session.close()
    },
    destroy: () => {
      for (const session of sessions) session.destroy()
    },
  }
}

/** Every listener of `secureConnection` gets HTTP/1.1 connections only; the HTTP/2 server gets the others. */
function splitByProtocol(server: Server, http2: Http2Server): void {
  const [serveHttp1] = server.listeners('secureConnection')
  server.removeAllListeners('secureConnection')
  server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.alpnProtocol === 'h2') http2.emit('connection', socket)
    else {
      server.emit('http1Connection', socket)
      serveHttp1?.call(server, socket)
    }
  })
}

function createSessions(
  sessions: Set<ServerHttp2Session>,
  { keepAliveTimeout = 65_000 }: HttpOptions,
  hooks: TlsHooks,
): Http2Server {
  const http2 = createHttp2Server({
    settings: {
      enablePush: false,
      maxConcurrentStreams: MAX_STREAMS,
      maxHeaderListSize: MAX_HEADER_LIST_BYTES,
    },
    maxHeaderListPairs: MAX_HEADER_PAIRS,
    maxSessionInvalidFrames: 100,
    maxSessionRejectedStreams: MAX_RESETS_PER_SECOND,
  })
  http2.on('session', (session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    limitSession(session, keepAliveTimeout)
  })
  const serve = (req: HttpRequest, res: HttpResponse, awaitsContinue: boolean): void => {
    res.setTimeout(hooks.clientStallMs, () => {
      if (res.writableLength > 0) abandon(res)
    })
    hooks.handler(req, res, awaitsContinue)
  }
  http2
    .on('request', (req, res) => serve(req, res, false))
    .on('checkContinue', (req, res) => serve(req, res, true))
    .on('sessionError', () => undefined)
  return http2
}

/** Ends a session that idles, and one that opens streams only to reset them. */
function limitSession(session: ServerHttp2Session, keepAliveMs: number): void {
  let open = 0
  let resets = 0
  let sinceMs = performance.now()
  const reset = (): void => {
    const nowMs = performance.now()
    if (nowMs - sinceMs > 1000) {
      sinceMs = nowMs
      resets = 0
    }
    resets += 1
    if (resets > MAX_RESETS_PER_SECOND)
      session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }
  session.on('stream', (stream: ServerHttp2Stream) => {
    open += 1
    stream.once('close', () => {
      open -= 1
      if (stream.aborted) reset()
    })
  })
  session.setTimeout(keepAliveMs, () => {
    if (open === 0) session.close()
  })
}

/** Puts changed files in force; files that cannot be used are reported and the old ones stay. */
function watchTlsFiles(
  files: TlsFiles,
  server: Server,
  onProblem: (problem: string) => void,
): () => void {
  const paths = [files.cert, files.key, ...(files.clientCa === null ? [] : [files.clientCa])]
  const changed = (): void => {
    try {
      server.setSecureContext({ ...readTlsFiles(files), minVersion: 'TLSv1.2' })
    } catch (error) {
      onProblem(error instanceof Error ? error.message : String(error))
    }
  }
  for (const path of paths) watchFile(path, { interval: WATCH_MS, persistent: false }, changed)
  return () => {
    for (const path of paths) unwatchFile(path, changed)
  }
}
