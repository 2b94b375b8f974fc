/**
 * `sluice members`: gives users roles in accounts, takes them away and lists them, beside a running gateway.
 */
import {
  comparableEmail,
  roleOf,
  type Account,
  type AccountRole,
  type Member,
  type User,
} from '../accounts/account.js'
import { memberState } from '../accounts/address-proof.js'
import { memberChange, userChange } from '../accounts/changes/audit-text.js'
import { checkedRole } from '../accounts/changes/fields.js'
import { withUser, removeMember, setMember } from '../accounts/members.js'
import type { AuditEntry } from '../store/audit-trail.js'
import { commandEntry } from './accounts.js'
import { configOption, declare } from './command.js'
import { printList } from './print-table-or-json.js'
import { namedAccount, withStore, type OpenStore, type StoreSession } from './with-store.js'
import { timeText } from '../base/time-units.js'

/** `sluice members`. */
export function command(open: OpenStore = withStore) {
  const members = declare({
    name: 'members',
    summary: 'give users roles in accounts, and list them',
    description: `
Works on the store of the configuration, with or without a running gateway. An 'owner' manages the account's
members and keys, a 'member' its own keys, a 'viewer' sees the usage. 'set' makes a user of a new address, who
signs in with the identity provider or with a link that an owner makes in the dashboard. The role of a user
who has signed in, and whose address is not proven, is pending: 'sluice users set-password' proves it.`,
    example:
      'sluice members set --config config/gateway.yaml --account research --email ada@example.com --role owner',
  })
  const inAccount =
    (account: string, work: (session: StoreSession, account: Account) => Promise<number>) =>
    async (session: StoreSession): Promise<number> => {
      const found = await namedAccount(session, account)
      return found === null ? 1 : work(session, found)
    }
  members
    .command('set')
    .requiredOption('--account <ACCOUNT>', ACCOUNT)
    .requiredOption('--email <EMAIL>', EMAIL)
    .requiredOption('--role <ROLE>', 'owner, member or viewer')
    .addOption(configOption())
    .action(async ({ config, account, email, role }) => {
      const wanted = { email, role: checkedRole(role) }
      const work = inAccount(account, (session, found) => set(session, found, wanted))
      process.exitCode = await open(config, work)
    })
  members
    .command('remove')
    .requiredOption('--account <ACCOUNT>', ACCOUNT)
    .requiredOption('--email <EMAIL>', EMAIL)
    .addOption(configOption())
    .action(async ({ config, account, email }) => {
      const work = inAccount(account, (session, found) => remove(session, found, email))
      process.exitCode = await open(config, work)
    })
  members
    .command('list')
    .requiredOption('--account <ACCOUNT>', ACCOUNT)
    .addOption(configOption())
    .option('--json', 'print JSON')
    .action(async ({ config, account, json }) => {
      const work = inAccount(account, (session, found) => list(session, found, json === true))
      process.exitCode = await open(config, work)
    })
  return members
}

const ACCOUNT = "an account's name, id or e-mail address"
const EMAIL = "the user's e-mail address"

async function set(
  { store, terminal }: StoreSession,
  account: Account,
  { email: text, role }: { readonly email: string; readonly role: AccountRole },
): Promise<number> {
  const email = comparableEmail(text)
  const nowMs = Date.now()
  const audit = (before: Member | null, after: Member) => [
    memberEntry(before === null ? 'member.create' : 'member.change', before, after),
  ]
  const given = { account, role, nowMs, audit }
  const { user, member } = await withUser(store, { email }, async (user, isNew) => {
    const made = isNew ? { made: [userCreation(user)] } : {}
    return { user, member: await setMember(store, { ...given, user, ...made }) }
  })
  const isPending = memberState(member, user) === 'pending'
  const note = isPending ? ', pending until the address is proven' : ''
  terminal.out(`${member.email}: ${roleOf(member) ?? ''} of ${account.name}${note}`)
  return 0
}

function userCreation(user: User): AuditEntry {
  return commandEntry({
    ...{ accountId: user.id, action: 'user.create', target: user.id },
    ...{ detail: user.email, ...userChange(null, user) },
  })
}

async function remove({ store, terminal }: StoreSession, account: Account, text: string): Promise<number> {
  const email = comparableEmail(text)
  const nowMs = Date.now()
  const audit = (before: Member) => [memberEntry('member.remove', before, null)]
  if (await removeMember(store, { account, email, nowMs, audit })) {
    terminal.out(`${email}: no member of ${account.name}`)
    return 0
  }
  terminal.err(`sluice: "${email}" is no member of ${account.name}: 'sluice members list' shows all`)
  return 1
}

async function list({ store, terminal }: StoreSession, account: Account, isJson: boolean): Promise<number> {
  const rows = async function* () {
    yield await Promise.all(
      (await store.membersOf(account.id)).map(async (member) => {
        const user = await store.users.byId(member.userId)
        return { member, state: memberState(member, user) }
      }),
    )
  }
  await printList(terminal, rows(), {
    json: isJson
      ? ({ member, state }) => ({
          ...{ account: account.name, email: member.email, role: roleOf(member), state },
          ...{ labels: { ...member.labels }, created_at: timeText(member.createdAtMs) },
        })
      : null,
    head: ['E-MAIL', 'ROLE', 'SINCE', 'STATE'],
    cells: ({ member, state }) => {
      return [member.email, roleOf(member) ?? '', timeText(member.createdAtMs), state]
    },
    none: `${account.name} has no members.`,
  })
  return 0
}

function memberEntry(action: string, before: Member | null, after: Member | null): AuditEntry {
  const { accountId = '', email = '' } = after ?? before ?? {}
  const role = after === null ? null : roleOf(after)
  const detail = role === null ? email : `${email}: ${role}`
  const change = memberChange(before, after)
  return commandEntry({ accountId, action, target: email, detail, ...change })
}
