/**
 * `sluice members`: gives users roles in accounts, takes them away and lists them, beside a running gateway.
 */
import { ACCOUNT_ROLES, roleOf, type AccountRole, type Member } from '../accounts/account.js'
import { memberChange, userChange } from '../accounts/audit-changes.js'
import { ensureUser, removeMember, setMember } from '../accounts/members.js'
import type { AuditEntry } from '../store/audit-trail.js'
import { commandEntry } from './accounts.js'
import { parseAction, type Command, type OptionValues } from './command.js'
import { printList } from './print-table-or-json.js'
import { UsageError } from './usage-error.js'
import { namedAccount, openingFor, withStore, type StoreSession } from './with-store.js'

/** `sluice members`. */
export const command: Command = {
  name: 'members',
  summary: 'give users roles in accounts, and list them',
  help: `
Usage: sluice members set    --account ACCOUNT --email EMAIL --role owner|member|viewer
                             [--config FILE]
       sluice members remove --account ACCOUNT --email EMAIL [--config FILE]
       sluice members list   --account ACCOUNT [--config FILE] [--json]

Works on the store of the configuration, with or without a running gateway. An 'owner' manages the
account's members and keys, a 'member' its own keys, a 'viewer' sees the usage. 'set' makes a user
of a new address, who signs in with the identity provider or with a link that an owner makes in the
dashboard.

Options:
  --config FILE      the configuration file (default: the variable SLUICE_CONFIG)
  --account ACCOUNT  an account's name, id or e-mail address
  --email EMAIL      the user's e-mail address
  --role ROLE        owner, member or viewer
  --json             print JSON

Exit status: 0 success, 1 failure, 2 wrong usage.

Example:
  sluice members set --config config/gateway.yaml --account research --email ada@example.com --role owner
`,
  run(argv) {
    const { action, values } = parseMembers(argv)
    const opening = openingFor('sluice members', values.config)
    return withStore(opening, (session) => runMembers(session, action, values))
  },
}

type MembersAction = 'set' | 'remove' | 'list'

const ALLOWED: Record<MembersAction, readonly string[]> = {
  set: ['config', 'account', 'email', 'role'],
  remove: ['config', 'account', 'email'],
  list: ['config', 'account', 'json'],
}

const NEEDED: Record<MembersAction, readonly string[]> = {
  set: ['--account ACCOUNT', '--email EMAIL', '--role ROLE'],
  remove: ['--account ACCOUNT', '--email EMAIL'],
  list: ['--account ACCOUNT'],
}

const OPTIONS = {
  config: { type: 'string' },
  account: { type: 'string' },
  email: { type: 'string' },
  role: { type: 'string' },
  json: { type: 'boolean' },
} as const

type MembersValues = OptionValues<typeof OPTIONS>

/** The action and its options. Throws `UsageError` or parseArgs's error. */
export function parseMembers(argv: readonly string[]): {
  action: MembersAction
  values: MembersValues
} {
  const options = { options: OPTIONS, allowed: ALLOWED, needed: NEEDED }
  const parsed = parseAction('members', argv, options)
  if (parsed.values.role !== undefined) checkedRole(parsed.values.role)
  return parsed
}

/** Runs one action on an open store. Throws `UsageError`, `GatewayError`. */
export async function runMembers(
  session: StoreSession,
  action: MembersAction,
  values: MembersValues,
): Promise<number> {
  const { store, terminal } = session
  const account = await namedAccount(session, values.account ?? '')
  if (account === null) return 1
  const { email: text = '', role = '', json = false } = values
  const email = text.trim().toLowerCase()
  const nowMs = Date.now()
  if (action === 'set') {
    const { user } = await ensureUser(store, {
      email,
      audit: (made) => [
        commandEntry({
          ...{ accountId: made.id, action: 'user.create', target: made.id },
          ...{ detail: made.email, ...userChange(null, made) },
        }),
      ],
    })
    const audit = (before: Member | null, after: Member) => [
      memberEntry(before === null ? 'member.create' : 'member.change', before, after),
    ]
    const given = { account, user, role: checkedRole(role), nowMs, audit }
    const member = await setMember(store, given)
    terminal.out(`${member.email}: ${roleOf(member) ?? ''} of ${account.name}`)
    return 0
  }
  if (action === 'remove') {
    const audit = (before: Member) => [memberEntry('member.remove', before, null)]
    if (await removeMember(store, { account, email, nowMs, audit })) {
      terminal.out(`${email}: no member of ${account.name}`)
      return 0
    }
    terminal.err(
      `sluice: "${email}" is no member of ${account.name}: 'sluice members list' shows all`,
    )
    return 1
  }
  const rows = async function* () {
    yield await Promise.all(
      (await store.membersOf(account.id)).map(async (member) => {
        const user = await store.users.byId(member.userId)
        return { member, state: user?.signedInAtMs === undefined ? 'invited' : 'active' }
      }),
    )
  }
  await printList(terminal, rows(), {
    json: json
      ? ({ member, state }) => ({
          ...{ account: account.name, email: member.email, role: roleOf(member), state },
          ...{ labels: { ...member.labels }, created_at: timeOf(member.createdAtMs) },
        })
      : null,
    head: ['E-MAIL', 'ROLE', 'SINCE', ''],
    cells: ({ member, state }) => {
      return [member.email, roleOf(member) ?? '', timeOf(member.createdAtMs), state]
    },
    none: `${account.name} has no members.`,
  })
  return 0
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}

function checkedRole(text: string): AccountRole {
  const role = ACCOUNT_ROLES.find((each) => each === text)
  if (role !== undefined) return role
  throw new UsageError(`--role must be owner, member or viewer, not "${text}"`)
}

function memberEntry(action: string, before: Member | null, after: Member | null): AuditEntry {
  const { accountId = '', email = '' } = after ?? before ?? {}
  const role = after === null ? null : roleOf(after)
  const detail = role === null ? email : `${email}: ${role}`
  const change = memberChange(before, after)
  return commandEntry({ accountId, action, target: email, detail, ...change })
}
