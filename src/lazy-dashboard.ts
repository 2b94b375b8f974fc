/**
 * The dashboard of a process: loaded once the process serves, since its schemas cost a tenth of a second, and
 * given one turn of the event loop after the other, so that no crowd before it holds up a chat.
 */
import { readFile } from 'node:fs/promises'
import { isObject, stringOf } from './chat/json.js'
import type { Dashboard, DashboardOptions } from './dashboard/dashboard.js'
import { securityHeadersOf } from './dashboard/security-headers.js'
import { offerSetUp } from './dashboard/set-up.js'
import { pathOf } from './gateway/admit.js'
import type { Request } from './http/request.js'
import type { Response } from './http/response.js'
import { packageFile } from './package-file.js'
import { Turns } from './dashboard/turns.js'
import { errorBody } from './wire/error-body.js'

/** What whoever assembles the process gives. */
export type DashboardParts = Omit<DashboardOptions, 'version' | 'folder'>

const CROWD = errorBody({
  kind: 'rate_limited',
  message: 'Too many people ask the dashboard right now; try again.',
})
const REFUSED: readonly string[] = [
  'content-type',
  'application/json',
  'retry-after',
  '1',
  'cache-control',
  'no-store',
]

/** Takes requests below `/dashboard`. */
export class LazyDashboard {
  private readonly parts: DashboardParts
  private readonly turns = new Turns()
  private opening: Promise<Dashboard> | null = null

  constructor(parts: DashboardParts) {
    this.parts = parts
  }

  /**
   * Loads it, where the configuration has one, ahead of its first visitor. Rejects where it cannot be loaded
   * or its route table is wrong; who does not call this leaves it to the first request.
   */
  async open(): Promise<void> {
    if (this.parts.snapshot().config.dashboard.enabled) await this.opened()
  }

  /** Whether a request with this target is the dashboard's, by the configuration in force. */
  takes(url: string): boolean {
    if (!url.startsWith('/dashboard')) return false
    const next = url.charAt('/dashboard'.length)
    const isBelow = next === '' || next === '/' || next === '?'
    return isBelow && this.parts.snapshot().config.dashboard.enabled
  }

  handle(req: Request, res: Response): void {
    res.besides = securityHeadersOf(pathOf(req.url))
    if (!this.turns.take(() => this.take(req, res))) refuse(req, res)
  }

  /**
   * Where there is no administrator, makes the link with this secret good, and tells its address if no
   * other process has. Rejects with `store_unavailable`.
   */
  async offerSetUp(secret: string, port: number, tell: (url: string) => void): Promise<void> {
    const { server, dashboard } = this.parts.snapshot().config
    if (!dashboard.enabled) return
    const isFirst = await offerSetUp(this.parts.store, secret, Date.now())
    const base = dashboard.publicUrl ?? localUrl(server.host, port)
    if (isFirst) tell(`${base}/dashboard/setup#${secret}`)
  }

  async close(): Promise<void> {
    const dashboard = await this.opening
    await dashboard?.close()
  }

  private take(req: Request, res: Response): void {
    // Whoever did not wait is owed nothing.
    if (res.destroyed) return
    this.opened().then(
      (dashboard) => dashboard.handle(pathOf(req.url), req, res),
      (error: unknown) => {
        this.parts.log.error('the dashboard cannot be opened', error)
        this.opening = null
        res.destroy()
      },
    )
  }

  private opened(): Promise<Dashboard> {
    this.opening ??= open(this.parts)
    return this.opening
  }
}

/** Costs as little as an answer can: it is given to whoever comes in too great a crowd. */
function refuse(req: Request, res: Response): void {
  // What follows a body that was not read cannot be trusted to be a request.
  res.send(429, req.complete ? REFUSED : [...REFUSED, 'connection', 'close'], CROWD)
}

async function open(parts: DashboardParts): Promise<Dashboard> {
  const { Dashboard } = await import('./dashboard/dashboard.js')
  const manifest: unknown = JSON.parse(await readFile(packageFile('package.json'), 'utf8'))
  const version = isObject(manifest) ? stringOf(manifest['version']) : undefined
  const folder = packageFile('dist/dashboard/web')
  return new Dashboard({ ...parts, version: version ?? '', folder })
}

function localUrl(host: string, port: number): string {
  const isAny = host === '0.0.0.0' || host === '::'
  const name = isAny ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return `http://${name}:${port}`
}
