/** The people who can sign in, and as what: administrators invite, change roles, and disable. */
import type { UserRow } from '../../../control/dashboard/schema/schema.js'
import { change } from '../api/endpoints.js'
import { useList, useResource } from '../api/use-resource.js'
import { CreateButton, IconButton } from '../components/button.js'
import { CREATED, times } from '../components/columns.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Confirm, FormDialog, useDialog, type OpenDialog } from '../components/dialog.js'
import { FilterBar, NoMatches, type ListFilter } from '../components/filter-bar.js'
import { SelectField } from '../components/form.js'
import { Menu } from '../components/menu.js'
import { report } from '../components/notices.js'
import { optionsOf } from '../components/options.js'
import { Name, TwoLines } from '../components/values.js'
import { plural } from '../format/number.js'
import { Link, useLocation } from '../routing.js'
import { Page } from '../shell/page.js'
import { useRights, useSession } from '../shell/session.js'
import { AccountField, LINK_EFFECTS, linkShown, NewLink } from './accounts/account-dialogs.js'
import { ROLES as ACCOUNT_ROLES } from './members.js'
import { Email } from './sign-in.js'

const PAGE = 50
/** Accounts of a row. */
const SHOWN = 2
const GATEWAY_ROLES = { admin: 'administrator', auditor: 'auditor' } as const

const COLUMNS: readonly Column<UserRow>[] = [
  {
    id: 'email',
    head: 'E-mail',
    cell: (user) => <TwoLines first={<Name text={user.email} strong />} second={signInText(user)} />,
    text: true,
  },
  { id: 'role', head: 'In the gateway', cell: (user) => roleText(user) },
  {
    id: 'accounts',
    head: 'Accounts',
    cell: (user) => <Accounts user={user} />,
    className: 'wide-cell',
    extra: true,
  },
  {
    id: 'state',
    head: 'State',
    cell: ({ state }) => <span className={`tag ${STATE_TONES[state]}`.trimEnd()}>{state}</span>,
  },
  times('lastSignInAtMs', 'Last sign-in', ({ lastSignInAtMs }) => lastSignInAtMs, { minor: true }),
  CREATED,
]

const STATE_TONES = { active: '', invited: 'warn', pending: 'warn', disabled: 'revoked' } as const

function signInText({ provider, hasPassword, state }: UserRow): string {
  if (provider !== null) return `signs in with ${provider}`
  if (hasPassword) return state === 'pending' ? 'password, address not proven' : 'password'
  return 'no password yet'
}

function roleText({ role, groupRole }: UserRow): string {
  const own = role === null ? null : GATEWAY_ROLES[role]
  if (groupRole === null) return own ?? '–'
  const group = `${GATEWAY_ROLES[groupRole]} (group)`
  return own === null ? group : `${own}, ${group}`
}

function Accounts({ user: { accounts } }: { readonly user: UserRow }) {
  const rest = accounts.slice(SHOWN).map(({ name, role }) => `${name}: ${role}`)
  return (
    <>
      {accounts.slice(0, SHOWN).map(({ name, role }, at) => (
        <span key={name}>
          {at === 0 ? '' : ', '}
          <Link to={`/accounts/${name}?tab=members`}>{name}</Link> <span className="soft">{role}</span>
        </span>
      ))}
      {rest.length === 0 ? null : (
        <span className="soft" title={rest.join(', ')}>
          {' '}
          +{rest.length}
        </span>
      )}
    </>
  )
}

const FILTERS: readonly ListFilter[] = [
  {
    name: 'role',
    label: 'Role',
    options: [
      { value: 'admin', label: 'administrators' },
      { value: 'auditor', label: 'auditors' },
    ],
  },
  {
    name: 'state',
    label: 'State',
    options: optionsOf(['active', 'invited', 'pending', 'disabled']),
  },
]

/** The list of users. */
export function UsersPage() {
  const { query } = useLocation()
  const { isAdmin } = useRights()
  const [dialog, open] = useDialog()
  const asked = {
    search: query.get('search'),
    role: query.get('role'),
    state: query.get('state'),
    limit: PAGE,
  }
  const list = useList('/users', asked, ({ users }) => users)
  return (
    <Page
      title="Users"
      purpose="The people who can sign in, and as what."
      action={
        isAdmin && (
          <CreateButton text="Invite" onClick={() => open((onClose) => <Invite onClose={onClose} />)} />
        )
      }
      filters={<FilterBar search={{ label: 'Search users', hint: 'E-mail' }} filters={FILTERS} />}
    >
      <DataTable
        caption="Users"
        columns={COLUMNS}
        list={list}
        unit="user"
        empty={<NoMatches what="users" filters={FILTERS} />}
        keyOf={({ id }) => id}
        faded={({ state }) => state === 'disabled'}
        {...(isAdmin ? { actions: (user: UserRow) => <RowMenu user={user} open={open} /> } : {})}
      />
      {dialog}
    </Page>
  )
}

interface UserProps {
  readonly user: UserRow
  readonly onClose: () => void
}

