/**
 * `sluice accounts`: creates accounts, changes their plans and lists them, beside a running gateway.
 * `accounts/` has the rules.
 */
import { userInfo } from 'node:os'
import type { Account, PlanName } from '../accounts/account.js'
import { createAccount, isPlanName, setPlan } from '../accounts/accounts.js'
import type { JsonObject } from '../formats/chat/json.js'
import { newRequestId } from '../http/request-id.js'
import type { AuditEntry } from '../store/audit-trail.js'
import { accountPages } from '../store/list-all.js'
import { parseAction, type OptionValues, type Command } from './command.js'
import { printList } from './print-table-or-json.js'
import { UsageError } from './usage-error.js'
import { namedAccount, openingFor, required, withStore, type StoreSession } from './with-store.js'

/** `sluice accounts`. */
export const command: Command = {
  name: 'accounts',
  summary: 'create and list accounts, change their plans',
  help: `
Usage: sluice accounts create   --email EMAIL --plan PLAN [--admin] [--password-stdin]
                                [--config FILE] [--json]
       sluice accounts set-plan --account ACCOUNT --plan PLAN [--config FILE]
       sluice accounts list     [--config FILE] [--json]

Works on the store of the configuration, with or without a running gateway. A running gateway uses
the change within a second.

Options:
  --config FILE      the configuration file (default: the variable SLUICE_CONFIG)
  --email EMAIL      the e-mail address for signing in; set-plan accepts it instead of --account
  --account ACCOUNT  an account's id or e-mail address
  --plan PLAN        starter, pro or max
  --admin            an administrator, who manages all accounts in the dashboard
  --password-stdin   read the password (8 characters to 1,024 bytes) from standard input, without
                     a final line break; otherwise one is generated and printed once
  --json             print JSON

Exit status: 0 success, 1 failure, 2 wrong usage.

Example:
  sluice accounts create --config config/gateway.yaml --email team@example.com --plan pro
`,
  run(argv) {
    const { action, values } = parseAccounts(argv)
    const opening = openingFor('sluice accounts', values.config, action !== 'create')
    return withStore(opening, (session) => runAccounts(session, action, values))
  },
}

/** The action of `sluice accounts`. */
export type AccountsAction = 'create' | 'set-plan' | 'list'

const ALLOWED: Record<AccountsAction, readonly string[]> = {
  create: ['config', 'email', 'plan', 'admin', 'password-stdin', 'json'],
  'set-plan': ['config', 'email', 'account', 'plan'],
  list: ['config', 'json'],
}

const NEEDED: Record<AccountsAction, readonly string[]> = {
  create: ['--email EMAIL', '--plan PLAN'],
  'set-plan': ['--plan PLAN'],
  list: [],
}

const OPTIONS = {
  config: { type: 'string' },
  email: { type: 'string' },
  account: { type: 'string' },
  plan: { type: 'string' },
  admin: { type: 'boolean' },
  'password-stdin': { type: 'boolean' },
  json: { type: 'boolean' },
} as const

/** The options of all actions. */
export type AccountsValues = OptionValues<typeof OPTIONS>

/** The action and its options. Throws `UsageError` or parseArgs's error. */
export function parseAccounts(argv: readonly string[]): {
  action: AccountsAction
  values: AccountsValues
} {
  const parsed = parseAction('accounts', argv, {
    options: OPTIONS,
    allowed: ALLOWED,
    needed: NEEDED,
  })
  const { action, values } = parsed
  if (action !== 'list') planOf(values, `sluice accounts ${action}`)
  if (action === 'set-plan') accountOf(values)
  return parsed
}

/** Runs one action on an open store. Throws `UsageError`, `GatewayError`. */
export function runAccounts(
  session: StoreSession,
  action: AccountsAction,
  values: AccountsValues,
): Promise<number> {
  return { create, 'set-plan': changePlan, list }[action](session, values)
}

async function create({ store, terminal }: StoreSession, values: AccountsValues): Promise<number> {
  const email = required(values.email, 'sluice accounts create', '--email EMAIL')
  const plan = planOf(values, 'sluice accounts create')
  const password =
    values['password-stdin'] === true ? (await terminal.input()).replace(/\r?\n$/, '') : null
  const role = values.admin === true ? 'admin' : 'owner'
  const options = { email, plan, role, password } as const
  const { account, generatedPassword } = await createAccount(store, options, {
    audit: ({ id }) => [accountEntry(id, 'account.create', `${role}, plan ${plan}`)],
  })
  if (values.json === true) {
    const secret = generatedPassword === null ? {} : { password: generatedPassword }
    terminal.out(JSON.stringify({ id: account.id, email: account.email, plan, role, ...secret }))
    return 0
  }
  terminal.out(`account   ${account.id}`)
  terminal.out(`e-mail    ${account.email}`)
  terminal.out(`plan      ${plan}`)
  if (generatedPassword !== null) {
    terminal.out(`password  ${generatedPassword}`)
    terminal.err('The password is shown only now: the store contains only its hash.')
  }
  return 0
}

function accountEntry(id: string, action: string, detail: string): AuditEntry {
  return commandEntry({ accountId: id, action, target: id, detail })
}

async function changePlan(session: StoreSession, values: AccountsValues): Promise<number> {
  const { store, plans, terminal } = session
  const name = accountOf(values)
  const plan = planOf(values, 'sluice accounts set-plan')
  const account = await namedAccount(session, name)
  if (account === null) return 1
  await setPlan(store, account.id, {
    plan,
    audit: (before, after) =>
      before.plan === after.plan
        ? []
        : [accountEntry(account.id, 'account.plan', `${before.plan} → ${after.plan}`)],
  })
  const limit = plans[plan].maxKeys
  const keys = limit === null ? 'any number of keys' : `at most ${limit} keys`
  terminal.out(`${account.id} (${account.email}): plan ${plan}, ${keys}`)
  return 0
}

async function list({ store, terminal }: StoreSession, values: AccountsValues): Promise<number> {
  await printList(terminal, accountPages(store), {
    json: values.json === true ? shownAccount : null,
    head: ['ACCOUNT', 'E-MAIL', 'PLAN', 'CREATED', ''],
    cells: ({ id, email, plan, disabled, createdAtMs }) => {
      return [id, email, plan, new Date(createdAtMs).toISOString(), disabled ? 'disabled' : '']
    },
    none: 'There are no accounts yet.',
  })
  return 0
}

function shownAccount({ id, email, plan, role, disabled, createdAtMs }: Account): JsonObject {
  return { id, email, plan, role, disabled, created_at: new Date(createdAtMs).toISOString() }
}

function accountOf({ account, email }: AccountsValues): string {
  if (account !== undefined && email !== undefined) {
    throw new UsageError("'sluice accounts set-plan' accepts --account or --email, not both")
  }
  return required(account ?? email, 'sluice accounts set-plan', '--account ACCOUNT')
}

function planOf(values: AccountsValues, command: string): PlanName {
  const plan = required(values.plan, command, '--plan PLAN')
  if (!isPlanName(plan)) throw new UsageError(`--plan must be starter, pro or max, not "${plan}"`)
  return plan
}

/** As the dashboard writes them; the actor is the user of the operating system. */
export function commandEntry(
  what: Pick<AuditEntry, 'accountId' | 'action' | 'target' | 'detail'>,
): AuditEntry {
  const atMs = Date.now()
  const actor = `command line (${systemUser()})`
  return { id: newRequestId(atMs), atMs, actor, address: null, ...what }
}

/** The name of the user, or the number if it has no name, as in a container with `--user 10001`. */
function systemUser(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${String(process.getuid?.() ?? 'unknown')}`
  }
}
