/** A gateway with the admin API for tests, on either store, and a client that checks every reply of it. */
import type { Test } from 'tap'
import { createAdminToken, SCOPES } from '../../../src/accounts/admin-tokens.js'
import { isObject, type JsonObject } from '../../../src/base/json.js'
import { PROBLEM } from '../../../src/control/admin/openapi.js'
import { adminRoutes } from '../../../src/control/admin/routes.js'
import type { AdminServices } from '../../../src/control/admin/services.js'
import { openStore } from '../../../src/store/open-store.js'
import type { Store } from '../../../src/store/store.js'
import { startGateway, type GatewaySettings, type TestGateway } from '../../helpers/gateway.js'
import { isToday } from '../../helpers/long-suite.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { assertReply, routeOf } from '../check-reply.js'

/** A reply. */
export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Empty if the text is not a JSON object. */
  readonly json: JsonObject
}

interface AskOptions {
  readonly body?: unknown
  readonly headers?: Record<string, string>
  /** Empty: none. */
  readonly token?: string
}

/** A gateway and a token with all scopes. */
export interface AdminStage {
  readonly gateway: TestGateway
  readonly store: Store
  readonly token: string
  readonly ask: (method: string, path: string, options?: AskOptions) => Promise<Reply>
  /** A new token. */
  readonly makeToken: (scopes: readonly string[], accountId?: string | null) => Promise<string>
}

/** The routes, to read what they are made of; their handlers have no store. */
export const ROUTES = adminRoutes({ snapshot: () => ({ config: { plans: {} } }) } as unknown as AdminServices)

/** Throws if a reply of the admin API is none that its route declares. `value`: its JSON; null without. */
export function assertDeclared(method: string, path: string, { status, headers }: Response, value: unknown) {
  const what = `${status} of ${method} ${path}`
  const isProblem = headers.get('content-type') === 'application/problem+json'
  if (isProblem && value !== null) assertReply(what, PROBLEM.schema(), value)
  const route = status >= 200 && status < 300 ? routeOf(ROUTES, method, path) : undefined
  if (route === undefined) return
  const form = route.replies[status]
  if (form === undefined) throw new Error(`${what} is not declared`)
  if (form !== null && value !== null) assertReply(what, form.schema(), value)
}

/** Starts it. */
export async function startAdmin(t: Test, settings: GatewaySettings = {}): Promise<AdminStage> {
  const more = `${settings.more ?? ''}\nadmin_api: { enabled: true }`
  const gateway = await startGateway(t, { ...settings, more })
  const store = await openStore(gateway.store)
  t.teardown(() => store.close())
  const makeToken = async (scopes: readonly string[], accountId: string | null = null) => {
    const wish = { name: 'robot', scopes, accountId, createdBy: 'command line', audit: () => [] }
    return (await createAdminToken(store, wish)).secret
  }
  const token = await makeToken(SCOPES)
  return { gateway, store, token, makeToken, ask }

  async function ask(
    method: string,
    path: string,
    { body, headers = {}, token: own = token }: AskOptions = {},
  ): Promise<Reply> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const response = await fetch(`${gateway.origin}/admin/v1${path}`, {
      method,
      headers: {
        ...(own === '' ? {} : { authorization: `Bearer ${own}` }),
        ...(body === undefined ? {} : { 'content-type': type }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const value: unknown = /json/.test(response.headers.get('content-type') ?? '')
      ? JSON.parse(text === '' ? 'null' : text)
      : null
    assertDeclared(method, path, response, value)
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isObject(value) ? value : {},
    }
  }
}

/** How many tests of this process have a test for each store. */
let pairs = 0

/**
 * Runs the test on both stores; each day on one of them, every second test on the other one. The long suite
 * has both.
 */
export function onBothStores(t: Test, name: string, test: StoreTest): void {
  const at = pairs
  pairs += 1
  if (isToday(at, 2)) onSqlite(t, name, test)
  if (isToday(at + 1, 2)) onRedis(t, name, test)
}

type StoreTest = (t: Test, settings: GatewaySettings) => Promise<void>

function onSqlite(t: Test, name: string, test: StoreTest): void {
  void t.test(`${name} (SQLite)`, (t) => test(t, {}))
}

function onRedis(t: Test, name: string, test: StoreTest): void {
  void t.test(`${name} (Redis)`, { skip: redisMissing() }, async (t) => {
    const redis = await startRedis(t)
    await test(t, { store: redis.url() })
  })
}

/** A text of a reply. */
export function textOf({ json }: Reply, name: string): string {
  const value = json[name]
  if (typeof value !== 'string') throw new Error(`the reply has no text ${name}`)
  return value
}
