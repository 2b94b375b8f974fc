/** The members of an account: their roles, and invitations with one-time links. */
import { useId, useState } from 'react'
import type { Member, MemberReply } from '../../server/schema/schema.js'
import { change } from '../api/endpoints.js'
import { useResource } from '../api/cache.js'
import { CreateButton, IconButton } from '../components/button.js'
import { Confirm, Dialog, FormFoot } from '../components/dialog.js'
import { SelectField, TextField, useSubmit } from '../components/form.js'
import { Menu } from '../components/menu.js'
import { report } from '../components/notices.js'
import { Empty, Failed, ProblemLine, TableSkeleton } from '../components/states.js'
import { CREATED, DataTable, type Column } from '../components/data-table.js'
import { Page } from '../shell/page.js'
import { useRights, useScope } from '../shell/session.js'
import { LinkShown } from './accounts.js'
import { Email } from './sign-in.js'

const ROLES = [
  { role: 'owner', text: 'owner: members, all keys, limits' },
  { role: 'member', text: 'member: own keys, usage' },
  { role: 'viewer', text: 'viewer: usage' },
] as const

const COLUMNS: readonly Column<Member>[] = [
  {
    id: 'email',
    head: 'E-mail',
    cell: ({ email, state }) => (
      <>
        <span className="cell-name">{email}</span>
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

type Link = NonNullable<MemberReply['link']>

/** An open dialog. */
type Act =
  | { readonly act: 'invite' }
  | { readonly act: 'role' | 'link' | 'remove'; readonly member: Member }
  | { readonly act: 'made'; readonly email: string; readonly link: Link }

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
          open={setAct}
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
  readonly open: (act: Act) => void
  readonly onClose: () => void
}

function MemberDialog({ act, open, onClose }: DialogProps) {
  switch (act.act) {
    case 'invite':
      return <RoleForm member={null} open={open} onClose={onClose} />
    case 'role':
      return <RoleForm member={act.member} open={open} onClose={onClose} />
    case 'made':
      return <LinkShown title={`Link for ${act.email}`} link={act.link} onClose={onClose} />
    case 'link':
      return <NewLink member={act.member} open={open} onClose={onClose} />
    case 'remove':
      return <Remove member={act.member} onClose={onClose} />
  }
}

interface MemberProps extends Omit<DialogProps, 'act'> {
  readonly member: Member
}

function RoleForm({ member, open, onClose }: Omit<DialogProps, 'act'> & { member: Member | null }) {
  const [email, setEmail] = useState(member?.email ?? '')
  const [role, setRole] = useState<Member['role']>(member?.role ?? 'member')
  const isOfAll = useScope() === 'all'
  const [account, setAccount] = useState('')
  const { busy, problem, submit } = useSubmit(async () => {
    const query = isOfAll ? { account: account.trim() } : {}
    const { link } = await change('PUT /members/{id}', { role }, email.trim(), query)
    if (link !== null) {
      open({ act: 'made', email: email.trim(), link })
      return
    }
    report(`${email.trim()} has the role ${role}.`)
    onClose()
  })
  return (
    <Dialog title={member === null ? 'Add member' : `Role of ${member.email}`} onClose={onClose}>
      <form className="form" onSubmit={submit}>
        {isOfAll ? <AccountField value={account} onChange={setAccount} /> : null}
        {member === null ? <Email value={email} onChange={setEmail} /> : null}
        <SelectField
          label="Role"
          value={role}
          onChange={(event) => {
            const chosen = ROLES.find((each) => each.role === event.target.value)
            if (chosen !== undefined) setRole(chosen.role)
          }}
        >
          {ROLES.map(({ role: value, text }) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </SelectField>
        <ProblemLine problem={problem} />
        <FormFoot verb={member === null ? 'Add' : 'Change role'} busy={busy} onCancel={onClose} />
      </form>
    </Dialog>
  )
}

interface AccountFieldProps {
  readonly value: string
  readonly onChange: (value: string) => void
}

/** The name of an account; the browser proposes those that the server finds. */
function AccountField({ value, onChange }: AccountFieldProps) {
  const list = useId()
  const { data } = useResource('/accounts', { search: value, sort: 'name', limit: 20 })
  return (
    <>
      <TextField
        label="Account"
        required
        list={list}
        autoComplete="off"
        spellCheck={false}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={list}>
        {data?.accounts.map(({ id, name }) => (
          <option key={id} value={name} />
        ))}
      </datalist>
    </>
  )
}

function NewLink({ member: { email }, open, onClose }: MemberProps) {
  return (
    <Confirm
      title={`Create a new link for ${email}?`}
      consequence="Earlier links stop working. With the link, the user sets a password and signs in."
      verb="Create link"
      tone="primary"
      keepOpen
      act={async () => {
        const { link } = await change('POST /members/{id}/invite', {}, email)
        open({ act: 'made', email, link })
      }}
      onClose={onClose}
    />
  )
}

function Remove({ member: { email }, onClose }: Omit<MemberProps, 'open'>) {
  return (
    <Confirm
      title={`Remove ${email}?`}
      consequence="The user loses every role in this account within 1 second. Keys that the user made keep working."
      verb="Remove"
      tone="danger"
      act={async () => {
        await change('DELETE /members/{id}', undefined, email)
        report(`${email} is no longer a member.`)
      }}
      onClose={onClose}
    />
  )
}
