/**
 * `sluice users`: creates the people who sign in to the dashboard, gives them roles in the whole gateway,
 * disables and lists them, beside a running gateway. `sluice members` gives them roles in accounts.
 */
import { GATEWAY_ROLES, roleOf, type GatewayRole, type User } from '../accounts/account.js'
import { userChange } from '../accounts/audit-changes.js'
import { createUser } from '../accounts/members.js'
import type { JsonObject } from '../formats/chat/json.js'
import type { AuditEntry } from '../store/audit-trail.js'
import { userPages } from '../store/list-all.js'
import type { UserEdit } from '../store/store.js'
import { commandEntry } from './accounts.js'
import { parseAction, type Command, type OptionValues } from './command.js'
import { printList } from './print-table-or-json.js'
import { UsageError } from './usage-error.js'
import { openingFor, required, withStore, type StoreSession } from './with-store.js'

/** `sluice users`. */
export const command: Command = {
  name: 'users',
  summary: 'create and list the people who sign in, give them roles, disable them',
  help: `
Usage: sluice users create   --email EMAIL [--role admin|auditor] [--password-stdin]
                             [--config FILE] [--json]
       sluice users set-role --email EMAIL --role admin|auditor|none [--config FILE]
       sluice users disable  --email EMAIL [--config FILE]
       sluice users enable   --email EMAIL [--config FILE]
       sluice users list     [--config FILE] [--json]

Works on the store of the configuration, with or without a running gateway. A role of a user holds
for the whole gateway: 'admin' may do everything, 'auditor' reads everything and changes nothing.
'sluice members' gives roles in one account. A user who is disabled, or has no role and is a member
of no account, is signed out within a second.

Options:
  --config FILE      the configuration file (default: the variable SLUICE_CONFIG)
  --email EMAIL      the e-mail address for signing in
  --role ROLE        admin or auditor; 'none' takes the role away (default of 'create': none)
  --password-stdin   read the password (8 characters to 1,024 bytes) from standard input, without
                     a final line break; otherwise one is generated and printed once
  --json             print JSON

Exit status: 0 success, 1 failure, 2 wrong usage.

Example:
  sluice users create --config config/gateway.yaml --email ada@example.com --role auditor
`,
  run(argv) {
    const { action, values } = parseUsers(argv)
    const opening = openingFor('sluice users', values.config, action !== 'create')
    return withStore(opening, (session) => runUsers(session, action, values))
  },
}

type UsersAction = 'create' | 'set-role' | 'disable' | 'enable' | 'list'

const ALLOWED: Record<UsersAction, readonly string[]> = {
  create: ['config', 'email', 'role', 'password-stdin', 'json'],
  'set-role': ['config', 'email', 'role'],
  disable: ['config', 'email'],
  enable: ['config', 'email'],
  list: ['config', 'json'],
}

const NEEDED: Record<UsersAction, readonly string[]> = {
  create: ['--email EMAIL'],
  'set-role': ['--email EMAIL', '--role ROLE'],
  disable: ['--email EMAIL'],
  enable: ['--email EMAIL'],
  list: [],
}

const OPTIONS = {
  config: { type: 'string' },
  email: { type: 'string' },
  role: { type: 'string' },
  'password-stdin': { type: 'boolean' },
  json: { type: 'boolean' },
} as const

type UsersValues = OptionValues<typeof OPTIONS>

/** The action and its options. Throws `UsageError` or parseArgs's error. */
export function parseUsers(argv: readonly string[]): { action: UsersAction; values: UsersValues } {
  const parsed = parseAction('users', argv, { options: OPTIONS, allowed: ALLOWED, needed: NEEDED })
  const { action, values } = parsed
  if (values.role !== undefined) {
    const role = checkedRole(values.role)
    if (action === 'create' && role === null) {
      throw new UsageError('--role must be admin or auditor; leave it out for no role')
    }
  }
  return parsed
}

