/** Outages for everybody who is hit. */
import { roleOf } from '../../../accounts/account.js'
import { healthHistory, outages, type Incident } from '../incidents.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import type { Services } from '../../services.js'
import type { Session } from '../../sign-in/sessions.js'

const MOST_MODELS = 3

export function incidentRoutes(services: Services): Route[] {
  return [
    signedRoute('GET', '/incidents', {
      credential: 'session',
      query: schema.incidentsQuery,
      reply: schema.incidentsReply,
      passive: true,
      handle: (request) => incidents(services, request),
    }),
  ]
}

async function incidents(
  services: Services,
  { session, query }: SignedInRequest<ReturnType<typeof schema.incidentsQuery.parse>, undefined>,
): Promise<Reply> {
  const readsAll = roleOf(session.user) !== null
  const { open, recovered, refused } = await outages(services)
  const seen = open.map((incident) => view(incident, session, readsAll))
  const json: schema.IncidentsReply = {
    nowMs: services.now(),
    // Users without a role in the gateway see what fails for their accounts.
    open: readsAll ? seen : seen.filter(({ requests }) => requests > 0),
    recovered: readsAll ? [...recovered] : [],
    configurationRefusedMs: readsAll ? (refused?.atMs ?? null) : null,
    history: readsAll && query.history !== undefined ? await healthHistory(services) : null,
  }
  return { status: 200, json }
}

type OpenIncident = schema.IncidentsReply['open'][number]

function view(incident: Incident, { accounts }: Pick<Session, 'accounts'>, readsAll: boolean): OpenIncident {
  const { upstream, sinceMs, share, attemptsPerMinute, what, cause, breaker, failed, isPart } = incident
  const own = new Set(accounts.map(({ id }) => id))
  const hit = readsAll ? failed : failed.filter(({ accountId }) => own.has(accountId))
  const models = [...new Set(hit.map(({ model }) => model))]
  return {
    ...{ upstream: readsAll ? upstream : null, sinceMs, share, attemptsPerMinute, what, cause, isPart },
    breaker: readsAll ? breaker : null,
    requests: hit.length,
    accounts: new Set(hit.map(({ accountId }) => accountId)).size,
    models: models.slice(0, MOST_MODELS),
  }
}
