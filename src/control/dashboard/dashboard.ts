/**
 * The dashboard of one process: the files of its page and its API, under `/dashboard/`.
 * It keeps no state that another process would need.
 */
import { PasswordQueue } from '../../accounts/password-queue.js'
import type { HttpRequest, HttpResponse } from '../../http/message.js'
import { sendReply } from '../../http/respond.js'
import type { Identity } from '../../accounts/account.js'
import type { Logger } from '../../observe/log.js'
import type { FleetMember } from '../../store/store.js'
import { isApiPath, StaticFiles } from './static-files.js'
import type { ConfigControl } from '../config-control.js'
import type { GatewayStatus } from '../gateway-status.js'
import type { LoginEndpoints } from '../login/login-endpoints.js'
import { DEVICE_PAGE, isLoginPath } from '../login/login-paths.js'
import { apiRouter } from './routing/api-router.js'
import { dashboardRoutes } from './routing/routes.js'
import type { Services } from '../services.js'
import type { LinkParts } from '../sign-in/links.js'
import { Sessions } from '../sign-in/sessions.js'
import { AttemptLimits } from '../sign-in/attempt-limits.js'

/** What the dashboard depends on. */
export interface DashboardOptions extends Omit<LinkParts, 'now'> {
  readonly log: Logger
  readonly version: string
  /** The folder of the page that Vite has built. */
  readonly folder: string
  readonly chat: Services['chat']
  readonly gatewayStatus: () => Promise<GatewayStatus | null>
  readonly hasSampleData?: boolean
  readonly configControl: ConfigControl
  readonly explain: Services['explain']
  /** The gateways that share the store; null if the store is on one machine, or does not reply. */
  readonly fleet: () => readonly FleetMember[] | null
  /** The client's address. */
  readonly addressOf: (req: HttpRequest) => string
  /** The identity of a request of the data plane. Rejects with `GatewayError`. */
  readonly identify: (req: HttpRequest) => Promise<Identity>
  /** Counts an export of telemetry of a program whose user signed in. */
  readonly countTelemetry: (signal: string) => void
  /** Ms since 1970; the machine's clock by default. */
  readonly now?: () => number
}

/** Interval between removals of expired sessions and links. Expired ones are refused even before that. */
const SWEEP_MS = 600_000

/** Serves `/dashboard/`, and the paths with which programs sign in. */
export class Dashboard {
  private readonly router: ReturnType<typeof apiRouter>
  private readonly files: StaticFiles
  private readonly passwords = new PasswordQueue()
  private readonly sweep: NodeJS.Timeout
  private readonly openLogins: () => Promise<LoginEndpoints>
  private logins: Promise<LoginEndpoints> | null = null

  constructor(options: DashboardOptions) {
    const { store, log, snapshot, now = Date.now } = options
    const groupSessionMs = () => snapshot().config.dashboard.groupSessionHours * 3_600_000
    const sessions = new Sessions(store, now, groupSessionMs)
    const attemptLimits = new AttemptLimits(store.throttle, now)
    const services: Services = {
      ...options,
      hasSampleData: options.hasSampleData ?? false,
      ledger: store.ledger,
      now,
      sessions,
      passwords: this.passwords,
      attemptLimits,
    }
    this.router = apiRouter({
      routes: dashboardRoutes(services),
      sessions,
      store,
      log,
      publicUrl: () => snapshot().config.dashboard.publicUrl,
      addressOf: options.addressOf,
    })
    this.files = new StaticFiles(options.folder)
    this.openLogins = async () => {
      const { LoginEndpoints } = await import('../login/login-endpoints.js')
      return new LoginEndpoints({ ...options, now })
    }
    this.sweep = setInterval(() => {
      // A failing store is reported by the requests that need it.
      store.signInTokens.sweep(now()).catch(() => undefined)
      store.throttle.sweep(now()).catch(() => undefined)
      attemptLimits.sweep()
    }, SWEEP_MS).unref()
  }

  /**
   * Serves one request whose path, without the query, is or begins with `/dashboard`, or is one of
   * `login-paths.ts`. Never rejects.
   */
  async handle(path: string, req: HttpRequest, res: HttpResponse): Promise<void> {
    if (path === '/dashboard') {
      sendReply(res, {
        status: 308,
        headers: ['location', '/dashboard/', 'cache-control', 'no-store'],
        body: '',
      })
      return
    }
    if (isApiPath(path)) {
      await this.router.answer(path, req, res)
      return
    }
    if (path === DEVICE_PAGE) {
      await this.files.answer('index.html', req, res)
      return
    }
    if (isLoginPath(path)) {
      this.logins ??= this.openLogins()
      await (await this.logins).answer(path, req, res)
      return
    }
    await this.files.answer(path.slice('/dashboard/'.length), req, res)
  }

  async close(): Promise<void> {
    clearInterval(this.sweep)
    await this.passwords.close()
  }
}