/** Runs one action on an open store. Throws `UsageError`, `GatewayError`. */
export function runUsers(
  session: StoreSession,
  action: UsersAction,
  values: UsersValues,
): Promise<number> {
  switch (action) {
    case 'create':
      return create(session, values)
    case 'set-role':
      return change(session, values, 'user.role', { role: checkedRole(values.role ?? '') })
    case 'disable':
      return change(session, values, 'user.disable', { disabled: true })
    case 'enable':
      return change(session, values, 'user.enable', { disabled: false })
    case 'list':
      return list(session, values)
    default:
      return action satisfies never
  }
}

function checkedRole(text: string): GatewayRole | null {
  if (text === 'none') return null
  const role = GATEWAY_ROLES.find((each) => each === text)
  if (role !== undefined) return role
  throw new UsageError(`--role must be admin, auditor or none, not "${text}"`)
}

function userEntry(user: User, action: string, before: User | null): AuditEntry {
  const detail = `${user.email}: ${roleOf(user) ?? 'no role'}`
  const change = userChange(before, user)
  return commandEntry({ accountId: user.id, action, target: user.id, detail, ...change })
}

async function create({ store, terminal }: StoreSession, values: UsersValues): Promise<number> {
  const email = required(values.email, 'sluice users create', '--email EMAIL')
  const password =
    values['password-stdin'] === true ? (await terminal.input()).replace(/\r?\n$/, '') : null
  const { user, generatedPassword } = await createUser(store, {
    email,
    role: values.role === undefined ? null : checkedRole(values.role),
    password,
    audit: (made) => [userEntry(made, 'user.create', null)],
  })
  if (values.json === true) {
    const secret = generatedPassword === null ? {} : { password: generatedPassword }
    terminal.out(JSON.stringify({ ...shownUser(user), ...secret }))
    return 0
  }
  terminal.out(`user      ${user.id}`)
  terminal.out(`e-mail    ${user.email}`)
  if (user.role !== null) terminal.out(`role      ${user.role}`)
  if (generatedPassword !== null) {
    terminal.out(`password  ${generatedPassword}`)
    terminal.err('The password is shown only now: the store contains only its hash.')
  }
  return 0
}

async function change(
  { store, terminal }: StoreSession,
  { email = '' }: UsersValues,
  action: string,
  edit: UserEdit,
): Promise<number> {
  const known = await store.users.byEmail(email)
  const changed =
    known === null
      ? null
      : await store.users.change(known.id, edit, (before, after) => {
          const isSame = before.role === after.role && before.disabled === after.disabled
          return isSame ? [] : [userEntry(after, action, before)]
        })
  if (changed === null) {
    terminal.err(`sluice: no user has the e-mail address "${email}": 'sluice users list' shows all`)
    return 1
  }
  const role = roleOf(changed)
  const state = changed.disabled ? 'disabled' : role === null ? 'no role' : `role ${role}`
  terminal.out(`${changed.id} (${changed.email}): ${state}`)
  return 0
}

async function list({ store, terminal }: StoreSession, values: UsersValues): Promise<number> {
  await printList(terminal, userPages(store), {
    json: values.json === true ? shownUser : null,
    head: ['USER', 'E-MAIL', 'ROLE', 'CREATED', ''],
    cells: (user) => {
      const { id, email, createdAtMs, disabled, signedInAtMs } = user
      const state = disabled ? 'disabled' : signedInAtMs === undefined ? 'invited' : ''
      return [id, email, roleOf(user) ?? '', new Date(createdAtMs).toISOString(), state]
    },
    none: 'There are no users yet.',
  })
  return 0
}

function shownUser(user: User): JsonObject {
  const { id, email, disabled, createdAtMs, signedInAtMs } = user
  const state = signedInAtMs === undefined ? 'invited' : 'active'
  const created_at = new Date(createdAtMs).toISOString()
  return { id, email, role: roleOf(user), state, disabled, created_at }
}
