/**
 * The options and the interface of the data plane's listener (`server.ts`). All times are in milliseconds.
 */
import type { ErrorKind } from '../errors.js'
import type { HttpRequest, HttpResponse, Upgrade } from './message.js'
import type { TlsFiles } from './tls/read-tls-files.js'

/** Options of `openServer`. */
export interface ServerOptions {
  host: string
  /** 0: any free port. */
  port: number
  /**
   * Called for each request that the guard accepts, when its headers have arrived. `upgrade` is null unless
   * `takesUpgrade` returned true for the request.
   */
  handler: (req: HttpRequest, res: HttpResponse, upgrade: Upgrade | null) => void
  /** Whether the handler accepts this WebSocket upgrade; see `GatewayServer.allowUpgrades`. */
  takesUpgrade?: (req: HttpRequest) => boolean
  /** Whether connections close after the current reply. */
  closesConnections?: () => boolean
  /** Headers of every reply to the request, including refusals: name, value, … */
  replyHeaders?: (req: HttpRequest) => readonly string[]
  /**
   * Called for each request that did not reach the handler, with the id in its reply; and with null for each
   * connection that could not be accepted.
   */
  onRefused?: (kind: ErrorKind, id: string | null) => void
  /** From the first byte (or the connection) to the last header; default 10 s. */
  headersTimeoutMs?: number
  /** Time after which a body must arrive at 1 KiB/s on average; default `headersTimeoutMs`. */
  requestTimeoutMs?: number
  /** Interval of the checks of both timeouts; default 1 s. */
  checkingIntervalMs?: number
  /** How long an idle connection stays open; default 65 s, longer than the 60 s of most load balancers. */
  keepAliveTimeoutMs?: number
  /** How long a client may read no byte of a reply; default 60 s. */
  clientStallMs?: number
  /** A further connection is refused with 503 and closed; default 10,000. */
  maxConnections?: number
  /** HTTPS and HTTP/2; HTTP/1.1 without TLS if absent. */
  tls?: TlsFiles | null
  /** Called with the error of changed certificate files; the previous certificate stays in use. */
  onTlsProblem?: (problem: Error) => void
  /** Called with the certificate in use, in PEM: at the start and after each change. */
  onCertificate?: (pem: string) => void
}

/** Options of `drain`. */
export interface DrainOptions {
  /**
   * How long idle connections stay open and new ones are accepted, with `connection: close` on each reply;
   * default 0.
   */
  lameDuckMs?: number
  /** Another process listens on the same address and accepts all new connections from the start. */
  isReplaced?: boolean
  /** Called once if requests are still open at the deadline: the last moment to send them an error. */
  onDeadline?: () => void
}

/** A listening server. */
export interface GatewayServer {
  readonly port: number
  /**
   * Whether upgrade requests reach `takesUpgrade`. If allowed, those that it rejects are refused; otherwise
   * they are served as ordinary requests whose connection closes.
   */
  allowUpgrades(isAllowed: boolean): void
  /** True after the first call of drain(). */
  readonly draining: boolean
  /**
   * Stops accepting, lets open requests finish, and resolves when no connection is left; at the
   * latest `deadlineMs` (and a grace of up to 3 s for last errors) after accepting stopped.
   * Never rejects; further calls wait for the first.
   */
  drain(deadlineMs: number, options?: DrainOptions): Promise<void>
}
