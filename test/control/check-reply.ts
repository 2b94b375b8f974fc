/** Checks the replies of both control APIs in tests with the schemas of their routes. */
import { inspect } from 'node:util'
import type { ZodType } from 'zod'
import type { ControlRoute } from '../../src/control/control-router.js'

/** The route of a request, whose path is below that of its API; undefined if there is none. */
export function routeOf<Route extends ControlRoute>(
  routes: readonly Route[],
  method: string,
  path: string,
): Route | undefined {
  const parts = path.replace(/\?.*$/s, '').split('/')
  const matching = routes.filter((route) => {
    const own = route.path.split('/')
    const isLike = own.every((part, at) => part === parts[at] || /^\{\w+\}$/.test(part))
    return isLike && own.length === parts.length && route.method === method
  })
  return matching.find((route) => !route.path.includes('{')) ?? matching[0]
}

/** Throws if the JSON has not the form that the schema describes. */
export function assertReply(what: string, schema: ZodType, json: unknown): void {
  const { error } = schema.safeParse(json)
  if (error === undefined) return
  throw new Error(
    `${what} has another form: ${error.message}\n${inspect(json, { depth: 5 }).slice(0, 2_000)}`,
  )
}
