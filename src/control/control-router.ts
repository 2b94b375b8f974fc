/**
 * The router of both control APIs, that of the dashboard and the admin API: finds the route of a request in a
 * table, and answers what a handler or a check throws with problem details. Each API has a door, which
 * decides who may use a route, reads query and body, and has the form of replies.
 */
import { GatewayError } from '../errors.js'
import type { HttpRequest, HttpResponse } from '../http/message.js'
import { newRequestId } from '../http/request-id.js'
import { abortReply, isClosed } from '../http/respond.js'
import type { Logger } from '../observe/log.js'
import { Problem, problemOf, sendProblem, type ProblemWords } from './problem-details.js'

/** The part of a route that the router reads. */
export interface ControlRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the prefix of its API, with `{name}` for a variable part. */
  readonly path: string
}

/** A request of a control API. */
export interface ControlExchange {
  readonly requestId: string
  readonly req: HttpRequest
  readonly res: HttpResponse
}

/** A route, and the variable parts of the path by name. */
export interface FoundRoute<Route> {
  readonly route: Route
  readonly values: Readonly<Record<string, string>>
}

/** What an API has of its own. */
interface ControlDoor<Route extends ControlRoute> {
  /** The path prefix. */
  readonly prefix: string
  /** Of several routes that match, one without variable parts counts. */
  readonly routes: readonly Route[]
  readonly log: Logger
  /** The subject of its messages: `The admin API`. */
  readonly name: string
  /** What to do about a path that no route has. */
  readonly whereTo?: string
  readonly words: ProblemWords
  /** The value of a variable part; null: no route has such a part. */
  valueOf(part: string): string | null
  /** Checks and answers a request. */
  serve(found: FoundRoute<Route>, exchange: ControlExchange): Promise<void>
}

interface Row<Route> {
  readonly route: Route
  readonly parts: readonly string[]
}

/** Serves the requests of one API. */
export class ControlRouter<Route extends ControlRoute> {
  private readonly door: ControlDoor<Route>
  private readonly rows: readonly Row<Route>[]

  constructor(door: ControlDoor<Route>) {
    this.door = door
    this.rows = door.routes.map((route) => ({ route, parts: route.path.split('/') }))
  }

  /** Serves one request whose path, without the query, is or begins with the prefix. Never rejects. */
  async answer(path: string, req: HttpRequest, res: HttpResponse): Promise<void> {
    const exchange = { requestId: newRequestId(Date.now()), req, res }
    try {
      await this.door.serve(this.find(path.slice(this.door.prefix.length), req.method ?? ''), exchange)
    } catch (thrown) {
      this.refuse(exchange, thrown)
    }
  }

  private find(path: string, method: string): FoundRoute<Route> {
    const parts = path.split('/')
    const matching = this.rows.flatMap((row) => {
      const values = this.matched(row.parts, parts)
      return values === null ? [] : [{ route: row.route, values }]
    })
    if (matching.length === 0) throw unknown(this.door)
    // HEAD gets the reply of GET without the body.
    const wanted = method === 'HEAD' ? 'GET' : method
    const found = matching.filter(({ route }) => route.method === wanted)
    const [first] = found
    if (first !== undefined) return found.find(({ route }) => !route.path.includes('{')) ?? first
    const allowed = matching.flatMap(({ route }) => {
      return route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]
    })
    throw notAllowed(method, allowed.join(', '))
  }

  /** The values of the pattern's variable parts; null if the path has another form. */
  private matched(pattern: readonly string[], parts: readonly string[]): Record<string, string> | null {
    if (pattern.length !== parts.length) return null
    const values: Record<string, string> = {}
    for (const [at, expected] of pattern.entries()) {
      const part = parts[at] ?? ''
      if (!expected.startsWith('{')) {
        if (part !== expected) return null
        continue
      }
      const value = this.door.valueOf(part)
      if (value === null) return null
      values[expected.slice(1, -1)] = value
    }
    return values
  }

  private refuse({ requestId, res }: ControlExchange, thrown: unknown): void {
    const { log, name, words } = this.door
    const problem = problemOf(thrown, words)
    if (problem.kind === 'bug') {
      const cause = thrown instanceof GatewayError ? (thrown.cause ?? thrown) : thrown
      log.error(`${name} failed`, cause, { request_id: requestId })
    }
    const isGone = thrown instanceof GatewayError && thrown.kind === 'client_gone'
    if (isGone || isClosed(res) || res.headersSent) abortReply(res)
    else sendProblem(res, problem, { requestId, words })
  }
}

function unknown({ name, whereTo: fix }: Pick<ControlDoor<ControlRoute>, 'name' | 'whereTo'>): Problem {
  const detail = `${name} has no endpoint at this path.`
  return new Problem('unknown_endpoint', detail, fix === undefined ? {} : { fix })
}

function notAllowed(method: string, allowed: string): Problem {
  return new Problem('method_not_allowed', `This path takes ${allowed}, not ${method}.`, {}, [
    'allow',
    allowed,
  ])
}
