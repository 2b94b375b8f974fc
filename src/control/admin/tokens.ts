/** Tokens of the admin API: list, create, read, revoke. */
import * as z from 'zod'
import { DAY_MS, timeText } from '../../base/time-units.js'
import { SHOWN_TEXT } from '../../accounts/changes/fields.js'
import { outlives } from '../../accounts/changes/bounds.js'
import { type Actor, entryOf } from '../../accounts/changes/decide.js'
import { noAccountNamed } from '../../accounts/changes/refusal.js'
import {
  checkedExpiry,
  createAdminToken,
  grants,
  revokeAdminToken,
  SCOPE_LIST,
  SCOPES,
  tokenFields,
  tokenState,
  TOKEN_NAME,
  TOKEN_DAYS,
  type Scope,
} from '../../accounts/admin-tokens.js'
import type { JsonObject, JsonValue } from '../../base/json.js'
import type { AdminToken } from '../../store/admin-tokens.js'
import type { AuditEntry } from '../../store/audit-trail.js'
import { etagOf, unmet } from './conditional-requests.js'
import { choiceType, textIn, TIME, type Fields, readFields } from '../../accounts/changes/field-types.js'
import { notFound, Problem } from '../problem-details.js'
import { fieldsObject, listForm, replyForm } from './reply-forms.js'
import type { AdminRequest, AdminRoute } from './route.js'
import { cursorOf } from '../cursor.js'
import { actorOf, PAGE_PARAMETERS, pageOf, type AdminServices } from './services.js'
import { accountNamed, sees } from './token-access.js'

const TOKEN_FIELDS: Fields = {
  id: { type: SHOWN_TEXT, means: 'The id of the token.', readOnly: true },
  name: { type: TOKEN_NAME, means: '`token:NAME` in the audit trail.' },
  scopes: {
    type: SCOPE_LIST,
    means: 'What the token may do; `X:write` includes `X:read`, `keys:write` also reads keys.',
  },
  account: {
    type: SHOWN_TEXT.nullable(),
    means: 'The name of the account that it sees, with all below it; null: all accounts.',
    default: null,
  },
  expires_at: {
    type: TIME,
    means: `When it ends: at most ${TOKEN_DAYS.most} days from now. Default: in ${TOKEN_DAYS.usual} days. A token that a token makes ends with it at the latest.`,
    optional: true,
  },
  state: { type: choiceType(['live', 'expired', 'revoked']), means: 'Its state.', readOnly: true },
  last_four: { type: SHOWN_TEXT, means: 'The last characters of the token.', readOnly: true },
  created_by: { type: SHOWN_TEXT, means: 'Who made it.', readOnly: true },
  created_at: { type: TIME, means: 'When it was made.', readOnly: true },
  last_used_at: { type: TIME.nullable(), means: 'The last use, to the minute.', readOnly: true },
  etag: { type: SHOWN_TEXT, means: 'The entity tag.', readOnly: true },
}

const TOKEN = replyForm('Token', () => {
  const description = 'The token; only in the reply that made it'
  return fieldsObject(TOKEN_FIELDS, { token: z.string().optional().meta({ description }) })
})

export function tokenRoutes(services: AdminServices): AdminRoute[] {
  const scopes: readonly Scope[] = ['tokens:write']
  return [
    {
      ...{ method: 'GET', path: '/tokens', scopes, query: PAGE_PARAMETERS },
      summary: 'The tokens, newest first; revoked ones stay in the list for 30 days',
      replies: { 200: listForm(TOKEN) },
      handle: (request) => list(services, request),
    },
    {
      ...{ method: 'POST', path: '/tokens', scopes },
      summary: 'Create a token; only this reply has its secret',
      body: { name: 'Token', fields: TOKEN_FIELDS },
      replies: { 201: TOKEN },
      handle: (request) => create(services, request),
    },
    {
      ...{ method: 'GET', path: '/tokens/{id}', scopes, summary: 'One token' },
      replies: { 200: TOKEN },
      async handle({ token, path }) {
        const found = await visible(services, token, path['id'] ?? '')
        const { json, etag } = await viewOf(services, found)
        return { status: 200, json, etag }
      },
    },
    {
      ...{ method: 'DELETE', path: '/tokens/{id}', scopes },
      summary: 'Revoke a token: it answers 401 within a second, on every gateway',
      replies: { 204: null },
      handle: (request) => revoke(services, request),
    },
  ]
}

async function list(services: AdminServices, request: AdminRequest) {
  const { after, limit } = pageOf(request)
  const items: JsonObject[] = []
  let cursor = after
  // Tokens that this one does not see are left out, so that several pages of the store may be needed.
  for (;;) {
    const page = await services.store.adminTokens.page(cursor, limit - items.length)
    for (const token of page.items) {
      if (await isVisible(services, request.token, token)) {
        items.push((await viewOf(services, token)).json)
      }
    }
    cursor = page.next
    if (cursor === null || items.length >= limit) break
  }
  const next = cursor === null ? null : cursorOf(cursor)
  return { status: 200, json: { items, next_cursor: next } }
}

