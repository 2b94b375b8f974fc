/** The members of an account: their roles, and invitations with one-time links. */
import { useId, useState } from 'react'
import type { Member } from '../../server/schema/schema.js'
import { change } from '../api/endpoints.js'
import { useResource } from '../api/cache.js'
import { CreateButton, IconButton } from '../components/button.js'
import { Confirm, FormDialog } from '../components/dialog.js'
import { SelectField, TextField, type Bound } from '../components/form.js'
import { Menu } from '../components/menu.js'
import { report } from '../components/notices.js'
import { Empty, Failed, TableSkeleton } from '../components/states.js'
import { CREATED } from '../components/columns.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Page } from '../shell/page.js'
import { useRights, useScope } from '../shell/session.js'
import { LinkShown } from './accounts.js'
import { Email } from './sign-in.js'

const ROLES = [
  { value: 'owner', label: 'owner: members, all keys, limits' },
  { value: 'member', label: 'member: own keys, usage' },
  { value: 'viewer', label: 'viewer: usage' },
] as const

const COLUMNS: readonly Column<Member>[] = [
  {
    id: 'email',
    head: 'E-mail',
    cell: ({ email, state }) => (
      <>
        <span className="strong">{email}</span>
        {state === 'invited' ? <span className="tag">invited</span> : null}
      </>
    ),
    value: ({ email }) => email,
    text: true,
  },
  {
    id: 'role',
    head: 'Role',
    cell: ({ role, groupRole }) => (groupRole === null ? role : `${role} (group: ${groupRole})`),
    value: ({ role }) => role,
  },
  CREATED,
]

/** An open dialog. */
type Act =
  { readonly act: 'invite' } | { readonly act: 'role' | 'link' | 'remove'; readonly member: Member }

/** The page of members. */
export function MembersPage() {
  const scope = useScope()
  const { changesMembers, isAdmin } = useRights()
  const [act, setAct] = useState<Act | null>(null)
  const enabled = scope !== 'all'
  const { data, problem, reload } = useResource('/members', { account: scope }, { enabled })
  const members = data?.members ?? null
  return (
    <Page
      title="Members"
      purpose="The people who sign in to this account, and what each may do."
      scoped="one"
      action={
        (changesMembers || isAdmin) && (
          <CreateButton text="Add member" onClick={() => setAct({ act: 'invite' })} />
        )
      }
    >
      {scope === 'all' ? (
        <Empty title="Choose an account">
          <p>
            Members are listed for one account at a time.
            {isAdmin ? ' Add a member to any account by its name.' : ''}
          </p>
        </Empty>
      ) : problem !== null && members === null ? (
        <Failed what="The list of members" problem={problem} retry={() => reload()} />
      ) : members === null ? (
        <TableSkeleton />
      ) : members.length === 0 ? (
        <Empty title="No members yet">
          <p>Administrators see this account. Add a member who may use it.</p>
        </Empty>
      ) : (
        <DataTable
          caption="Members"
          columns={COLUMNS}
          rows={members}
          keyOf={({ email }) => email}
          faded={({ state }) => state === 'invited'}
          actions={(member) => (changesMembers ? <RowMenu member={member} open={setAct} /> : null)}
        />
      )}
      {act === null ? null : (
        <MemberDialog
          act={act}
          onClose={() => {
            setAct(null)
            reload()
          }}
        />
      )}
    </Page>
  )
}

interface RowMenuProps {
  readonly member: Member
  readonly open: (act: Act) => void
}

function RowMenu({ member, open }: RowMenuProps) {
  return (
    <Menu
      trigger={<IconButton icon="more" label={`Actions for ${member.email}`} />}
      items={[
        { label: 'Change role', choose: () => open({ act: 'role', member }) },
        { label: 'New link', choose: () => open({ act: 'link', member }) },
        { label: 'Remove', danger: true, choose: () => open({ act: 'remove', member }) },
      ]}
    />
  )
}

interface DialogProps {
  readonly act: Act
  readonly onClose: () => void
}

function MemberDialog({ act, onClose }: DialogProps) {
  switch (act.act) {
    case 'invite':
      return <RoleForm member={null} onClose={onClose} />
    case 'role':
      return <RoleForm member={act.member} onClose={onClose} />
    case 'link':
      return <NewLink member={act.member} onClose={onClose} />
    case 'remove':
      return <Remove member={act.member} onClose={onClose} />
  }
}

interface MemberProps extends Pick<DialogProps, 'onClose'> {
  readonly member: Member
}

interface RoleProps extends Pick<DialogProps, 'onClose'> {
  /** Null: a new member. */
  readonly member: Member | null
}

function RoleForm({ member, onClose }: RoleProps) {
  const isOfAll = useScope() === 'all'
  return (
    <FormDialog
      title={member === null ? 'Add member' : `Role of ${member.email}`}
      verb={member === null ? 'Add' : 'Change role'}
      initial={{ account: '', email: member?.email ?? '', role: member?.role ?? 'member' }}
      send={async ({ account, email, role }) => {
        const query = isOfAll ? { account: account.trim() } : {}
        const { link } = await change('PUT /members/{id}', { role }, email.trim(), query)
        if (link !== null) {
          return <LinkShown title={`Link for ${email.trim()}`} link={link} onClose={onClose} />
        }
        report(`${email.trim()} has the role ${role}.`)
        return undefined
      }}
      onClose={onClose}
    >
      {({ field }) => (
        <>
          {isOfAll ? <AccountField {...field('account')} /> : null}
          {member === null ? <Email {...field('email')} /> : null}
          <SelectField label="Role" options={ROLES} {...field('role')} />
        </>
      )}
    </FormDialog>
  )
}

/** The name of an account; the browser proposes those that the server finds. */
function AccountField(field: Bound) {
  const list = useId()
  const { data } = useResource('/accounts', { search: field.value, sort: 'name', limit: 20 })
  return (
    <>
      <TextField
        label="Account"
        required
        list={list}
        autoComplete="off"
        spellCheck={false}
        {...field}
      />
      <datalist id={list}>
        {data?.accounts.map(({ id, name }) => (
          <option key={id} value={name} />
        ))}
      </datalist>
    </>
  )
}

function NewLink({ member: { email }, onClose }: MemberProps) {
  return (
    <Confirm
      title={`Create a new link for ${email}?`}
      description="Earlier links stop working. With the link, the user sets a password and signs in."
      verb="Create link"
      tone="primary"
      send={async () => {
        const { link } = await change('POST /members/{id}/invite', {}, email)
        return <LinkShown title={`Link for ${email}`} link={link} onClose={onClose} />
      }}
      onClose={onClose}
    />
  )
}

function Remove({ member: { email }, onClose }: MemberProps) {
  return (
    <Confirm
      title={`Remove ${email}?`}
      description="The user loses every role in this account within 1 second. Keys that the user made keep working."
      verb="Remove"
      send={async () => {
        await change('DELETE /members/{id}', undefined, email)
        report(`${email} is no longer a member.`)
      }}
      onClose={onClose}
    />
  )
}
