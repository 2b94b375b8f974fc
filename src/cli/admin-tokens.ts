/**
 * `sluice admin-tokens`: creates, lists and revokes tokens of the admin API, beside a running gateway.
 */
import {
  createAdminToken,
  noToken,
  revokeAdminToken,
  SCOPES,
  tokenFields,
  tokenState,
} from '../accounts/admin-tokens.js'
import { findAccount } from '../accounts/changes/change-accounts.js'
import { checkedValue, TIME } from '../accounts/changes/field-types.js'
import { noAccountNamed } from '../accounts/changes/refusal.js'
import type { JsonObject } from '../base/json.js'
import type { AdminToken } from '../store/admin-tokens.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import { commandEntry } from './accounts.js'
import { configOption, declare } from './command.js'
import { printList } from './print-table-or-json.js'
import { timeIn } from './time-range.js'
import { withStore, type OpenStore, type StoreSession } from './with-store.js'

/** `sluice admin-tokens`. */
export function command(open: OpenStore = withStore) {
  const tokens = declare({
    name: 'admin-tokens',
    summary: 'create, list and revoke tokens of the admin API',
    description: `
'create' prints only the token on standard output, and only once: the store contains only its hash. A revoked
token is refused within a second by every gateway of the store.`,
    example:
      'SLUICE_TOKEN=$(sluice admin-tokens create --config config/gateway.yaml --name ci --scopes accounts:write,keys:write)',
  })
  tokens
    .command('create')
    .requiredOption('--name <NAME>', "'token:NAME (ID)' in the audit trail, 1 to 100 characters")
    .requiredOption('--scopes <LIST>', `'all', or a comma-separated list of ${SCOPES.join(', ')}`)
    .option('--account <ACCOUNT>', 'the account that it sees, with all below it (default: all accounts)')
    .option(
      '--expires <WHEN>',
      'when it expires: 12h, 30d, 2027-01-31 or 2027-01-31T12:00:00Z, at most 366 days from now (default: 90d)',
    )
    .addOption(configOption())
    .action(async (options) => {
      const opening = { mustExist: false }
      process.exitCode = await open(options.config, (session) => create(session, options), opening)
    })
  tokens
    .command('list')
    .option('--json', 'print JSON')
    .addOption(configOption())
    .action(async ({ config, json }) => {
      process.exitCode = await open(config, (session) => list(session, json === true))
    })
  tokens
    .command('revoke')
    .requiredOption('--token <ID>', "the id of a token, as printed by 'list'")
    .addOption(configOption())
    .action(async ({ config, token }) => {
      process.exitCode = await open(config, (session) => revoke(session, token))
    })
  return tokens
}

interface NewTokenOptions {
  readonly name: string
  readonly scopes: string
  readonly account?: string | undefined
  readonly expires?: string | undefined
}

async function create(session: StoreSession, values: NewTokenOptions): Promise<number> {
  const { store, terminal } = session
  const { name, expires, account: named } = values
  const end = expires === undefined ? null : checkedValue(TIME, timeIn(expires, Date.now()), 'expires_at')
  const scopes = scopesOf(values.scopes, named !== undefined)
  const account = named === undefined ? null : await findAccount(store, named)
  if (account === null && named !== undefined) throw noAccountNamed(named)
  const { token, secret } = await createAdminToken(store, {
    name,
    scopes,
    accountId: account?.id ?? null,
    ...(end === null ? {} : { expiresAtMs: Date.parse(end) }),
    createdBy: 'command line',
    audit: (made) => [
      tokenEntry('token.create', made, {
        before: null,
        after: tokenFields(made, account?.name ?? null),
      }),
    ],
  })
  terminal.out(secret)
  const endText = new Date(token.expiresAtMs).toISOString()
  terminal.err(
    `Created admin token ${token.id} "${token.name}", valid until ${endText}. It is shown only now.`,
  )
  return 0
}

function scopesOf(text: string, hasAccount: boolean): string[] {
  if (text === 'all') return SCOPES.filter((scope) => !hasAccount || !scope.startsWith('config:'))
  return text.split(',').map((scope) => scope.trim())
}

function tokenEntry(
  action: string,
  token: AdminToken,
  change: Pick<AuditEntry, 'before' | 'after'>,
): AuditEntry {
  const { id: target, name: detail } = token
  return commandEntry({ accountId: token.accountId ?? '', action, target, detail, ...change })
}

async function list({ store, terminal }: StoreSession, isJson: boolean): Promise<number> {
  const names = new Map<string | null, string | null>([[null, null]])
  for await (const page of tokenPages(store)) {
    for (const { accountId } of page) {
      if (accountId === null || names.has(accountId)) continue
      names.set(accountId, (await store.accountById(accountId))?.name ?? accountId)
    }
  }
  const nowMs = Date.now()
  await printList(terminal, tokenPages(store), {
    json: isJson ? (token) => shown(token, names, nowMs) : null,
    head: ['TOKEN', 'NAME', 'STATE', 'ACCOUNT', 'EXPIRES', 'SCOPES'],
    cells: (token) => {
      const { id, name, accountId, expiresAtMs, scopes } = token
      const account = names.get(accountId) ?? 'all'
      const end = new Date(expiresAtMs).toISOString()
      return [id, name, tokenState(token, nowMs), account, end, scopes.join(',')]
    },
    none: 'There are no admin tokens yet.',
  })
  return 0
}

function shown(
  token: AdminToken,
  names: ReadonlyMap<string | null, string | null>,
  nowMs: number,
): JsonObject {
  const { lastUsedAtMs } = token
  return {
    id: token.id,
    name: token.name,
    scopes: [...token.scopes],
    account: names.get(token.accountId) ?? null,
    expires_at: new Date(token.expiresAtMs).toISOString(),
    state: tokenState(token, nowMs),
    last_four: token.lastFour,
    created_by: token.createdBy,
    created_at: new Date(token.createdAtMs).toISOString(),
    last_used_at: lastUsedAtMs === undefined ? null : new Date(lastUsedAtMs).toISOString(),
  }
}

async function* tokenPages(store: Store): AsyncGenerator<readonly AdminToken[]> {
  for (let after: string | null = null; ;) {
    const page = await store.adminTokens.page(after, 500)
    yield page.items
    if (page.next === null) return
    after = page.next
  }
}

async function revoke({ store, terminal }: StoreSession, id: string): Promise<number> {
  const nowMs = Date.now()
  const isRevoked = await revokeAdminToken(store, id, {
    nowMs,
    audit: (token) => {
      const after = { revoked_at: new Date(nowMs).toISOString() }
      return [tokenEntry('token.revoke', token, { before: { revoked_at: null }, after })]
    },
  })
  if (!isRevoked) throw noToken()
  terminal.out(`${id}: revoked`)
  return 0
}