async function create(services: AdminServices, request: AdminRequest) {
  const { store, now } = services
  const { token: own, body } = request
  const values = readFields(TOKEN_FIELDS, body)
  const failed = unmet(request.conditions, null)
  if (failed !== null) throw failed
  const scopes = Array.isArray(values['scopes']) ? values['scopes'].map(String) : []
  const account = typeof values['account'] === 'string' ? values['account'] : null
  const accountId = account === null ? null : await accountIdOf(services, own, account)
  assertWithin(own, scopes, accountId)
  const { name } = values
  const { token, secret } = await createAdminToken(store, {
    name: textIn(name),
    scopes,
    accountId,
    expiresAtMs: endOf(own, values['expires_at'], now()),
    createdBy: actorOf(request).actor,
    now,
    audit: (made) => [tokenEntry(now(), actorOf(request), { made, account })],
  })
  const { json, etag } = await viewOf(services, token)
  const location = `/tokens/${token.id}`
  return { status: 201, json: { ...json, token: secret }, etag, location }
}

/** An account that the token does not see is refused like one that does not exist. */
async function accountIdOf(services: AdminServices, own: AdminToken, name: string): Promise<string> {
  const account = await accountNamed(services, own, name).catch((error: unknown) => {
    const isMissing = error instanceof Problem && error.kind === 'not_found'
    throw isMissing ? noAccountNamed(name) : error
  })
  return account.id
}

/** A token makes only tokens with scopes and account within its own. */
function assertWithin(own: AdminToken, scopes: readonly string[], accountId: string | null): void {
  const beyond = scopes.find((scope) => {
    return !SCOPES.some((known) => known === scope && grants(own.scopes, known))
  })
  if (beyond !== undefined) {
    throw new Problem('forbidden', `This token lacks the scope ${beyond}, so it cannot give it.`, {
      field: 'scopes',
      fix: 'Leave the scope out, or use a token that has it.',
    })
  }
  if (own.accountId !== null && accountId === null) {
    throw new Problem('forbidden', 'This token makes only tokens of its account.', {
      field: 'account',
      fix: 'Send the name of its account, or of one below it.',
    })
  }
}

/** The end of a new token: not after that of the token that makes it. */
function endOf({ expiresAtMs: latestMs }: AdminToken, wanted: JsonValue | undefined, nowMs: number): number {
  if (typeof wanted !== 'string') return Math.min(latestMs, nowMs + TOKEN_DAYS.usual * DAY_MS)
  const expiresAtMs = checkedExpiry(Date.parse(wanted), nowMs)
  if (expiresAtMs > latestMs) throw outlives('expires_at', latestMs)
  return expiresAtMs
}

/** The audit entry of a new token. */
function tokenEntry(
  nowMs: number,
  actor: Actor,
  { made, account }: { readonly made: AdminToken; readonly account: string | null },
): AuditEntry {
  const change = { before: null, after: tokenFields(made, account) }
  const { id: target, name: detail } = made
  const accountId = made.accountId ?? ''
  return entryOf(nowMs, actor, { accountId, action: 'token.create', target, detail, ...change })
}

/** The audit entry of a revoked token. */
function revocationEntry(nowMs: number, actor: Actor, token: AdminToken): AuditEntry {
  const change = { before: { revoked_at: null }, after: { revoked_at: timeText(nowMs) } }
  const { id: target, name: detail } = token
  const accountId = token.accountId ?? ''
  return entryOf(nowMs, actor, { accountId, action: 'token.revoke', target, detail, ...change })
}

async function revoke(services: AdminServices, request: AdminRequest): Promise<'none'> {
  const { store, now } = services
  const found = await visible(services, request.token, request.path['id'] ?? '')
  const failed = unmet(request.conditions, tagOf(found))
  if (failed !== null) throw failed
  const nowMs = now()
  const isRevoked = await revokeAdminToken(store, found.id, {
    nowMs,
    audit: (token) => [revocationEntry(nowMs, actorOf(request), token)],
  })
  if (!isRevoked) throw notFound()
  return 'none'
}

/** The token with the id; a revoked one is gone. Throws `not_found`. */
async function visible(services: AdminServices, own: AdminToken, id: string): Promise<AdminToken> {
  const found = await services.store.adminTokens.byId(id)
  const isThere = found !== null && found.revokedAtMs === undefined
  if (!isThere || !(await isVisible(services, own, found))) throw notFound()
  return found
}

/** A token with an account sees those of this account and below. */
async function isVisible(
  services: AdminServices,
  own: AdminToken,
  { accountId }: AdminToken,
): Promise<boolean> {
  if (own.accountId === null) return true
  const account = accountId === null ? null : await services.store.accountById(accountId)
  return account !== null && sees(services, own, account)
}

function tagOf({ id, name, scopes, accountId, expiresAtMs }: AdminToken): string {
  return etagOf(id, name, scopes, accountId, expiresAtMs)
}

async function viewOf({ store, now }: AdminServices, token: AdminToken) {
  const { accountId } = token
  const account = accountId === null ? null : await store.accountById(accountId)
  const etag = tagOf(token)
  const json: JsonObject = {
    id: token.id,
    name: token.name,
    scopes: [...token.scopes],
    account: account?.name ?? null,
    expires_at: timeText(token.expiresAtMs),
    // That of a purged account has ended with it.
    state: accountId !== null && account === null ? 'revoked' : tokenState(token, now()),
    last_four: token.lastFour,
    created_by: token.createdBy,
    created_at: timeText(token.createdAtMs),
    last_used_at: timeText(token.lastUsedAtMs),
    etag,
  }
  return { json, etag }
}
