/**
 * The admin API of a process, loaded at its first request. Like the dashboard, it serves one request per turn
 * of the event loop, so that many of them do not delay chat requests. Without it in the configuration, a
 * request costs a comparison of its path.
 */
import type { AdminApi } from '../control/admin/admin-api.js'
import { Problem, sendProblem } from '../control/problem-details.js'
import type { AdminServices } from '../control/admin/services.js'
import { WorkQueue } from '../control/work-queue.js'
import { packageVersion } from '../config/package-file.js'
import type { HttpRequest, HttpResponse } from '../http/message.js'
import { pathOf } from '../http/request-guard.js'
import { newRequestId } from '../http/request-id.js'
import { isClosed } from '../http/respond.js'
import type { Store } from '../store/store.js'

/** Parts from the caller that assembles the process. */
interface AdminParts extends Omit<AdminServices, 'version' | 'now' | 'store' | 'explain'> {
  /** The port of this process. */
  readonly listen: 'data' | 'ops'
  /** Called at the first request. */
  readonly openStore: () => Promise<Store> | Store
}

const PATH = '/admin/v1'
/** Prepared in advance, because it is sent under load. */
const BUSY = again('rate_limited', 'The admin API of this process has too many requests.')
const AWAY = again('store_unavailable', 'The store cannot be opened.')

/** Serves requests at `/admin/v1` and below. */
export class LazyAdminApi {
  private readonly parts: AdminParts
  private readonly queue = new WorkQueue()
  private opening: Promise<Opened> | null = null

  constructor(parts: AdminParts) {
    this.parts = parts
  }

  /** Whether the admin API serves this request under the configuration in force. */
  handles({ url = '' }: { readonly url?: string | undefined }): boolean {
    if (!url.startsWith(PATH)) return false
    const next = url.charAt(PATH.length)
    if (next !== '' && next !== '/' && next !== '?') return false
    const { enabled, listen } = this.parts.snapshot().config.adminApi
    return enabled && listen === this.parts.listen
  }

  handle(req: HttpRequest, res: HttpResponse): void {
    if (!this.queue.take(() => this.take(req, res))) refuse(res, BUSY)
  }

  /** Closes the store if a request has opened it. */
  async close(): Promise<void> {
    const opened = await this.opening?.catch(() => null)
    await opened?.store.close()
  }

  private take(req: HttpRequest, res: HttpResponse): void {
    if (isClosed(res) || res.headersSent) return
    this.opening ??= open(this.parts)
    this.opening.then(
      ({ api }) => api.handle(pathOf(req.url ?? ''), req, res),
      (error: unknown) => {
        this.parts.log.error('the admin API cannot be opened', error)
        this.opening = null
        refuse(res, AWAY)
      },
    )
  }
}

interface Opened {
  readonly api: AdminApi
  readonly store: Store
}

async function open(parts: AdminParts): Promise<Opened> {
  const { AdminApi } = await import('../control/admin/admin-api.js')
  const store = await parts.openStore()
  const version = packageVersion()
  const { explainer } = await import('../gateway/explain/explain-model.js')
  const explain = explainer(parts.snapshot)
  return { store, api: new AdminApi({ ...parts, store, version, explain, now: Date.now }) }
}

function again(kind: 'rate_limited' | 'store_unavailable', detail: string): Problem {
  return new Problem(kind, detail, { fix: 'Send the request again in a moment.' }, ['retry-after', '1'])
}

function refuse(res: HttpResponse, problem: Problem): void {
  if (!isClosed(res)) sendProblem(res, problem, { requestId: newRequestId(Date.now()) })
}
