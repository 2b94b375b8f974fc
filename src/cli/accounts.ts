/**
 * `sluice accounts`: creates accounts, changes their plans, disables, enables and lists them, beside a
 * running gateway. `accounts/` has the rules.
 */
import { userInfo } from 'node:os'
import { roleOf, type Account, type PlanName, type User } from '../accounts/account.js'
import {
  createAccount,
  type NewAccount,
  plansText,
  setDisabled,
  setParent,
  setPlan,
} from '../accounts/accounts.js'
import { accountChange, type AuditChange } from '../accounts/audit-changes.js'
import { isPlanOf, planOfNewAccounts, type Plans } from '../accounts/plans.js'
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
  summary: 'create and list accounts, change their plans, disable and enable them',
  help: `
Usage: sluice accounts create     (--email EMAIL | --name NAME) --plan PLAN [--parent ACCOUNT]
                                  [--admin] [--password-stdin] [--config FILE] [--json]
       sluice accounts set-plan   --account ACCOUNT --plan PLAN [--config FILE]
       sluice accounts set-parent --account ACCOUNT --parent ACCOUNT|none [--config FILE]
       sluice accounts disable    --account ACCOUNT [--config FILE]
       sluice accounts enable     --account ACCOUNT [--config FILE]
       sluice accounts list       [--config FILE] [--json]

Works on the store of the configuration, with or without a running gateway. A running gateway uses
the change within a second. 'create --email' also makes a user who owns the account; with --name
an existing user may own another account. 'disable' refuses all requests with the keys of the
account, and of all accounts below it, with 401, and closes the dashboard to users without another
account; 'enable' makes the same keys work again.

Options:
  --config FILE      the configuration file (default: the variable SLUICE_CONFIG)
  --email EMAIL      the owner's e-mail address; accepted instead of --account, too
  --name NAME        1 to 63 characters of a-z, 0-9 and '-' (default: made from --email)
  --parent ACCOUNT   the account whose limits count for this one, too; 'none' for set-parent
  --account ACCOUNT  an account's name, id or e-mail address
  --plan PLAN        a plan of the configuration: starter, pro or max, if it does not name others
                     (with --name by default: starter, or the first)
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
export type AccountsAction = 'create' | 'set-plan' | 'set-parent' | 'disable' | 'enable' | 'list'

const ALLOWED: Record<AccountsAction, readonly string[]> = {
  create: ['config', 'email', 'name', 'plan', 'parent', 'admin', 'password-stdin', 'json'],
  'set-plan': ['config', 'email', 'account', 'plan'],
  disable: ['config', 'email', 'account'],
  enable: ['config', 'email', 'account'],
  list: ['config', 'json'],
  'set-parent': ['config', 'email', 'account', 'parent'],
}

const NEEDED: Record<AccountsAction, readonly string[]> = {
  create: [],
  'set-plan': ['--plan PLAN'],
  'set-parent': ['--parent ACCOUNT'],
  disable: [],
  enable: [],
  list: [],
}

const OPTIONS = {
  config: { type: 'string' },
  email: { type: 'string' },
  name: { type: 'string' },
  parent: { type: 'string' },
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
  if (action === 'create' && values.name === undefined) {
    required(values.email, 'sluice accounts create', '--email EMAIL')
    required(values.plan, 'sluice accounts create', '--plan PLAN')
  } else if (action !== 'list' && action !== 'create') accountOf(values, action)
  return parsed
}

/** Runs one action on an open store. Throws `UsageError`, `GatewayError`. */
export function runAccounts(
  session: StoreSession,
  action: AccountsAction,
  values: AccountsValues,
): Promise<number> {
  const actions = {
    create,
    'set-plan': changePlan,
    'set-parent': changeParent,
    disable: () => switchAccount(session, values, 'disable'),
    enable: () => switchAccount(session, values, 'enable'),
    list,
  }
  return actions[action](session, values)
}

async function create(session: StoreSession, values: AccountsValues): Promise<number> {
  const { store, plans, terminal } = session
  const { email, name, parent: parentName } = values
  const parent = parentName === undefined ? null : await namedAccount(session, parentName)
  if (parentName !== undefined && parent === null) return 1
  const plan =
    values.plan === undefined
      ? planOfNewAccounts(plans)
      : planOf(values, 'sluice accounts create', plans)
  const password =
    values['password-stdin'] === true ? (await terminal.input()).replace(/\r?\n$/, '') : null
  const role = values.admin === true ? 'admin' : 'owner'
  const options: NewAccount = {
    plan,
    role,
    password,
    ...(email === undefined ? {} : { email }),
    ...(name === undefined ? {} : { name }),
    ...(parent === null ? {} : { parentId: parent.id }),
  }
  const { account, user, generatedPassword } = await createAccount(store, options, {
    audit: (made) => [
      accountEntry(made.id, 'account.create', `${role}, plan ${plan}`, accountChange(null, made)),
    ],
  })
  if (values.json === true) {
    const secret = generatedPassword === null ? {} : { password: generatedPassword }
    const { id, name } = account
    terminal.out(JSON.stringify({ id, name, email: user?.email ?? null, plan, role, ...secret }))
    return 0
  }
  terminal.out(`account   ${account.id}`)
  terminal.out(`name      ${account.name}`)
  if (user !== null) terminal.out(`e-mail    ${user.email}`)
  terminal.out(`plan      ${plan}`)
  if (generatedPassword !== null) {
    terminal.out(`password  ${generatedPassword}`)
    terminal.err('The password is shown only now: the store contains only its hash.')
  }
  return 0
}

function accountEntry(id: string, action: string, detail: string, change: AuditChange): AuditEntry {
  return commandEntry({ accountId: id, action, target: id, detail, ...change })
}

async function changePlan(session: StoreSession, values: AccountsValues): Promise<number> {
  const { store, plans, terminal } = session
  const name = accountOf(values, 'set-plan')
  const plan = planOf(values, 'sluice accounts set-plan', plans)
  const account = await namedAccount(session, name)
  if (account === null) return 1
  await setPlan(store, account.id, {
    plan,
    audit: (before, after) => (before.plan === after.plan ? [] : [planEntry(before, after)]),
  })
  const limit = plans[plan]?.maxKeys ?? null
  const keys = limit === null ? 'any number of keys' : `at most ${limit} keys`
  terminal.out(`${account.id} (${account.email ?? account.name}): plan ${plan}, ${keys}`)
  return 0
}

async function changeParent(session: StoreSession, values: AccountsValues): Promise<number> {
  const { store, terminal } = session
  const account = await namedAccount(session, accountOf(values, 'set-parent'))
  if (account === null) return 1
  const name = required(values.parent, 'sluice accounts set-parent', '--parent ACCOUNT')
  const parent = name === 'none' ? null : await namedAccount(session, name)
  if (name !== 'none' && parent === null) return 1
  await setParent(store, account.id, {
    parentId: parent?.id ?? null,
    audit: (before, after) => {
      const detail = parent === null ? 'no parent' : `parent ${parent.name}`
      return [accountEntry(after.id, 'account.change', detail, accountChange(before, after))]
    },
  })
  terminal.out(
    `${account.id} (${account.name}): ${parent === null ? 'no parent' : `parent ${parent.name}`}`,
  )
  return 0
}

function planEntry(before: Account, after: Account): AuditEntry {
  const detail = `${before.plan} → ${after.plan}`
  return accountEntry(after.id, 'account.plan', detail, accountChange(before, after))
}

async function switchAccount(
  session: StoreSession,
  values: AccountsValues,
  action: 'disable' | 'enable',
): Promise<number> {
  const { store, terminal } = session
  const account = await namedAccount(session, accountOf(values, action))
  if (account === null) return 1
  const { id, name, email = name } = account
  await setDisabled(store, id, {
    disabled: action === 'disable',
    audit: (before, after) =>
      before.disabled === after.disabled
        ? []
        : [accountEntry(id, `account.${action}`, email, accountChange(before, after))],
  })
  terminal.out(`${id} (${email}): ${action}d`)
  return 0
}

async function list({ store, terminal }: StoreSession, values: AccountsValues): Promise<number> {
  const rows = async function* () {
    for await (const page of accountPages(store)) {
      yield await Promise.all(
        page.map(async (account) => {
          const user = await store.users.byId(account.id)
          const { parentId } = account
          const parent = parentId === undefined ? null : await store.accountById(parentId)
          return { account, user, parent: parent?.name ?? null }
        }),
      )
    }
  }
  await printList(terminal, rows(), {
    json: values.json === true ? shownAccount : null,
    head: ['ACCOUNT', 'NAME', 'E-MAIL', 'PLAN', 'CREATED', ''],
    cells: ({ account: { id, name, email = '', plan, disabled, createdAtMs } }) => {
      const created = new Date(createdAtMs).toISOString()
      return [id, name, email, plan, created, disabled ? 'disabled' : '']
    },
    none: 'There are no accounts yet.',
  })
  return 0
}

interface AccountRow {
  readonly account: Account
  /** The user that was made with it. */
  readonly user: User | null
  /** The name of the parent. */
  readonly parent: string | null
}

function shownAccount({ account, user, parent }: AccountRow): JsonObject {
  const { id, name, email = null, plan, disabled, createdAtMs } = account
  const role = user !== null && roleOf(user) === 'admin' ? 'admin' : 'owner'
  const created_at = new Date(createdAtMs).toISOString()
  return { id, name, email, plan, parent, role, disabled, created_at }
}

function accountOf({ account, email }: AccountsValues, action: AccountsAction): string {
  if (account !== undefined && email !== undefined) {
    throw new UsageError(`'sluice accounts ${action}' accepts --account or --email, not both`)
  }
  return required(account ?? email, `sluice accounts ${action}`, '--account ACCOUNT')
}

function planOf(values: AccountsValues, command: string, plans: Plans): PlanName {
  const plan = required(values.plan, command, '--plan PLAN')
  if (!isPlanOf(plans, plan)) {
    throw new UsageError(`--plan must be ${plansText(plans)}, not "${plan}"`)
  }
  return plan
}

/** As the dashboard writes them; the actor is the user of the operating system. */
export function commandEntry(
  what: Pick<AuditEntry, 'accountId' | 'action' | 'target' | 'detail' | 'before' | 'after'>,
): AuditEntry {
  const atMs = Date.now()
  return { id: newRequestId(atMs), atMs, ...commandActor(), ...what }
}

/** Who runs the command. */
export function commandActor(): Pick<AuditEntry, 'actor' | 'address'> {
  return { actor: `command line (${systemUser()})`, address: null }
}

/** The name of the user, or the number if it has no name, as in a container with `--user 10001`. */
function systemUser(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${String(process.getuid?.() ?? 'unknown')}`
  }
}
