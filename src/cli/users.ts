/**
 * `sluice users`: creates the people who sign in to the dashboard, gives them roles in the whole gateway,
 * disables and lists them, beside a running gateway. `sluice members` gives them roles in accounts.
 */
import { counted } from '../base/counted.js'
import { roleOf, type GatewayRole, type User } from '../accounts/account.js'
import { gatewayRoleOf, userState } from '../accounts/address-proof.js'
import { userChange } from '../accounts/changes/audit-text.js'
import { checkedGatewayRole } from '../accounts/changes/fields.js'
import { endWhatAnotherMade } from '../accounts/former-holder.js'
import { allSignIns } from '../accounts/ended-sign-ins.js'
import { changeUser, createUser, unbindUser } from '../accounts/members.js'
import { hashPassword, newPassword } from '../accounts/password.js'
import type { JsonObject } from '../base/json.js'
import type { AuditEntry } from '../store/audit-trail.js'
import { userPages } from '../store/list-all.js'
import type { UserEdit } from '../store/store.js'
import { commandActor, commandEntry, PASSWORD_STDIN } from './accounts.js'
import { configOption, declare } from './command.js'
import { printList } from './print-table-or-json.js'
import { withStore, type OpenStore, type StoreSession } from './with-store.js'

/** `sluice users`. */
export function command(open: OpenStore = withStore) {
  const users = declare({
    name: 'users',
    summary: 'create and list the people who sign in, give them roles, disable them',
    description: `
Works on the store of the configuration, with or without a running gateway. A role of a user holds for the
whole gateway: 'admin' may do everything, 'auditor' reads everything and changes nothing. 'sluice members'
gives roles in one account. Roles of a user whose address is not proven ('unproven') are pending until the
user signs in with the identity provider or with a link of an administrator, or 'set-password' replaces the
password: that ends all sessions and links of the user. 'unbind' frees a user of its identity at an identity
provider, such as a former one: the next sign-in with the address binds the user again. A user
who is disabled, or has no role and is a member of no account, is signed out within a second.`,
    example: 'sluice users create --config config/gateway.yaml --email ada@example.com --role auditor',
  })
  users
    .command('create')
    .requiredOption('--email <EMAIL>', EMAIL)
    .option('--role <ROLE>', ROLE)
    .option('--password-stdin', PASSWORD_STDIN)
    .addOption(configOption())
    .option('--json', 'print JSON')
    .action(async ({ role: text, ...options }) => {
      const user = { ...options, role: text === undefined ? null : checkedGatewayRole(text) }
      const opening = { mustExist: false }
      process.exitCode = await open(options.config, (session) => create(session, user), opening)
    })
  users
    .command('set-role')
    .requiredOption('--email <EMAIL>', EMAIL)
    .requiredOption('--role <ROLE>', ROLE)
    .addOption(configOption())
    .action(async ({ config, email, role: text }) => {
      const role = text === 'none' ? null : checkedGatewayRole(text)
      process.exitCode = await open(config, (session) => {
        return change(session, email, 'user.role', { role })
      })
    })
  users
    .command('set-password')
    .requiredOption('--email <EMAIL>', EMAIL)
    .option('--password-stdin', PASSWORD_STDIN)
    .addOption(configOption())
    .action(async ({ config, email, passwordStdin }) => {
      process.exitCode = await open(config, (session) => setPassword(session, email, passwordStdin === true))
    })
  users
    .command('unbind')
    .requiredOption('--email <EMAIL>', EMAIL)
    .addOption(configOption())
    .action(async ({ config, email }) => {
      process.exitCode = await open(config, (session) => unbind(session, email))
    })
  for (const [name, disabled] of [
    ['disable', true],
    ['enable', false],
  ] as const) {
    users
      .command(name)
      .requiredOption('--email <EMAIL>', EMAIL)
      .addOption(configOption())
      .action(async ({ config, email }) => {
        process.exitCode = await open(config, (session) => {
          return change(session, email, `user.${name}`, { disabled })
        })
      })
  }
  users
    .command('list')
    .addOption(configOption())
    .option('--json', 'print JSON')
    .action(async ({ config, json }) => {
      process.exitCode = await open(config, (session) => list(session, json === true))
    })
  return users
}

const EMAIL = 'the e-mail address for signing in'
const ROLE = "admin or auditor; 'none' takes the role away (default of 'create': none)"

function userEntry(user: User, action: string, before: User | null): AuditEntry {
  const detail = `${user.email}: ${roleOf(user) ?? 'no role'}`
  const change = userChange(before, user)
  return commandEntry({ accountId: user.id, action, target: user.id, detail, ...change })
}

