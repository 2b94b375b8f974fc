/** The statement of an account or of all for a month, as JSON in pages or as a CSV file. */
import { sendReply } from '../../../http/respond.js'
import { monthRange } from '../../../usage/ranges.js'
import type { StatementGrouping } from '../../../usage/is-statement-grouping.js'
import { statementCsv, statementOf, type Statement } from '../../../usage/statements.js'
import {
  SELF_REPLIED,
  signedRoute,
  type HandlerResult,
  type Route,
  type SignedInRequest,
} from '../routing/route.js'
import * as schema from '../schema/schema.js'
import { notFound } from '../routing/access.js'
import { scopeOf, type Services } from '../../services.js'

type Query = ReturnType<typeof schema.statementQuery.parse>

/** Pages of a statement are parts of one that is read once in this time. */
const KEPT_MS = 30_000
const MOST_KEPT = 3
const LINES = 100
const MOST_ACCOUNTS = 500

/** A statement that was read lately. */
interface Kept {
  readonly statement: Promise<Statement>
  readonly atMs: number
}

export function statementRoutes(services: Services): Route[] {
  const kept = new Map<string, Kept>()
  return [
    signedRoute('GET', '/statements/{id}', {
      credential: 'read account',
      query: schema.statementQuery,
      reply: schema.statementReply,
      handle: (request) => statement(services, kept, request),
    }),
  ]
}

async function statement(
  services: Services,
  kept: Map<string, Kept>,
  { session, query, id: month, res, requestId }: SignedInRequest<Query, undefined>,
): Promise<HandlerResult> {
  if (monthRange(month) === null) throw notFound()
  const accountId = scopeOf(session)
  // The first page and a file are read anew.
  const isPart = query.after !== undefined || (query.search ?? '') !== ''
  const { by = null } = query
  const whole = await read(services, kept, { accountId, month, by, isPart })
  if (query.format === undefined) {
    const dimensions = services.snapshot().config.dimensions.map(({ name }) => name)
    return { status: 200, json: { ...pageOf(whole, query), dimensions } }
  }
  const file = `statement-${accountId === null ? 'all' : session.account.name}-${month}.csv`
  const headers = [
    ...['content-type', 'text/csv; charset=utf-8', 'x-request-id', requestId],
    ...['content-disposition', `attachment; filename="${file}"`, 'cache-control', 'no-store'],
  ]
  sendReply(res, { status: 200, headers, body: statementCsv(whole, by) })
  return SELF_REPLIED
}

interface Wanted {
  readonly accountId: string | null
  readonly month: string
  readonly by: StatementGrouping | null
  /** A part of a statement that the page shows already. */
  readonly isPart: boolean
}

function read(
  { store, now }: Services,
  kept: Map<string, Kept>,
  { accountId, month, by, isPart }: Wanted,
): Promise<Statement> {
  const name = `${accountId ?? 'all'} ${month} ${by ?? ''}`
  const known = kept.get(name)
  if (isPart && known !== undefined && now() - known.atMs < KEPT_MS) return known.statement
  const made = { statement: statementOf(store, accountId, month, by), atMs: now() }
  kept.delete(name)
  kept.set(name, made)
  for (const old of kept.keys()) if (kept.size > MOST_KEPT) kept.delete(old)
  made.statement.catch(() => kept.delete(name))
  return made.statement
}

/** The lines of a page, and the sums of the accounts that match. */
function pageOf(
  whole: Statement,
  { search = '', after, limit = LINES }: Query,
): Omit<schema.Sent<typeof schema.statementReply>, 'dimensions'> {
  const words = search.trim().toLowerCase()
  const isMatch = (texts: readonly (string | null)[]): boolean =>
    texts.some((text) => text?.toLowerCase().includes(words) === true)
  const { lines, accounts } =
    words === ''
      ? whole
      : {
          lines: whole.lines.filter(({ account, key, key_id: id, model, group = null }) => {
            return isMatch([account, key, model, group]) || id === search
          }),
          accounts: whole.accounts,
        }
  const named = words === '' ? null : new Set(lines.map(({ account }) => account))
  const shown = named === null ? accounts : accounts.filter(({ account }) => named.has(account))
  const start = /^\d{1,9}$/.test(after ?? '') ? Number(after) : 0
  const end = start + limit
  return {
    ...{ account: whole.account, month: whole.month, total: whole.total },
    ...{ lines: lines.slice(start, end), line_count: lines.length },
    next: end < lines.length ? String(end) : null,
    ...{ accounts: shown.slice(0, MOST_ACCOUNTS), account_count: shown.length },
  }
}
