/**
 * The dashboard of a process, loaded by the first request for it: its schemas cost a tenth of a second, and
 * a worker that nobody asks for it starts, and stays, without them.
 */
import { readFile } from 'node:fs/promises'
import { isObject, stringOf } from './chat/json.js'
import type { Dashboard, DashboardOptions } from './dashboard/dashboard.js'
import { offerSetUp } from './dashboard/set-up.js'
import { pathOf } from './gateway/admit.js'
import type { Request } from './http/request.js'
import type { Response } from './http/response.js'
import { packageFile } from './package-file.js'

/** What whoever assembles the process gives. */
export type DashboardParts = Omit<DashboardOptions, 'version' | 'folder'>

/** Takes requests below `/dashboard`. */
export class LazyDashboard {
  private readonly parts: DashboardParts
  private opening: Promise<Dashboard> | null = null

  constructor(parts: DashboardParts) {
    this.parts = parts
  }

  /** Whether a request with this target is the dashboard's, by the configuration in force. */
  takes(url: string): boolean {
    if (!url.startsWith('/dashboard')) return false
    const next = url.charAt('/dashboard'.length)
    const isBelow = next === '' || next === '/' || next === '?'
    return isBelow && this.parts.snapshot().config.dashboard.enabled
  }

  handle(req: Request, res: Response): void {
    this.opening ??= open(this.parts)
    this.opening.then(
      (dashboard) => dashboard.handle(pathOf(req.url), req, res),
      (error: unknown) => {
        this.parts.log.error('the dashboard cannot be opened', error)
        this.opening = null
        res.destroy()
      },
    )
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
    dashboard?.close()
  }
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
