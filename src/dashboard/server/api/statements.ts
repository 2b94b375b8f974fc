/** The statement of an account for a month, as JSON or CSV. */
import { GatewayError } from '../../../errors.js'
import { sendReply } from '../../../http/respond.js'
import { monthRange, statementCsv, statementOf } from '../statements-and-reports.js'
import {
  SELF_REPLIED,
  signedRoute,
  type HandlerResult,
  type Route,
  type SignedInRequest,
} from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { notFound } from '../routing/access.js'
import type { Services } from '../services.js'

type Query = ReturnType<typeof schema.statementQuery.parse>

export function statementRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/statements/{id}', {
      credential: 'read account',
      query: schema.statementQuery,
      reply: schema.statementReply,
      handle: (request) => statement(services, request),
    }),
  ]
}

async function statement(
  services: Services,
  { session, query, id: month, res, requestId }: SignedInRequest<Query, undefined>,
): Promise<HandlerResult> {
  if (monthRange(month) === null) throw notFound()
  if (session.isAll) {
    const message = 'A statement is that of one account: name it.'
    throw new GatewayError('malformed_request', message, { param: 'account' })
  }
  const { account } = session
  const json = await statementOf(services.store, account.id, month)
  if (query.format === undefined) return { status: 200, json }
  const file = `statement-${account.name}-${month}.csv`
  const headers = [
    ...['content-type', 'text/csv; charset=utf-8', 'x-request-id', requestId],
    ...['content-disposition', `attachment; filename="${file}"`, 'cache-control', 'no-store'],
  ]
  sendReply(res, { status: 200, headers, body: statementCsv(json) })
  return SELF_REPLIED
}
