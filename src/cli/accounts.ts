/**
 * `sluice accounts`: creates accounts, changes their plans, disables, enables and lists them, beside a
 * running gateway. `accounts/` has the rules.
 */
import { counted } from '../base/counted.js'
import { roleOf, type Account, type User } from '../accounts/account.js'
import {
  changeAccount,
  checkedPlan,
  createAccount,
  findAccount,
  type NewAccount,
} from '../accounts/changes/change-accounts.js'
import type { Changing } from '../accounts/changes/change-keys.js'
import { conflictRefusal } from '../accounts/changes/decide.js'
import { raiseAccountLimit } from '../accounts/changes/raise-limit.js'
import { planOfNewAccounts } from '../accounts/plans.js'
import type { JsonObject } from '../base/json.js'
import { newRequestId } from '../http/request-id.js'
import type { AuditEntry } from '../store/audit-trail.js'
import { ownUser } from '../base/file-access.js'
import { accountPages } from '../store/list-all.js'
import { configOption, declare, UsageError } from './command.js'
import { printList } from './print-table-or-json.js'
import { raiseOf, raiseText, withRaise, type RaiseOptions } from './raise.js'
import { namedAccount, required, withStore, type OpenStore, type StoreSession } from './with-store.js'

/** `sluice accounts`. */
export function command(open: OpenStore = withStore) {
  const accounts = declare({
    name: 'accounts',
    summary: 'create and list accounts, change their plans and budgets, disable and enable them',
    description: `
Works on the store of the configuration, with or without a running gateway. A running gateway uses the change
within a second. 'create --email' also makes a user who owns the account; with --name an existing user may own
another account. 'disable' refuses all requests with the keys of the account, and of all accounts below it,
with 401, and closes the dashboard to users without another account; 'enable' makes the same keys work again.
'raise' makes a budget of the account higher until a time, from which on the former one holds again.`,
    example: 'sluice accounts create --config config/gateway.yaml --email team@example.com --plan pro',
  })
  accounts
    .command('create')
    .option('--email <EMAIL>', EMAIL)
    .option('--name <NAME>', "1 to 63 characters of a-z, 0-9 and '-' (default: made from --email)")
    .option('--plan <PLAN>', PLAN)
    .option('--parent <ACCOUNT>', PARENT)
    .option('--admin', 'an administrator, who manages all accounts in the dashboard')
    .option('--password-stdin', PASSWORD_STDIN)
    .addOption(configOption())
    .option('--json', 'print JSON')
    .action(async (options) => {
      if (options.name === undefined) {
        required(options.email, 'sluice accounts create', '--email EMAIL')
        required(options.plan, 'sluice accounts create', '--plan PLAN')
      }
      const opening = { mustExist: false }
      process.exitCode = await open(options.config, (session) => create(session, options), opening)
    })
  accounts
    .command('set-plan')
    .option('--account <ACCOUNT>', ACCOUNT)
    .option('--email <EMAIL>', EMAIL)
    .requiredOption('--plan <PLAN>', PLAN)
    .addOption(configOption())
    .action(async ({ config, plan, ...options }) => {
      const name = accountOf(options, 'set-plan')
      process.exitCode = await open(config, (session) => changePlan(session, name, plan))
    })
  for (const action of ['disable', 'enable'] as const) {
    accounts
      .command(action)
      .option('--account <ACCOUNT>', ACCOUNT)
      .option('--email <EMAIL>', EMAIL)
      .addOption(configOption())
      .action(async ({ config, ...options }) => {
        const name = accountOf(options, action)
        process.exitCode = await open(config, (session) => switchAccount(session, name, action))
      })
  }
  accounts
    .command('list')
    .addOption(configOption())
    .option('--json', 'print JSON')
    .action(async ({ config, json }) => {
      process.exitCode = await open(config, (session) => list(session, json === true))
    })
  accounts
    .command('set-parent')
    .option('--account <ACCOUNT>', ACCOUNT)
    .option('--email <EMAIL>', EMAIL)
    .requiredOption('--parent <ACCOUNT>', PARENT)
    .addOption(configOption())
    .action(async ({ config, parent, ...options }) => {
      const name = accountOf(options, 'set-parent')
      process.exitCode = await open(config, (session) => changeParent(session, name, parent))
    })
  withRaise(accounts.command('raise').option('--account <ACCOUNT>', ACCOUNT).option('--email <EMAIL>', EMAIL))
    .addOption(configOption())
    .action(async ({ config, ...options }) => {
      const name = accountOf(options, 'raise')
      process.exitCode = await open(config, (session) => raise(session, name, options))
    })
  return accounts
}

