/**
 * The dashboard of a process. It is loaded when the process serves already, because its schemas take 0.1 s to
 * load. It serves one request per turn of the event loop, so that many of them do not delay chat requests.
 */
import { readFile } from 'node:fs/promises'
import { isObject, stringOf } from '../base/json.js'
import type { ServerConfig } from '../config/config.js'
import type { Dashboard, DashboardOptions } from '../control/dashboard/dashboard.js'
import { DASHBOARD_WORDS } from '../control/dashboard/problem-words.js'
import { Problem, sendProblem } from '../control/problem-details.js'
import { isLoginPath } from '../control/login/login-paths.js'
import { isApiPath, securityHeadersOf } from '../control/dashboard/static-files.js'
import { offerSetUp } from '../control/sign-in/set-up.js'
import { headerOf, type HttpRequest, type HttpResponse } from '../http/message.js'
import { pathOf } from '../http/request-guard.js'
import { newRequestId } from '../http/request-id.js'
import { abortReply, isClosed, sendReply, setHeaders } from '../http/respond.js'
import { packageFile } from '../config/package-file.js'
import { WorkQueue } from '../control/work-queue.js'

/** Parts from the caller that assembles the process. */
type DashboardParts = Omit<DashboardOptions, 'version' | 'folder' | 'explain'>

/** The range of the figures in lists, and of usage by default. */
const SHOWN_MS = 30 * 86_400_000

/** Prepared in advance, because it is sent under load. */
const BUSY = new Problem(
  'rate_limited',
  'The dashboard has too many requests.',
  { fix: 'Try again in a moment.' },
  ['retry-after', '1'],
)

/** Serves requests below `/dashboard`, redirects browsers there from `/`, and lets programs sign in. */
export class LazyDashboard {
  private readonly parts: DashboardParts
  private readonly queue = new WorkQueue()
  private opening: Promise<Dashboard> | null = null

  constructor(parts: DashboardParts) {
    this.parts = parts
  }

  /**
   * Loads the dashboard, if it is enabled, before its first request, and what its first views of usage would
   * wait for. Rejects if it cannot be loaded or its route table is wrong. Without this call the first request
   * loads it.
   */
  async open(): Promise<void> {
    if (!this.isEnabled) return
    await this.opened()
    const nowMs = Date.now()
    const days = { fromMs: nowMs - SHOWN_MS, toMs: nowMs }
    // If that fails, the first view reads them.
    this.parts.store.ledger.prepareGroupUse?.(days).catch(() => undefined)
  }

  /** Whether the dashboard serves this request under the configuration in force. */
  handles(req: HttpRequest): boolean {
    const { url = '' } = req
    if (this.parts.snapshot().config.login !== null && isLoginPath(pathOf(url))) return true
    if (url === '/' || url.startsWith('/?')) return isPageRequest(req) && this.isEnabled
    if (!url.startsWith('/dashboard')) return false
    const next = url.charAt('/dashboard'.length)
    const isBelow = next === '' || next === '/' || next === '?'
    return isBelow && this.isEnabled
  }

  /** Whether it serves this request, and with the API rather than the page. */
  handlesApi(req: HttpRequest): boolean {
    return isApiPath(pathOf(req.url ?? '')) && this.isEnabled
  }

  private get isEnabled(): boolean {
    return this.parts.snapshot().config.dashboard.enabled
  }

  handle(req: HttpRequest, res: HttpResponse): void {
    const path = pathOf(req.url ?? '')
    setHeaders(res, securityHeadersOf(path))
    if (path === '/') {
      sendReply(res, {
        status: 302,
        headers: ['location', '/dashboard/', 'vary', 'accept'],
        body: '',
      })
      return
    }
    if (!this.queue.take(() => this.take(req, res))) {
      sendProblem(res, BUSY, { requestId: newRequestId(Date.now()), words: DASHBOARD_WORDS })
    }
  }

  /**
   * If there is no administrator, activates the set-up link with this secret, and passes its URL to the
   * callback if no other process has. Rejects with `store_unavailable`.
   */
  async offerSetUp(secret: string, port: number, onUrl: (url: string) => void): Promise<void> {
    const { server, dashboard } = this.parts.snapshot().config
    if (!dashboard.enabled) return
    const isFirst = await offerSetUp(this.parts.store, secret, Date.now())
    const base = dashboard.publicUrl ?? localUrl(server, port)
    if (isFirst) onUrl(`${base}/dashboard/setup#${secret}`)
  }

  async close(): Promise<void> {
    const dashboard = await this.opening
    await dashboard?.close()
  }

  private take(req: HttpRequest, res: HttpResponse): void {
    if (isClosed(res) || res.headersSent) return
    this.opened().then(
      (dashboard) => dashboard.handle(pathOf(req.url ?? ''), req, res),
      (error: unknown) => {
        this.parts.log.error('the dashboard cannot be opened', error)
        this.opening = null
        abortReply(res)
      },
    )
  }

  private opened(): Promise<Dashboard> {
    this.opening ??= open(this.parts)
    return this.opening
  }
}

async function open(parts: DashboardParts): Promise<Dashboard> {
  const { Dashboard } = await import('../control/dashboard/dashboard.js')
  const manifest: unknown = JSON.parse(await readFile(packageFile('package.json'), 'utf8'))
  const version = isObject(manifest) ? stringOf(manifest['version']) : undefined
  const folder = packageFile('dist/dashboard/web')
  const { explainer } = await import('../gateway/explain/explain-model.js')
  return new Dashboard({ ...parts, version: version ?? '', folder, explain: explainer(parts.snapshot) })
}

function localUrl({ host, tls }: ServerConfig, port: number): string {
  const isAny = host === '0.0.0.0' || host === '::'
  const name = isAny ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return `${tls === null ? 'http' : 'https'}://${name}:${port}`
}

/** Whether a browser requests a page, rather than a program an endpoint. */
function isPageRequest(req: HttpRequest): boolean {
  const isRead = req.method === 'GET' || req.method === 'HEAD'
  return isRead && (headerOf(req, 'accept') ?? '').includes('text/html')
}
