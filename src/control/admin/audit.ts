/** The audit trail in the admin API, with filters; as JSON or CSV. */
import * as z from 'zod'
import { TIME } from '../../accounts/changes/field-types.js'
import type { JsonObject } from '../../base/json.js'
import { isActorOf, withReason, type AuditEntry } from '../../store/audit-trail.js'
import { anyObject, listForm, replyForm, replyObject } from './reply-forms.js'
import type { AdminReply, AdminRequest, AdminRoute } from './route.js'
import { timeText } from '../../base/time-units.js'
import { cursorOf } from '../cursor.js'
import { PAGE_PARAMETERS, pageOf, type AdminServices } from './services.js'
import { accountsOf, ANY, AUDIT_READS, csvReply, filled, nextQuery, type ReadPage } from './usage.js'

const AUDIT_LINE = replyForm('AuditLine', () => {
  return replyObject({
    id: z.string(),
    at: TIME,
    actor: z.string().meta({ description: 'An e-mail address, `command line` or `token:NAME (ID)`' }),
    address: z.string().nullable(),
    request_id: z.string().nullable(),
    action: z.string(),
    account: z.string().nullable(),
    target: z.string(),
    before: anyObject().nullable(),
    after: anyObject().nullable(),
  })
})

export function auditRoutes(services: AdminServices): AdminRoute[] {
  return [
    {
      ...{ method: 'GET', path: '/audit', scopes: ['audit:read'], hasCsv: true },
      summary: 'The audit trail, newest first',
      query: {
        ...PAGE_PARAMETERS,
        account: { type: ANY, means: 'The name of an account.' },
        actor: {
          type: ANY,
          means: 'Who: an e-mail address, `command line`, `token:NAME`, `token:NAME (ID)`.',
        },
        action: { type: ANY, means: 'What, such as `key.create`.' },
        target: { type: ANY, means: 'The id or name of what changed.' },
      },
      replies: { 200: listForm(AUDIT_LINE, 'AuditList') },
      handle: (request) => audit(services, request),
    },
  ]
}

async function audit(services: AdminServices, request: AdminRequest): Promise<AdminReply> {
  const { store } = services
  const { query, token, isCsv } = request
  const accounts = await accountsOf(services, token, query)
  const [only = null, ...others] = accounts ?? []
  const accountId = others.length === 0 ? only : null
  const read: ReadPage<AuditEntry> = async (start) => {
    const page = await store.auditTrail.page({ accountId, after: start, limit: AUDIT_READS })
    const items = page.filter((entry) => isWanted(entry, query, accounts))
    return { items, next: page.length < AUDIT_READS ? null : (page.at(-1)?.id ?? null) }
  }
  const { after, limit } = pageOf(request)
  const found = await filled(read, after, limit)
  const entries = found.items.slice(0, limit)
  // The page of the store may have more than this page of the API.
  const hasMore = found.items.length > limit
  const next = hasMore ? (entries.at(-1)?.id ?? null) : found.next
  const items = await auditLines(services, entries)
  if (isCsv) {
    return csvReply('audit', AUDIT_NAMES, items, nextQuery(request, next))
  }
  return { status: 200, json: { items, next_cursor: next === null ? null : cursorOf(next) } }
}

function isWanted(
  entry: AuditEntry,
  { actor, action, target }: JsonObject,
  accounts: ReadonlySet<string> | null,
): boolean {
  if (accounts?.has(entry.accountId) === false) return false
  const isActor = typeof actor !== 'string' || isActorOf(entry, actor)
  return (
    isActor &&
    (action === undefined || action === entry.action) &&
    (target === undefined || target === entry.target)
  )
}

/** Without the user of the operating system. */
function shownActor({ actor }: AuditEntry): string {
  return actor.startsWith('command line') ? 'command line' : actor
}

const AUDIT_NAMES = [
  ...['id', 'at', 'actor', 'address', 'request_id', 'action', 'account', 'target'],
  ...['before', 'after'],
]

async function auditLines({ store }: AdminServices, entries: readonly AuditEntry[]): Promise<JsonObject[]> {
  const names = new Map<string, string | null>([['', null]])
  const lines: JsonObject[] = []
  for (const entry of entries) {
    const { id, atMs, address, requestId, action, accountId, target, before } = entry
    if (!names.has(accountId)) {
      names.set(accountId, (await store.accountById(accountId))?.name ?? null)
    }
    lines.push({
      ...{ id, at: timeText(atMs), actor: shownActor(entry), address },
      ...{ request_id: requestId ?? null, action },
      ...{ account: names.get(accountId) ?? entry.account ?? null, target },
      ...{ before: before ?? null, after: withReason(entry) },
    })
  }
  return lines
}