const EMAIL = "the owner's e-mail address; accepted instead of --account, too"
const ACCOUNT = "an account's name, id or e-mail address"
const PARENT = "the account whose limits count for this one, too; 'none' for set-parent"
const PLAN =
  'a plan of the configuration: starter, pro or max, if it does not name others (with --name by default: starter, or the first)'

/** The description of `--password-stdin`. */
export const PASSWORD_STDIN =
  'read the password (8 characters to 1,024 bytes) from standard input, without a final line break; otherwise one is generated and printed once'

interface NewAccountOptions {
  readonly email?: string | undefined
  readonly name?: string | undefined
  readonly plan?: string | undefined
  readonly parent?: string | undefined
  readonly admin?: true | undefined
  readonly passwordStdin?: true | undefined
  readonly json?: true | undefined
}

async function create(session: StoreSession, values: NewAccountOptions): Promise<number> {
  const { store, plans, terminal } = session
  const { email, name, parent: parentName } = values
  const parent = parentName === undefined ? null : await parentNamed(session, parentName)
  const plan = values.plan === undefined ? planOfNewAccounts(plans) : checkedPlan(values.plan, plans)
  const password = values.passwordStdin ? (await terminal.input()).replace(/\r?\n$/, '') : null
  const role = values.admin ? 'admin' : 'owner'
  const options: NewAccount = {
    plan,
    role,
    password,
    ...(email === undefined ? {} : { email }),
    ...(name === undefined ? {} : { name }),
    ...(parent === null ? {} : { parentId: parent.id, parentName: parent.name }),
  }
  const made = await createAccount(store, options, { actor: commandActor() })
  const { account, user, generatedPassword } = made
  if (values.json) {
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

/** The store as a command changes it. */
export function changingBy({ store, plans }: Pick<StoreSession, 'store' | 'plans'>): Changing {
  return { store, plans, nowMs: Date.now(), actor: commandActor() }
}

async function changePlan(session: StoreSession, name: string, plan: string): Promise<number> {
  const { plans, terminal } = session
  const account = await namedAccount(session, name)
  if (account === null) return 1
  await changeAccount(changingBy(session), account, { plan })
  const limit = plans[plan]?.maxKeys ?? null
  const keys = limit === null ? 'any number of keys' : `at most ${counted(limit, 'key')}`
  terminal.out(`${account.id} (${account.email ?? account.name}): plan ${plan}, ${keys}`)
  return 0
}

async function changeParent(session: StoreSession, name: string, parentName: string): Promise<number> {
  const { terminal } = session
  const account = await namedAccount(session, name)
  if (account === null) return 1
  const parent = parentName === 'none' ? null : await parentNamed(session, parentName)
  await changeAccount(changingBy(session), account, { parent: parent?.name ?? null })
  terminal.out(`${account.id} (${account.name}): ${parent === null ? 'no parent' : `parent ${parent.name}`}`)
  return 0
}

async function parentNamed({ store }: StoreSession, name: string): Promise<Account> {
  const parent = await findAccount(store, name)
  if (parent === null) throw conflictRefusal('no_parent', '')
  return parent
}

async function raise(session: StoreSession, name: string, values: RaiseOptions): Promise<number> {
  const changing = changingBy(session)
  const wish = raiseOf(values, changing.nowMs)
  const account = await namedAccount(session, name)
  if (account === null) return 1
  const raised = await raiseAccountLimit(changing, account, wish)
  session.terminal.out(`${account.id} (${account.name}): ${raiseText(raised)}`)
  return 0
}

async function switchAccount(
  session: StoreSession,
  accountName: string,
  action: 'disable' | 'enable',
): Promise<number> {
  const account = await namedAccount(session, accountName)
  if (account === null) return 1
  const { id, name, email = name } = account
  await changeAccount(changingBy(session), account, { disabled: action === 'disable' })
  session.terminal.out(`${id} (${email}): ${action}d`)
  return 0
}

async function list({ store, terminal }: StoreSession, isJson: boolean): Promise<number> {
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
    json: isJson ? shownAccount : null,
    head: ['ACCOUNT', 'NAME', 'E-MAIL', 'PLAN', 'CREATED', 'STATE'],
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

function accountOf(
  { account, email }: Pick<NewAccountOptions, 'email'> & { readonly account?: string },
  action: string,
): string {
  if (account !== undefined && email !== undefined) {
    throw new UsageError(`'sluice accounts ${action}' accepts --account or --email, not both`)
  }
  return required(account ?? email, `sluice accounts ${action}`, '--account ACCOUNT')
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
  return { actor: `command line (${ownUser()})`, address: null }
}
