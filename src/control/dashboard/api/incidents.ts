/** Outages for everybody who is hit, and failures by what they have in common. */
import { causeOf } from '../../../errors.js'
import { adminTurns } from '../../../base/turn-queue.js'
import { roleOf } from '../../../accounts/account.js'
import type { LedgerEntry } from '../../../ledger/entry.js'
import { timesOf } from '../../../usage/ranges.js'
import { healthHistory, outages, type Incident } from '../incidents.js'
import { signedRoute, type Reply, type Route, type SignedInRequest } from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { scopeOf, type Services } from '../../services.js'
import type { Session } from '../../sign-in/sessions.js'

/** The newest failures that are counted. */
const MAX_FAILURES = 10_000
const READ_AT_ONCE = 1_000
const MOST_GROUPS = 100
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
    signedRoute('GET', '/failures', {
      credential: 'usage',
      query: schema.failuresQuery,
      reply: schema.failuresReply,
      handle: (request) => failures(services, request),
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

/** A group while it is counted. */
interface Group {
  readonly newest: LedgerEntry
  requests: number
  firstMs: number
  readonly accounts: Set<string>
}

async function failures(
  services: Services,
  { session, query }: SignedInRequest<ReturnType<typeof schema.failuresQuery.parse>, undefined>,
): Promise<Reply> {
  const nowMs = services.now()
  const { upstream, range, toMs: endMs = range === undefined ? nowMs : undefined } = query
  const { fromMs, toMs } = timesOf({ ...query, toMs: endMs }, nowMs)
  const groups = new Map<string, Group>()
  const filter = {
    ...{ accountId: scopeOf(session), failed: true, fromMs, toMs, limit: READ_AT_ONCE },
    ...(upstream === undefined ? {} : { upstream }),
  }
  let requests = 0
  let after: string | null = null
  do {
    const page: Awaited<ReturnType<Services['ledger']['entries']>> = await services.ledger.entries({
      ...filter,
      after,
    })
    for (const entry of page.entries) count(groups, entry)
    requests += page.entries.length
    after = page.next
    await adminTurns.next()
  } while (after !== null && requests < MAX_FAILURES)
  const sorted = [...groups.values()].sort((a, b) => b.requests - a.requests)
  const json: schema.FailuresReply = {
    groups: sorted.slice(0, MOST_GROUPS).map(({ newest, requests: own, firstMs, accounts }) => ({
      ...{ upstream: newest.upstream, outcome: newest.outcome, upstreamStatus: newest.upstreamStatus },
      ...{ cause: causeOf(newest.outcome), model: newest.model, requests: own, accounts: accounts.size },
      ...{ firstMs, lastMs: newest.atMs, requestId: newest.requestId },
    })),
    ...{ requests, isPart: after !== null, fromMs, toMs, nowMs },
  }
  return { status: 200, json }
}

function count(groups: Map<string, Group>, entry: LedgerEntry): void {
  const { upstream, outcome, upstreamStatus, model, accountId, atMs } = entry
  const name = [upstream, outcome, upstreamStatus, model].join('\0')
  const group = groups.get(name) ?? { newest: entry, requests: 0, firstMs: atMs, accounts: new Set() }
  group.requests += 1
  group.firstMs = Math.min(group.firstMs, atMs)
  group.accounts.add(accountId)
  groups.set(name, group)
}
