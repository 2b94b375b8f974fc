/**
 * `sluice keys`: creates, lists and revokes the keys of an account, beside a running gateway. `accounts/` has
 * the rules.
 */
import type { ApiKey } from '../../accounts/account.js'
import { labelsText, NO_LABELS } from '../../accounts/labels.js'
import type { AuditEntry } from '../../store/audit-trail.js'
import { commandEntry } from './audit-entry.js'
import { createKey } from '../../accounts/create-key.js'
import { revokeKey } from '../../accounts/revoke-key.js'
import type { JsonObject } from '../../chat/json.js'
import { shownAmounts } from '../../config/resolve-limits.js'
import { GatewayError } from '../../errors.js'
import { parseAction } from '../parse-action.js'
import { type Command } from '../command.js'
import { unknownModelWarnings } from './unknown-models.js'
import { KEY_OPTIONS, readKeyOptions } from './key-options.js'
import { keyPages } from '../../store/list-all.js'
import { printList } from '../print-table-or-json.js'
import { namedAccount, openingFor, required, withStore, type StoreSession } from '../with-store.js'

/** `sluice keys`. */
export const command: Command = {
  name: 'keys',
  summary: "create, list and revoke an account's keys",
  help: `
Usage: sluice keys create --account ACCOUNT --name NAME [limits] [--config FILE]
       sluice keys list   --account ACCOUNT [--json] [--config FILE]
       sluice keys revoke --account ACCOUNT --key ID [--config FILE]

'create' prints only the secret on standard output, and only once; messages go to standard error. A
running gateway uses the change within a second.

Options:
  --config FILE      the configuration file (default: the variable SLUICE_CONFIG)
  --account ACCOUNT  the account's id or e-mail address
  --name NAME        a name for the key, 1 to 100 characters
  --key ID           the key's id, as printed by 'list'
  --json             print JSON

Limits of a new key, in addition to those of the configuration and the plan:
  --rpm N            requests per minute
  --tpm N            tokens per minute, of prompts and replies together
  --concurrent N     concurrent requests
  --usd-per-day USD, --usd-per-week USD, --usd-per-month USD
                     a budget per calendar day, week (from Monday) or month (UTC)
  --expires WHEN     when it expires: 12h, 30d, 2027-01-31 or 2027-01-31T12:00:00Z
  --models LIST      the models that it may use: 'gpt-5.5,claude-*' (default: all)
  --allow-tools LIST tools and options of providers that it may use, instead of the lists of the
                     upstreams: 'web_search,mcp', '*' for all, '' for none
  --label NAME=VALUE a label for routes, limits, priorities and sums; may be repeated, at most 16

Exit status: 0 success, 1 failure, 2 wrong usage.

Example:
  SLUICE_KEY=$(sluice keys create --config config/gateway.yaml --account team@example.com --name ci)
`,
  run(argv) {
    const { action, values } = parseKeys(argv)
    return withStore(openingFor('sluice keys', values.config), (session) =>
      runKeys(session, action, values),
    )
  },
}

/** The action of `sluice keys`. */
export type KeysAction = 'create' | 'list' | 'revoke'

const ALLOWED: Record<KeysAction, readonly string[]> = {
  create: ['config', 'account', 'name', ...Object.keys(KEY_OPTIONS)],
  list: ['config', 'account', 'json'],
  revoke: ['config', 'account', 'key'],
}

const NEEDED: Record<KeysAction, readonly string[]> = {
  create: ['--account ACCOUNT', '--name NAME'],
  list: ['--account ACCOUNT'],
  revoke: ['--account ACCOUNT', '--key ID'],
}

const OPTIONS = {
  config: { type: 'string' },
  account: { type: 'string' },
  name: { type: 'string' },
  key: { type: 'string' },
  json: { type: 'boolean' },
  ...KEY_OPTIONS,
} as const

/** The options of all actions. */
export type KeysValues = ReturnType<typeof parseKeys>['values']

/** The action and its options. Throws `UsageError` or parseArgs's error. */
export function parseKeys(argv: readonly string[]) {
  return parseAction('keys', argv, { options: OPTIONS, allowed: ALLOWED, needed: NEEDED })
}

