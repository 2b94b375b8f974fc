/** The members of an account: their roles, and invitations with one-time links. */
import { useEffect } from 'react'
import type { Member } from '../../../control/dashboard/schema/schema.js'
import { change } from '../api/endpoints.js'
import { useResource } from '../api/use-resource.js'
import { IconButton } from '../components/button.js'
import { Confirm, FormDialog, useDialog, type OpenDialog } from '../components/dialog.js'
import { SelectField } from '../components/form.js'
import { Menu } from '../components/menu.js'
import { report } from '../components/notices.js'
import { Empty, Loaded, TableSkeleton } from '../components/loading-states.js'
import { CREATED } from '../components/columns.js'
import { DataTable, type Column } from '../components/data-table.js'
import { go } from '../routing.js'
import { useRights, useScope, useSession } from '../shell/session.js'
import { LINK_EFFECTS, linkShown, NewLink } from './accounts/account-dialogs.js'
import { Email } from './sign-in.js'

/** The roles in an account, as options. */
export const ROLES = [
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
        {state === 'active' ? null : <span className="tag">{state}</span>}
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

/** The former page of members leads to the tab of the account. */
export function MembersPage() {
  const scope = useScope()
  const { account, accounts } = useSession().session
  const wanted = scope ?? account?.id
  const own = accounts.find(({ id }) => id === wanted)?.name ?? wanted
  useEffect(() => {
    go(own === undefined || own === 'all' ? '/accounts' : `/accounts/${own}?tab=members`, { replace: true })
  }, [own])
  return null
}

/** The members of an account. */
export function MemberList({ account }: { readonly account: string }) {
  const { changesMembers } = useRights()
  const [dialog, open] = useDialog()
  const resource = useResource('/members', { account })
  return (
    <>
      <Loaded resource={resource} what="The list of members" skeleton={<TableSkeleton />}>
        {({ members }) =>
          members.length === 0 ? (
            <Empty title="No members yet">
              <p>Administrators see this account. Add a member who may use it.</p>
            </Empty>
          ) : (
            <DataTable
              caption="Members"
              columns={COLUMNS}
              rows={members}
              keyOf={({ email }) => email}
              faded={({ state }) => state !== 'active'}
              actions={(member) => (changesMembers ? <RowMenu member={member} open={open} /> : null)}
            />
          )
        }
      </Loaded>
      {dialog}
    </>
  )
}

/** Gives a person a role in the account that the page shows. */
export function AddMember({ onClose }: { readonly onClose: () => void }) {
  return <RoleForm member={null} onClose={onClose} />
}

function RowMenu({ member, open }: { readonly member: Member; readonly open: OpenDialog }) {
  const show = (Shown: typeof Resend) => () => open((onClose) => <Shown member={member} onClose={onClose} />)
  return (
    <Menu
      trigger={<IconButton icon="more" label={`Actions for ${member.email}`} />}
      items={[
        { label: 'Change role', choose: show(RoleForm) },
        { label: 'New link', choose: show(Resend) },
        { label: 'Remove', danger: true, choose: show(Remove) },
      ]}
    />
  )
}

interface MemberProps {
  readonly member: Member
  readonly onClose: () => void
}

interface RoleProps extends Omit<MemberProps, 'member'> {
  /** Null: a new member. */
  readonly member: Member | null
}

function RoleForm({ member, onClose }: RoleProps) {
  return (
    <FormDialog
      title={member === null ? 'Add member' : `Role of ${member.email}`}
      verb={member === null ? 'Add' : 'Change role'}
      initial={{ email: member?.email ?? '', role: member?.role ?? 'member' }}
      send={async ({ email, role }) => {
        const { link } = await change('PUT /members/{id}', { role }, email.trim())
        if (link !== null) {
          return linkShown({ email: email.trim(), link, onClose })
        }
        report(`${email.trim()} has the role ${role}.`)
        return undefined
      }}
      onClose={onClose}
    >
      {({ field }) => (
        <>
          {member === null ? <Email {...field('email')} /> : null}
          <SelectField label="Role" options={ROLES} {...field('role')} />
        </>
      )}
    </FormDialog>
  )
}

function Resend({ member: { email }, onClose }: MemberProps) {
  const make = () => change('POST /members/{id}/invite', {}, email)
  return <NewLink {...{ email, make, onClose }} description={LINK_EFFECTS.first} />
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