interface NewUserOptions {
  readonly email: string
  readonly role: GatewayRole | null
  readonly passwordStdin?: true | undefined
  readonly json?: true | undefined
}

async function create(
  { store, terminal }: StoreSession,
  { email, role, passwordStdin, json }: NewUserOptions,
): Promise<number> {
  const password = passwordStdin ? await typedPassword(terminal) : null
  const { user, generatedPassword } = await createUser(store, {
    email,
    role,
    password,
    audit: (made) => [userEntry(made, 'user.create', null)],
  })
  if (json) {
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
  email: string,
  action: string,
  edit: Pick<UserEdit, 'role' | 'disabled'>,
): Promise<number> {
  const known = await store.users.byEmail(email)
  const changed =
    known === null
      ? null
      : await changeUser(store, known.id, {
          ...{ edit, nowMs: Date.now() },
          audit: (before, after) => [userEntry(after, action, before)],
        })
  if (changed === null) return noUser(terminal, email)
  const role = roleOf(changed)
  const pending =
    role !== null && gatewayRoleOf(changed) === null ? ', pending until the address is proven' : ''
  const state = changed.disabled ? 'disabled' : role === null ? 'no role' : `role ${role}${pending}`
  terminal.out(`${changed.id} (${changed.email}): ${state}`)
  return 0
}

/** Replaces the password, by an administrator who proves the address so. */
async function setPassword(
  { store, terminal }: StoreSession,
  email: string,
  isTyped: boolean,
): Promise<number> {
  const known = await store.users.byEmail(email)
  if (known === null) return noUser(terminal, email)
  if (known.subject !== undefined) {
    terminal.err(`sluice: "${email}" signs in with the identity provider and has no password`)
    return 1
  }
  const password = isTyped ? await typedPassword(terminal) : newPassword()
  const passwordHash = hashPassword(password)
  const audit = (before: User, after: User) => [userEntry(after, 'user.password', before)]
  // A user who has signed in may have let another person make something, which ends first.
  const hasSignedIn = known.unproven === true && known.signedInAtMs !== undefined
  const edit = { passwordHash, ...(hasSignedIn ? {} : { unproven: null }) }
  await store.users.change(known.id, edit, audit, () => ({ ends: [allSignIns(known.id)] }))
  const proof = { user: known, isSameHolder: false, nowMs: Date.now(), actor: commandActor() }
  const { keys, members } = await endWhatAnotherMade(store, proof)
  // Last: a command that was interrupted is completed by the next one.
  if (hasSignedIn) await store.users.change(known.id, { unproven: null })
  terminal.out(`${known.id} (${known.email}): new password`)
  if (keys + members > 0) {
    terminal.err(
      `The address was not proven: ${counted(keys, 'key')} and ${counted(members, 'member')} of before have ended.`,
    )
  }
  if (isTyped) return 0
  terminal.out(`password  ${password}`)
  terminal.err('The password is shown only now: the store contains only its hash.')
  return 0
}

/** Frees the user of its identity at an identity provider, so that another one with the address gets it. */
async function unbind({ store, terminal }: StoreSession, email: string): Promise<number> {
  const known = await store.users.byEmail(email)
  if (known === null) return noUser(terminal, email)
  if (known.subject === undefined) {
    terminal.err(`sluice: "${email}" is bound to no identity of an identity provider`)
    return 1
  }
  await unbindUser(store, known.id, {
    audit: (before, after) => [userEntry(after, 'user.unbind', before)],
  })
  terminal.out(`${known.id} (${known.email}): bound to no identity`)
  return 0
}

async function typedPassword(terminal: StoreSession['terminal']): Promise<string> {
  return (await terminal.input()).replace(/\r?\n$/, '')
}

function noUser(terminal: StoreSession['terminal'], email: string): number {
  terminal.err(`sluice: no user has the e-mail address "${email}": 'sluice users list' shows all`)
  return 1
}

async function list({ store, terminal }: StoreSession, isJson: boolean): Promise<number> {
  await printList(terminal, userPages(store), {
    json: isJson ? shownUser : null,
    head: ['USER', 'E-MAIL', 'ROLE', 'CREATED', 'STATE'],
    cells: (user) => {
      const { id, email, createdAtMs } = user
      const state = userState(user)
      const shown = state === 'active' ? '' : state
      return [id, email, roleOf(user) ?? '', new Date(createdAtMs).toISOString(), shown]
    },
    none: 'There are no users yet.',
  })
  return 0
}

function shownUser(user: User): JsonObject {
  const { id, email, disabled, createdAtMs } = user
  const state = userState(user)
  const created_at = new Date(createdAtMs).toISOString()
  return { id, email, role: roleOf(user), state, disabled, created_at }
}
