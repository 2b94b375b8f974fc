/**
 * The audit log of the signed-in account; administrators may also read that of another account, or of all.
 */
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { scopeOf, type Services } from '../services.js'

/** The routes. */
export function auditRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/audit', {
      credential: 'session',
      query: schema.auditQuery,
      reply: schema.auditReply,
      handle: (request) => audit(services, request),
    }),
  ]
}

async function audit(
  services: Services,
  { session, query }: SignedInRequest<ReturnType<typeof schema.auditQuery.parse>, undefined>,
): Promise<Reply> {
  const accountId = await scopeOf(services, session, query.account)
  const limit = query.limit ?? 50
  const found = await services.store.auditTrail.page({
    accountId,
    after: query.after ?? null,
    limit: limit + 1,
  })
  const entries = found.slice(0, limit)
  const json: schema.AuditReply = {
    entries,
    next: found.length > limit ? (entries.at(-1)?.id ?? null) : null,
  }
  return { status: 200, json }
}
