/**
 * The ops port: metrics, health, readiness and the configuration in force, as text and JSON. The caller
 * passes a function for each page.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { type ErrorKind, GatewayError, rowOf } from '../../errors.js'
import { cannotListen } from '../../http/cannot-listen.js'
import type { TextFormat } from '../../observe/metrics/metric-types.js'
import type { Readiness } from './readiness.js'

/** The address of the port, and a function for each page. */
export interface OpsOptions {
  host: string
  /** 0: any free port. */
  port: number
  /**
   * Names that the `Host` header may have, besides addresses, `localhost` and the name to listen on; absent:
   * none.
   */
  hosts?: () => readonly string[]
  /** The metrics as text. */
  metrics: (format: TextFormat) => Promise<string>
  ready: () => Readiness
  /** `/config`; the caller has masked secrets. */
  config: () => object
  /** `/workers`. */
  workers: () => object
  /** Serves requests at `/generations` and below; rejects with `GatewayError`. */
  generations?: (req: IncomingMessage) => Promise<object>
  /** The heads of the last requests of all processes, for `sluice plan`; absent: none. */
  recentRequests?: () => Promise<readonly unknown[]>
  /** Serves the requests that it handles (`admin_api.listen: ops`); absent: none. */
  admin?: {
    handles(req: IncomingMessage): boolean
    handle(req: IncomingMessage, res: ServerResponse): void
  }
  /** Whether the request has the token of an operator; absent: none has. Throws `GatewayError`. */
  isOperator?: (req: IncomingMessage) => boolean
}

/** An address to listen on; port 0: any free port. */
type OpsAddress = Pick<OpsOptions, 'host' | 'port'>

/** The open ops port. */
export interface Ops {
  readonly port: number
  /** Listens on another address. Rejects, and keeps the current address, if the other cannot be used. */
  move(address: OpsAddress): Promise<void>
  /** Stops listening and drops open requests; scrapes are short and repeated. */
  close(): Promise<void>
}

/** Listens on the ops port. Rejects with a `GatewayError` if the address cannot be used. */
export async function openOps(options: OpsOptions): Promise<Ops> {
  return new OpsPort(options, await openServer(options, options))
}

class OpsPort implements Ops {
  private readonly options: OpsOptions
  private at: OpsAddress
  private server: Server

  constructor(options: OpsOptions, server: Server) {
    this.options = options
    this.at = options
    this.server = server
  }

  get port(): number {
    const address = this.server.address()
    return typeof address === 'object' && address !== null ? address.port : this.at.port
  }

  async move(to: OpsAddress): Promise<void> {
    const { server: former, at: from } = this
    // Two addresses with the same port may overlap, so the former listener must close first.
    const closesFirst = to.port !== 0 && to.port === from.port
    if (closesFirst) await close(former)
    try {
      this.listenWith(await openServer(this.options, to), to)
    } catch (error) {
      if (closesFirst) this.listenWith(await openServer(this.options, from), from)
      throw error
    }
    if (!closesFirst) await close(former)
  }

  close(): Promise<void> {
    return close(this.server)
  }

  private listenWith(server: Server, at: OpsAddress): void {
    this.server = server
    this.at = at
  }
}

async function openServer(options: OpsOptions, { host, port }: OpsAddress): Promise<Server> {
  const own = { ...options, host }
  const server = createServer((req, res) => {
    void answer(own, req, res)
  })
  // A slow client must not hold a connection of the ops port.
  server.headersTimeout = 5000
  server.requestTimeout = 10_000
  server.keepAliveTimeout = 65_000
  server.maxConnections = 256
  await listen(server, host, port)
  return server
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const refused = (cause: NodeJS.ErrnoException): void => {
      const settings = 'server.ops_host and server.ops_port'
      reject(cannotListen(`${host}:${port}`, cause, { of: ', the address of the ops port', settings }))
    }
    server.once('error', refused)
    server.listen(port, host, () => {
      server.off('error', refused)
      resolve()
    })
  })
}

interface Page {
  status: number
  type: string
  body: string
  retryAfterSeconds?: number | undefined
}

/** As in prom-client. */
const TEXT_TYPES: Readonly<Record<TextFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

/**
 * OpenMetrics if the client names it and prefers it to plain text; Prometheus does. Parameters besides `q`
 * are ignored.
 */
