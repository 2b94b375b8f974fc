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
import type { JsonObject } from '../formats/chat/json.js'
import type { AdminToken } from '../store/admin-tokens.js'
import type { AuditEntry } from '../store/audit-trail.js'
import type { Store } from '../store/store.js'
import { commandEntry } from './accounts.js'
import { parseAction, type Command, type OptionValues } from './command.js'
import { expiryOf } from './keys.js'
import { printList } from './print-table-or-json.js'
import { UsageError } from './usage-error.js'
import { namedAccount, openingFor, required, withStore, type StoreSession } from './with-store.js'

/** `sluice admin-tokens`. */
export const command: Command = {
  name: 'admin-tokens',
  summary: 'create, list and revoke tokens of the admin API',
  help: `
Usage: sluice admin-tokens create --name NAME --scopes LIST [--account ACCOUNT] [--expires WHEN]
                                  [--config FILE]
       sluice admin-tokens list   [--json] [--config FILE]
       sluice admin-tokens revoke --token ID [--config FILE]

'create' prints only the token on standard output, and only once: the store contains only its hash. A revoked
token is refused within a second by every gateway of the store.

Options:
  --config FILE      the configuration file (default: the variable SLUICE_CONFIG)
  --name NAME        'token:NAME' in the audit trail, 1 to 100 characters
  --scopes LIST      'all', or a comma-separated list of ${SCOPES.slice(0, 4).join(', ')},
                     ${SCOPES.slice(4).join(', ')}
  --account ACCOUNT  the account that it sees, with all below it (default: all accounts)
  --expires WHEN     when it expires: 12h, 30d, 2027-01-31 or 2027-01-31T12:00:00Z, at most 366 days from now
                     (default: 90d)
  --token ID         the id of a token, as printed by 'list'
  --json             print JSON

Exit status: 0 success, 1 failure, 2 wrong usage.

Example:
  SLUICE_TOKEN=$(sluice admin-tokens create --config config/gateway.yaml --name ci --scopes accounts:write,keys:write)
`,
  run(argv) {
    const { action, values } = parseAdminTokens(argv)
    return withStore(openingFor('sluice admin-tokens', values.config), (session) =>
      runAdminTokens(session, action, values),
    )
  },
}

/** The action of `sluice admin-tokens`. */
export type AdminTokensAction = 'create' | 'list' | 'revoke'

const ALLOWED: Record<AdminTokensAction, readonly string[]> = {
  create: ['config', 'name', 'scopes', 'account', 'expires'],
  list: ['config', 'json'],
  revoke: ['config', 'token'],
}

const NEEDED: Record<AdminTokensAction, readonly string[]> = {
  create: ['--name NAME', '--scopes LIST'],
  list: [],
  revoke: ['--token ID'],
}

const OPTIONS = {
  config: { type: 'string' },
  name: { type: 'string' },
  scopes: { type: 'string' },
  account: { type: 'string' },
  expires: { type: 'string' },
  token: { type: 'string' },
  json: { type: 'boolean' },
} as const

/** The options of all actions. */
export type AdminTokensValues = OptionValues<typeof OPTIONS>

/** The action and its options. Throws `UsageError` or parseArgs's error. */
export function parseAdminTokens(argv: readonly string[]): {
  action: AdminTokensAction
  values: AdminTokensValues
} {
  return parseAction('admin-tokens', argv, { options: OPTIONS, allowed: ALLOWED, needed: NEEDED })
}

/** Runs one action on an open store. Throws `UsageError`, `GatewayError`. */
export function runAdminTokens(
  session: StoreSession,
  action: AdminTokensAction,
  values: AdminTokensValues,
): Promise<number> {
  return { create, list, revoke }[action](session, values)
}

async function create(session: StoreSession, values: AdminTokensValues): Promise<number> {
  const { store, terminal } = session
  const name = required(values.name, 'sluice admin-tokens create', '--name NAME')
  const scopes = scopesOf(required(values.scopes, 'sluice admin-tokens create', '--scopes LIST'), {
    hasAccount: values.account !== undefined,
  })
  const { expires } = values
  const expiresAtMs = expires === undefined ? undefined : expiryOf(expires, Date.now())
  const account = values.account === undefined ? null : await namedAccount(session, values.account)
  if (account === null && values.account !== undefined) return 1
  const { token, secret } = await createAdminToken(store, {
    name,
    scopes,
    accountId: account?.id ?? null,
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    createdBy: 'command line',
    audit: (made) => [
      tokenEntry('token.create', made, {
        before: null,
        after: tokenFields(made, account?.name ?? null),
      }),
    ],
  })
  terminal.out(secret)
  const end = new Date(token.expiresAtMs).toISOString()
  terminal.err(
    `Created admin token ${token.id} "${token.name}", valid until ${end}. It is shown only now.`,
  )
  return 0
}

function scopesOf(text: string, { hasAccount }: { readonly hasAccount: boolean }): string[] {
  if (text === 'all') return SCOPES.filter((scope) => !hasAccount || !scope.startsWith('config:'))
  const scopes = text.split(',').map((scope) => scope.trim())
  const unknown = scopes.find((scope) => !SCOPES.some((known) => known === scope))
  if (unknown === undefined) return scopes
  throw new UsageError(`--scopes must be all, or a list of ${SCOPES.join(', ')}, not "${unknown}"`)
}

function tokenEntry(
  action: string,
  token: AdminToken,
  change: Pick<AuditEntry, 'before' | 'after'>,
): AuditEntry {
  const { id: target, name: detail } = token
  return commandEntry({ accountId: token.accountId ?? '', action, target, detail, ...change })
}

async function list({ store, terminal }: StoreSession, values: AdminTokensValues): Promise<number> {
  const names = new Map<string | null, string | null>([[null, null]])
  for await (const page of tokenPages(store)) {
    for (const { accountId } of page) {
      if (accountId === null || names.has(accountId)) continue
      names.set(accountId, (await store.accountById(accountId))?.name ?? accountId)
    }
  }
  const nowMs = Date.now()
  await printList(terminal, tokenPages(store), {
    json: values.json === true ? (token) => shown(token, names, nowMs) : null,
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

async function revoke(
  { store, terminal }: StoreSession,
  values: AdminTokensValues,
): Promise<number> {
  const id = required(values.token, 'sluice admin-tokens revoke', '--token ID')
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