function RowMenu({ user, open }: { readonly user: UserRow; readonly open: OpenDialog }) {
  const me = useSession().session.user?.email
  const { email, state, provider } = user
  const show = (Shown: typeof Resend) => () => open((onClose) => <Shown user={user} onClose={onClose} />)
  const link = state === 'invited' || state === 'pending' ? 'Resend invitation' : 'Password link'
  const items = [
    ...(provider === null && state !== 'disabled' ? [{ label: link, choose: show(Resend) }] : []),
    // Another administrator changes the own role.
    ...(email === me
      ? []
      : [
          ...(provider === null ? [] : [{ label: 'Free from identity', choose: show(Unbind) }]),
          { label: 'Change role', choose: show(ChangeRole) },
          {
            label: state === 'disabled' ? 'Enable' : 'Disable',
            danger: state !== 'disabled',
            choose: show(Disable),
          },
        ]),
  ]
  if (items.length === 0) return null
  return <Menu trigger={<IconButton icon="more" label={`Actions for ${email}`} />} items={items} />
}

const KINDS = [
  { value: 'admin', label: 'Administrator: sees and changes everything' },
  { value: 'auditor', label: 'Auditor: sees everything, changes nothing' },
  { value: 'account', label: 'Member of an account' },
] as const

function Invite({ onClose }: { readonly onClose: () => void }) {
  return (
    <FormDialog
      title="Invite"
      description="The person gets a one-time link to set a password. Someone who is here already gets the role."
      verb="Send invitation"
      initial={{ email: '', kind: 'auditor', account: '', accountRole: 'member' }}
      send={async ({ email: text, kind, account, accountRole }) => {
        const email = text.trim()
        const role = GATEWAY.find((each) => each === kind)
        const body =
          role === undefined
            ? { email, account: account.trim(), accountRole: roleIn(accountRole) }
            : { email, role }
        const { link } = await change('POST /users', body)
        if (link !== null) return linkShown({ email, link, onClose })
        report(`${email} has the role.`)
        return undefined
      }}
      onClose={onClose}
    >
      {({ field, values }) => (
        <>
          <Email {...field('email')} />
          <SelectField label="Role" options={KINDS} {...field('kind', 'role')} />
          {values.kind === 'account' ? (
            <>
              <AccountField required {...field('account')} />
              <SelectField label="Role in the account" options={ACCOUNT_ROLES} {...field('accountRole')} />
            </>
          ) : null}
        </>
      )}
    </FormDialog>
  )
}

const GATEWAY = ['admin', 'auditor'] as const

function roleIn(text: string): 'owner' | 'member' | 'viewer' {
  return ACCOUNT_ROLES.find(({ value }) => value === text)?.value ?? 'member'
}

function Resend({ user: { id, email, hasPassword }, onClose }: UserProps) {
  const make = () => change('POST /users/{id}/invite', {}, id)
  return <NewLink {...{ email, make, onClose }} description={LINK_EFFECTS[hasPassword ? 'other' : 'first']} />
}

function Unbind({ user: { id, email, provider }, onClose }: UserProps) {
  return (
    <Confirm
      title={`Free ${email} from the identity?`}
      description={`Signs ${email} out. The next identity of ${provider ?? 'the provider'} that proves the address becomes this user.`}
      verb="Free from identity"
      tone="danger"
      send={async () => {
        await change('POST /users/{id}/unbind', {}, id)
        report(`${email} is bound to no identity.`)
      }}
      onClose={onClose}
    />
  )
}

const ROLE_CHOICES = [
  { value: 'none', label: 'none: only the roles in accounts' },
  ...KINDS.filter(({ value }) => value !== 'account'),
]

function ChangeRole({ user: { id, email, role }, onClose }: UserProps) {
  return (
    <FormDialog
      title={`Role of ${email}`}
      description="In the whole gateway. Roles in accounts and those of groups stay."
      verb="Change role"
      initial={{ role: role ?? 'none' }}
      send={async (values) => {
        const next = GATEWAY.find((each) => each === values.role) ?? null
        await change('PATCH /users/{id}', { role: next }, id)
        report(`${email} ${next === null ? 'has no role in the gateway' : `is ${GATEWAY_ROLES[next]}`}.`)
      }}
      onClose={onClose}
    >
      {({ field }) => <SelectField label="Role" options={ROLE_CHOICES} {...field('role')} />}
    </FormDialog>
  )
}

function Disable({ user: { id, email, state }, onClose }: UserProps) {
  const isOff = state === 'disabled'
  const keys = useResource('/keys', { account: 'all', createdBy: email, limit: 1 }).data?.total ?? 0
  return (
    <Confirm
      title={`${isOff ? 'Enable' : 'Disable'} ${email}?`}
      description={
        isOff
          ? `${email} can sign in again.`
          : `Signs ${email} out within a second. ${
              keys === 0
                ? 'The user made no keys that still work.'
                : `${plural(keys, 'key')} that the user made keep working.`
            }`
      }
      verb={isOff ? 'Enable' : 'Disable'}
      tone={isOff ? 'primary' : 'danger'}
      send={async () => {
        await change('PATCH /users/{id}', { disabled: !isOff }, id)
        report(isOff ? `Enabled. ${email} can sign in again.` : `Disabled. ${email} is signed out.`)
      }}
      onClose={onClose}
    />
  )
}