/** Runs one action on an open store. Throws `UsageError`, `GatewayError`. */
export function runKeys(
  session: StoreSession,
  action: KeysAction,
  values: KeysValues,
): Promise<number> {
  return { create, list, revoke }[action](session, values)
}

async function create(session: StoreSession, values: KeysValues): Promise<number> {
  const { store, plans, terminal } = session
  const name = required(values.name, 'sluice keys create', '--name NAME')
  const options = readKeyOptions(values, Date.now())
  const account = await namedAccount(session, accountOf(values, 'create'))
  if (account === null) return 1
  for (const warning of unknownModelWarnings(options.models ?? [], session)) {
    terminal.err(`sluice: warning: --models: ${warning}`)
  }
  try {
    const { key, secret } = await createKey(store, {
      plans,
      account,
      name,
      ...options,
      audit: (made) => [keyEntry(made, 'key.create')],
    })
    terminal.out(secret)
    terminal.err(
      `Created key ${key.id} "${key.name}" of ${account.email}. Its secret is shown only now.`,
    )
    return 0
  } catch (error) {
    if (!(error instanceof GatewayError) || error.kind !== 'plan_limit') throw error
    terminal.err(`sluice: ${error.message}`)
    terminal.err(
      `'sluice keys list --account ${account.id}' lists the keys; ` +
        "'sluice accounts set-plan' changes the plan",
    )
    return 1
  }
}

async function list(session: StoreSession, values: KeysValues): Promise<number> {
  const { store, terminal } = session
  const account = await namedAccount(session, accountOf(values, 'list'))
  if (account === null) return 1
  await printList(terminal, keyPages(store, account.id), {
    json: values.json === true ? shownKey : null,
    head: ['KEY', 'SECRET', 'NAME', 'CREATED', 'LABELS', ''],
    cells: (key) => {
      const { id, name, prefix, lastFour, createdAtMs } = key
      const labels = labelsText(key.labels ?? NO_LABELS) ?? '-'
      return [id, `${prefix}…${lastFour}`, name, time(createdAtMs) ?? '', labels, stateOf(key)]
    },
    none: `${account.email} has no keys yet.`,
  })
  return 0
}

function shownKey(key: ApiKey): JsonObject {
  const { id, name, prefix, lastFour, createdAtMs, revokedAtMs, expiresAtMs, models } = key
  const { allowTools, limits } = key
  return {
    id,
    name,
    prefix,
    last_four: lastFour,
    created_at: time(createdAtMs),
    revoked_at: time(revokedAtMs),
    expires_at: time(expiresAtMs),
    models: models === undefined ? null : [...models],
    allow_tools: allowTools === undefined ? null : [...allowTools],
    limits: shownAmounts(limits ?? {}),
    labels: { ...key.labels },
  }
}

function stateOf({ revokedAtMs, expiresAtMs }: ApiKey): string {
  if (revokedAtMs !== undefined) return `revoked ${time(revokedAtMs) ?? ''}`
  if (expiresAtMs === undefined) return ''
  return `${expiresAtMs > Date.now() ? 'expires' : 'expired'} ${time(expiresAtMs) ?? ''}`
}

async function revoke(session: StoreSession, values: KeysValues): Promise<number> {
  const { store, terminal } = session
  const keyId = required(values.key, 'sluice keys revoke', '--key ID')
  const account = await namedAccount(session, accountOf(values, 'revoke'))
  if (account === null) return 1
  const key = await store.keyById(account.id, keyId)
  const entries = key === null ? [] : [keyEntry(key, 'key.revoke')]
  await revokeKey(store, { accountId: account.id, id: keyId }, { audit: entries })
  terminal.out(`${keyId}: revoked`)
  return 0
}

function keyEntry({ id, accountId, name, prefix, lastFour }: ApiKey, action: string): AuditEntry {
  return commandEntry({ accountId, action, target: id, detail: `${name} (${prefix}…${lastFour})` })
}

function accountOf(values: KeysValues, action: KeysAction): string {
  return required(values.account, `sluice keys ${action}`, '--account ACCOUNT')
}

function time(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}
