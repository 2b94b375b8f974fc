/**
 * What a route of the dashboard's API is: data, with a policy that cannot be left out.
 * Knows no path and no handler.
 */
import type { ZodType } from 'zod'
import type { HttpRequest, HttpResponse } from '../../../http/message.js'
import type { Session } from '../sign-in/sessions.js'

/** Who may ask: nobody in particular, whoever is signed in, an administrator. */
export type Credential = 'open' | 'session' | 'admin'

/** A request that has passed every check of its route. */
export interface ApiRequest<Query, Body> {
  readonly requestId: string
  readonly req: HttpRequest
  readonly res: HttpResponse
  /** The `{id}` of the path; empty where it has none. */
  readonly id: string
  readonly query: Query
  readonly body: Body
  /** The client's address, behind trusted proxies too. */
  readonly address: string
  /** The origin that the page came from; null where the request says none. */
  readonly origin: string | null
  /** Who is signed in; null for nobody, on open routes only. */
  readonly session: Session | null
}

/** The same with somebody signed in. */
export interface SignedInRequest<Query, Body> extends ApiRequest<Query, Body> {
  readonly session: Session
}

/** An answer in JSON. */
export interface Reply {
  readonly status: number
  readonly json: unknown
  /** Values of `set-cookie`. */
  readonly cookies?: readonly string[]
  /** Where a client may hold the answer and ask whether it has changed. */
  readonly etag?: boolean
}

/** The handler answers by itself. */
export const SELF_REPLIED = 'self_replied'

/** What a handler makes of a request. */
export type HandlerResult = Reply | typeof SELF_REPLIED

/** A route, as the table has it. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Under `/dashboard/api`; may have one `{id}`. */
  readonly path: string
  readonly credential: Credential
  /** Null: it takes none. */
  readonly query: ZodType | null
  /** Null: it takes none; `raw`: the handler reads it. */
  readonly body: ZodType | 'raw' | null
  /** What a successful answer looks like; null where it is no JSON of ours. Held against it by tests. */
  readonly reply: ZodType | null
  /** A page asks this by itself: it does not keep a session alive. */
  readonly passive: boolean
  handle(request: ApiRequest<unknown, unknown>): Promise<HandlerResult> | HandlerResult
}

interface Parts<Query, Body> {
  readonly query?: ZodType<Query>
  readonly body?: ZodType<Body> | 'raw'
  readonly reply: ZodType | null
  readonly passive?: boolean
}

/** A route for which nobody need be signed in. */
export function openRoute<Query = undefined, Body = undefined>(
  method: Route['method'],
  path: string,
  parts: Parts<Query, Body> & {
    handle(request: ApiRequest<Query, Body>): Promise<HandlerResult> | HandlerResult
  },
): Route {
  return {
    ...shapeOf(method, path, 'open', parts),
    handle: (request) => parts.handle(checked<Query, Body>(request)),
  }
}

/** A route for somebody who is signed in; with `admin`, for administrators. */
export function signedRoute<Query = undefined, Body = undefined>(
  credential: 'session' | 'admin',
  method: Route['method'],
  path: string,
  parts: Parts<Query, Body> & {
    handle(request: SignedInRequest<Query, Body>): Promise<HandlerResult> | HandlerResult
  },
): Route {
  return {
    ...shapeOf(method, path, credential, parts),
    handle: (request) => {
      const { session } = request
      // The router has seen to it; a table that says otherwise must not let anybody in.
      if (session === null) throw new Error(`${method} ${path} was reached without a session`)
      return parts.handle({ ...checked<Query, Body>(request), session })
    },
  }
}

/** Throws where a route has no policy, or one that cannot be meant; called before the first request. */
export function assertRoutes(routes: readonly Route[]): void {
  const seen = new Set<string>()
  for (const route of routes) {
    const { method, path, credential, body } = route
    const name = `${method} ${path}`
    const fault = (why: string): never => {
      throw new Error(`the dashboard's route ${name} ${why}`)
    }
    if (!['open', 'session', 'admin'].includes(credential)) fault('has no policy')
    if (!/^(?:\/(?:[a-z-]+|\{id\})(?:\.csv)?)+$/.test(path)) fault('has a path of another form')
    const takesBody = method === 'POST' || method === 'PUT' || method === 'PATCH'
    if (takesBody !== (body !== null)) fault('takes a body and has none, or the other way round')
    if (seen.has(name)) fault('is there twice')
    seen.add(name)
  }
}

function shapeOf(
  method: Route['method'],
  path: string,
  credential: Credential,
  { query, body, reply, passive = false }: Parts<unknown, unknown>,
): Omit<Route, 'handle'> {
  return { method, path, credential, query: query ?? null, body: body ?? null, reply, passive }
}

/** Query and body are what the route's own schemas have made of them. */
function checked<Query, Body>(request: ApiRequest<unknown, unknown>): ApiRequest<Query, Body> {
  return request as ApiRequest<Query, Body>
}
