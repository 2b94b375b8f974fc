/**
 * The form of a route of the dashboard's API: data with a mandatory access policy.
 * Its path may have one `{id}` or `{email}`.
 */
import type { ZodType } from 'zod'
import type { ControlExchange, ControlRoute } from '../../control-router.js'
import type { AccountSession } from '../../sign-in/sessions.js'
import { ACCESS, type AccessName } from './access.js'

/** Required access: none, or a row of the table of access. */
type Credential = 'open' | AccessName

/** A request that has passed every check of its route. */
export interface ApiRequest<Query, Body> extends ControlExchange {
  /** The `{id}` or `{email}` of the path; empty if the path has none. */
  readonly id: string
  readonly query: Query
  readonly body: Body
  /** The client's address, behind trusted proxies too. */
  readonly address: string
  /** The origin of the page; null if the request does not state it. */
  readonly origin: string | null
  /** The session; null only on open routes. */
  readonly session: AccountSession | null
}

/** A request with a session. */
export interface SignedInRequest<Query, Body> extends ApiRequest<Query, Body> {
  readonly session: AccountSession
}

/** A JSON reply. */
export interface Reply {
  readonly status: number
  readonly json: unknown
  /** Values of `set-cookie`. */
  readonly cookies?: readonly string[]
  /** Adds an `etag`, so that the browser can revalidate its cached copy. */
  readonly etag?: boolean
}

/** Returned by a handler that writes the reply itself. */
export const SELF_REPLIED = 'self_replied'

export type HandlerResult = Reply | typeof SELF_REPLIED

/** A route of the table. */
export interface Route extends ControlRoute {
  readonly credential: Credential
  /** Null: the route has no query. */
  readonly query: ZodType | null
  /** Null: the route has no body; `raw`: the handler reads it. */
  readonly body: ZodType | 'raw' | null
  /** The schema of a successful reply, checked by tests; null if the reply is not JSON of this API. */
  readonly reply: ZodType | null
  /** The page polls this route; it does not extend a session. */
  readonly passive: boolean
  handle(request: ApiRequest<unknown, unknown>): Promise<HandlerResult> | HandlerResult
}

interface Parts<Query, Body> {
  readonly query?: ZodType<Query>
  readonly body?: ZodType<Body> | 'raw'
  readonly reply: ZodType | null
  readonly passive?: boolean
}

/** A route without a session. */
export function openRoute<Query = undefined, Body = undefined>(
  method: Route['method'],
  path: string,
  parts: Parts<Query, Body> & {
    handle(request: ApiRequest<Query, Body>): Promise<HandlerResult> | HandlerResult
  },
): Route {
  return {
    ...shapeOf(method, path, { ...parts, credential: 'open' }),
    handle: (request) => parts.handle(checked<Query, Body>(request)),
  }
}

/** A route that needs a session, and the role that its row of the table of access names. */
export function signedRoute<Query = undefined, Body = undefined>(
  method: Route['method'],
  path: string,
  parts: Parts<Query, Body> & {
    readonly credential: AccessName
    handle(request: SignedInRequest<Query, Body>): Promise<HandlerResult> | HandlerResult
  },
): Route {
  return {
    ...shapeOf(method, path, parts),
    handle: (request) => {
      const { session } = request
      // The router checks this, too. An error in the table must not grant access.
      if (session === null) throw new Error(`${method} ${path} was reached without a session`)
      return parts.handle({ ...checked<Query, Body>(request), session })
    },
  }
}

/** Throws if a route has no policy or a contradictory one. Called before the first request. */
export function assertRoutes(routes: readonly Route[]): void {
  const seen = new Set<string>()
  for (const route of routes) {
    const { method, path, credential, body } = route
    const name = `${method} ${path}`
    const fault = (why: string): never => {
      throw new Error(`the dashboard's route ${name} ${why}`)
    }
    if (credential !== 'open' && !Object.hasOwn(ACCESS, credential)) fault('has no policy')
    if (!/^(?:\/(?:[a-z-]+|\{id\}|\{email\})(?:\.csv)?)+$/.test(path)) fault('has a path of another form')
    const takesBody = method === 'POST' || method === 'PUT' || method === 'PATCH'
    if (takesBody !== (body !== null)) fault('takes a body and has none, or the other way round')
    if (seen.has(name)) fault('is there twice')
    seen.add(name)
  }
}

interface RoutePolicy extends Parts<unknown, unknown> {
  readonly credential: Credential
}

function shapeOf(
  method: Route['method'],
  path: string,
  { credential, query, body, reply, passive = false }: RoutePolicy,
): Omit<Route, 'handle'> {
  return { method, path, credential, query: query ?? null, body: body ?? null, reply, passive }
}

/** The schemas of the route have produced query and body. */
function checked<Query, Body>(request: ApiRequest<unknown, unknown>): ApiRequest<Query, Body> {
  return request as ApiRequest<Query, Body>
}
