/**
 * `sluice accounts`: creates accounts, changes their plans and lists them, beside a running gateway. `accounts/` has
 * the rules.
 */
import { parseArgs } from 'node:util'
import type { PlanName } from '../../accounts/account.js'
import { createAccount, isPlanName, setPlan } from '../../accounts/accounts.js'
import { actionOf, UsageError, type Command } from '../command.js'
import { configPath } from '../config-option.js'
import { accountPages } from '../../store/list-all.js'
import { outJson, outTable } from '../print-list.js'
import {
  namedAccount,
  processTerminal,
  required,
  withStore,
  type StoreSession,
} from '../with-store.js'

/** `sluice accounts`. */
export const command: Command = {
  name: 'accounts',
  summary: 'create and list accounts, change their plans',
  help: `
Usage: sluice accounts create   --email EMAIL --plan PLAN [--admin] [--password-stdin]
                                [--config FILE] [--json]
       sluice accounts set-plan --account ACCOUNT --plan PLAN [--config FILE]
       sluice accounts list     [--config FILE] [--json]

Works on the store of the configuration, with or without a running gateway; a running one uses the
change within a second. Exits 1 on failure, with the reason.

Options:
  --config FILE      the configuration file (default: the variable SLUICE_CONFIG)
  --email EMAIL      the e-mail address for signing in; set-plan accepts it instead of --account
  --account ACCOUNT  an account's id or e-mail address
  --plan PLAN        starter, pro or max
  --admin            an administrator, who manages all accounts in the dashboard
  --password-stdin   read the password (8 characters to 1,024 bytes) from standard input, without
                     a final line break; otherwise one is generated and printed once
  --json             print JSON

Example:
  sluice accounts create --config config/gateway.yaml --email team@example.com --plan pro
`,
  run(argv) {
    const { action, values } = parseAccounts(argv)
    const opening = {
      configPath: configPath(values.config, 'sluice accounts'),
      terminal: processTerminal,
      mustExist: action !== 'create',
    }
    return withStore(opening, (session) => runAccounts(session, action, values))
  },
}

/** The action of `sluice accounts`. */
export type AccountsAction = 'create' | 'set-plan' | 'list'

/** The options, before the check whether the action allows them. */
export interface AccountsValues {
  config?: string | undefined
  email?: string | undefined
  account?: string | undefined
  plan?: string | undefined
  admin?: boolean | undefined
  'password-stdin'?: boolean | undefined
  json?: boolean | undefined
}

const ALLOWED: Record<AccountsAction, readonly string[]> = {
  create: ['config', 'email', 'plan', 'admin', 'password-stdin', 'json'],
  'set-plan': ['config', 'email', 'account', 'plan'],
  list: ['config', 'json'],
}

/** The action and its options. Throws `UsageError` or parseArgs's error. */
export function parseAccounts(argv: readonly string[]): {
  action: AccountsAction
  values: AccountsValues
} {
  const parsed = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      config: { type: 'string' },
      email: { type: 'string' },
      account: { type: 'string' },
      plan: { type: 'string' },
      admin: { type: 'boolean' },
      'password-stdin': { type: 'boolean' },
      json: { type: 'boolean' },
    },
  })
  const action = actionOf('accounts', parsed, ALLOWED)
  return { action, values: parsed.values }
}

/** Runs one action on an open store. Throws `UsageError`, `GatewayError`. */
export function runAccounts(
  session: StoreSession,
  action: AccountsAction,
  values: AccountsValues,
): Promise<number> {
  switch (action) {
    case 'create':
      return create(session, values)
    case 'set-plan':
      return changePlan(session, values)
    case 'list':
      return list(session, values)
  }
}

async function create({ store, terminal }: StoreSession, values: AccountsValues): Promise<number> {
  const email = required(values.email, 'sluice accounts create', '--email EMAIL')
  const plan = planOf(values, 'sluice accounts create')
  const password =
    values['password-stdin'] === true ? (await terminal.input()).replace(/\r?\n$/, '') : null
  const role = values.admin === true ? 'admin' : 'owner'
  const wanted = { email, plan, role, password } as const
  const { account, generatedPassword } = await createAccount(store, wanted)
  if (values.json === true) {
    const made = generatedPassword === null ? {} : { password: generatedPassword }
    terminal.out(JSON.stringify({ id: account.id, email: account.email, plan, role, ...made }))
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

async function changePlan(session: StoreSession, values: AccountsValues): Promise<number> {
  const { store, plans, terminal } = session
  const wanted = values.account ?? values.email
  const name = required(wanted, 'sluice accounts set-plan', '--account ACCOUNT')
  if (values.account !== undefined && values.email !== undefined) {
    throw new UsageError("'sluice accounts set-plan' accepts --account or --email, not both")
  }
  const plan = planOf(values, 'sluice accounts set-plan')
  const account = await namedAccount(session, name)
  if (account === null) return 1
  await setPlan(store, account.id, plan)
  const limit = plans[plan].maxKeys
  const keys = limit === null ? 'any number of keys' : `at most ${limit} keys`
  terminal.out(`${account.id} (${account.email}): plan ${plan}, ${keys}`)
  return 0
}

async function list({ store, terminal }: StoreSession, values: AccountsValues): Promise<number> {
  if (values.json === true) {
    await outJson(terminal, accountPages(store), (account) => {
      const { id, email, plan, role, disabled, createdAtMs } = account
      return { id, email, plan, role, disabled, created_at: new Date(createdAtMs).toISOString() }
    })
    return 0
  }
  const head = ['ACCOUNT', 'E-MAIL', 'PLAN', 'CREATED', '']
  const count = await outTable(terminal, accountPages(store), head, (account) => {
    const { id, email, plan, disabled, createdAtMs } = account
    return [id, email, plan, new Date(createdAtMs).toISOString(), disabled ? 'disabled' : '']
  })
  if (count === 0) terminal.err('There are no accounts yet.')
  return 0
}

function planOf(values: AccountsValues, command: string): PlanName {
  const plan = required(values.plan, command, '--plan PLAN')
  if (!isPlanName(plan)) throw new UsageError(`--plan must be starter, pro or max, not "${plan}"`)
  return plan
}