function formatFor({ headers }: IncomingMessage): TextFormat {
  const weights = (headers.accept ?? '').split(',').map((part) => {
    const [type = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    const q = parameters.find((text) => text.startsWith('q='))
    return { type, weight: q === undefined ? 1 : Number(q.slice(2)) }
  })
  const weightOf = (name: string): number => {
    return Math.max(0, ...weights.flatMap(({ type, weight }) => (type === name ? weight : [])))
  }
  const open = weightOf('application/openmetrics-text')
  return open > 0 && open >= weightOf('text/plain') ? 'openmetrics' : 'prometheus'
}

type MakePage = (options: OpsOptions, req: IncomingMessage) => Page | Promise<Page>

const PAGES: Readonly<Record<string, MakePage>> = {
  '/metrics': async ({ metrics }, req) => {
    const format = formatFor(req)
    return { status: 200, type: TEXT_TYPES[format], body: await metrics(format) }
  },
  '/healthz': () => json(200, { status: 'ok' }),
  '/readyz': ({ ready }, { url }) => {
    const readiness = ready()
    const isStrict = new URLSearchParams(url?.split('?')[1]).has('strict')
    const isReady = readiness.ready && !(isStrict && readiness.degraded.length > 0)
    return json(isReady ? 200 : 503, readiness)
  },
  '/config': ({ config }) => json(200, config()),
  '/workers': ({ workers }) => json(200, workers()),
  '/recent-requests': async ({ recentRequests, isOperator }, req) => {
    // Models and key ids of requests are for operators, not for every scraper of the metrics.
    const isAllowed = isLoopback(req.socket.remoteAddress) || isOperator?.(req) === true
    if (!isAllowed) {
      return refusal(
        'forbidden',
        'Send server.admin_token as "Authorization: Bearer TOKEN", or send the request from the same machine.',
      )
    }
    return json(200, { requests: (await recentRequests?.()) ?? [] })
  },
}

function isLoopback(address = ''): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./.test(address)
}

async function answer(options: OpsOptions, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { admin } = options
  if (admin?.handles(req) === true && isOwnHost(options, req)) {
    admin.handle(req, res)
    return
  }
  const page = await choose(options, req).catch((error: unknown) =>
    error instanceof GatewayError
      ? refusal(error.kind, error.message, error.wire.retryAfterSeconds)
      : refusal('bug', 'the reply could not be created'),
  )
  res.writeHead(page.status, {
    'content-type': page.type,
    'content-length': Buffer.byteLength(page.body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(page.retryAfterSeconds === undefined ? {} : { 'retry-after': String(page.retryAfterSeconds) }),
    ...(page.status === 405 ? { allow: req.url?.endsWith('/rollback') === true ? 'POST' : 'GET, HEAD' } : {}),
  })
  res.end(req.method === 'HEAD' ? undefined : page.body)
}

function isOwnHost(options: OpsOptions, req: IncomingMessage): boolean {
  try {
    assertHost(options, req)
    return true
  } catch {
    return false
  }
}

/**
 * Throws for a host name that is not configured. A web page can make a browser send requests here under a
 * name of its own that resolves to this address, and read the replies (DNS rebinding). An address cannot be
 * rebound.
 */
function assertHost({ host, hosts }: OpsOptions, { headers }: IncomingMessage): void {
  // Only HTTP/1.0 has requests without the header; browsers always send it.
  if (headers.host === undefined) return
  const given = headers.host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
  if (given === 'localhost' || isIP(given.replace(/^\[(.*)\]$/, '$1')) !== 0) return
  const names = [host, ...(hosts?.() ?? [])]
  if (names.some((name) => name.toLowerCase().replace(/\.$/, '') === given)) return
  throw new GatewayError(
    'forbidden',
    'The Host of this request is not in server.ops_hosts: add it there, or use an IP address or localhost.',
  )
}

async function choose(options: OpsOptions, req: IncomingMessage): Promise<Page> {
  assertHost(options, req)
  const path = (req.url ?? '/').split('?', 1)[0] ?? '/'
  const { generations } = options
  if (generations !== undefined && path.startsWith('/generations')) {
    return json(200, await generations(req))
  }
  const page = Object.hasOwn(PAGES, path) ? PAGES[path] : undefined
  if (page === undefined) {
    const paths = [...Object.keys(PAGES), '/generations'].join(', ')
    return refusal('unknown_endpoint', `this port has ${paths}`)
  }
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    return refusal('method_not_allowed', 'this port accepts GET and HEAD')
  }
  return page(options, req)
}

function refusal(kind: ErrorKind, message: string, retryAfterSeconds?: number): Page {
  const { status } = rowOf(kind)
  return { ...json(status, { error: { message, code: status, kind } }), retryAfterSeconds }
}

function json(status: number, value: object): Page {
  return { status, type: 'application/json', body: `${JSON.stringify(value)}\n` }
}
