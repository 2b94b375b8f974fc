/** The accounts with their plans and actions, for administrators. */
import { useState } from 'react'
import type { AccountRow, CreatedAccountReply, PlanName } from '../../server/schema/schema.js'
import { change, read } from '../api/endpoints.js'
import { useList, useResource } from '../api/cache.js'
import { CreateButton, IconButton } from '../components/button.js'
import { Menu } from '../components/menu.js'
import { CopyButton } from '../components/copy-button.js'
import { FormFoot, SavedFoot, Confirm, Dialog } from '../components/dialog.js'
import { FilterBar, NoMatches, type ListFilter } from '../components/filter-bar.js'
import { SelectField, useSubmit, type Option } from '../components/form.js'
import { report } from '../components/notices.js'
import { ProblemLine } from '../components/states.js'
import { CREATED, DataTable, RECENT_USE, type Column } from '../components/data-table.js'
import { fullTime } from '../format/time.js'
import { Absent, Name } from '../components/values.js'
import { go, Link, useLocation } from '../routing.js'
import { Page } from '../shell/page.js'
import { useAccount, useRights, useSession } from '../shell/session.js'
import { Email } from './sign-in.js'

const COLUMNS: readonly Column<AccountRow>[] = [
  {
    id: 'name',
    head: 'Name',
    cell: ({ id, name, role, disabled }) => (
      <>
        <Link to={`/keys?account=${id}`} className="cut cell-name" title={name}>
          {name}
        </Link>
        {role === 'admin' ? <span className="tag">administrator</span> : null}
        {disabled ? <span className="tag revoked">disabled</span> : null}
      </>
    ),
    sort: 'name',
    text: true,
  },
  {
    id: 'email',
    head: 'E-mail',
    cell: ({ name, email }) => (email === name ? <Absent /> : <Name text={email} />),
    sort: 'email',
    text: true,
    extra: true,
  },
  {
    id: 'parent',
    head: 'Below',
    cell: ({ parent }) => (parent === null ? '' : <Name text={parent} />),
    sort: 'parent',
    text: true,
    minor: true,
  },
  { id: 'plan', head: 'Plan', cell: ({ plan }) => plan, sort: 'plan', extra: true },
  {
    id: 'keys',
    head: 'Keys',
    cell: ({ liveKeys }) => liveKeys,
    sort: 'liveKeys',
    numeric: true,
    minor: true,
  },
  ...RECENT_USE,
  CREATED,
]

const PAGE_ACCOUNTS = 50

/** The page of accounts. */
export function AccountsPage() {
  const { query } = useLocation()
  const [act, setAct] = useState<AccountAct | null>(null)
  const { isAdmin } = useRights()
  const filters: readonly ListFilter[] = [
    { name: 'plan', label: 'Plan', options: usePlans() },
    { name: 'state', label: 'State', options: STATES },
    { name: 'parent', label: 'Below', options: [], find: accountsLike, isFree: true },
  ]
  const asked = Object.fromEntries(
    ['search', ...filters.map(({ name }) => name)].map((name) => [name, query.get(name)]),
  )
  const options = { sortable: true, usualSort: '-createdAt' }
  const list = useList(
    '/accounts',
    { ...asked, limit: PAGE_ACCOUNTS },
    ({ accounts }) => accounts,
    options,
  )
  return (
    <Page
      title="Accounts"
      purpose="The accounts of this gateway, their plans and their usage."
      action={
        isAdmin && <CreateButton text="Create account" onClick={() => setAct({ act: 'create' })} />
      }
      filters={
        <FilterBar
          search={{ label: 'Search accounts', hint: 'Name, e-mail or id' }}
          filters={filters}
        />
      }
    >
      <DataTable
        caption="Accounts"
        columns={COLUMNS}
        list={list}
        unit="account"
        empty={<NoMatches what="accounts" filters={filters} />}
        keyOf={({ id }) => id}
        faded={({ disabled }) => disabled}
        actions={(account) => <RowMenu account={account} open={setAct} />}
      />
      {act === null ? null : <AccountDialog act={act} onClose={() => setAct(null)} />}
    </Page>
  )
}

const STATES = [
  { value: 'active', label: 'active' },
  { value: 'disabled', label: 'disabled' },
]

async function accountsLike(search: string): Promise<readonly Option[]> {
  const { accounts } = await read('/accounts', { search, sort: 'name', limit: 50 })
  return accounts.map(({ name }) => ({ value: name, label: name }))
}

interface RowMenuProps {
  readonly account: AccountRow
  readonly open: (act: AccountAct) => void
}

function RowMenu({ account, open }: RowMenuProps) {
  const me = useAccount()
  const { isAdmin } = useRights()
  const isMe = account.id === me.id
  const look = (path: string) => () => go(`${path}?account=${account.id}`)
  return (
    <Menu
      trigger={<IconButton icon="more" label={`Actions for ${account.email}`} />}
      items={[
        { label: 'Usage', choose: look('/usage') },
        { label: 'Keys', choose: look('/keys') },
        { label: 'Members', choose: look('/members') },
        ...(isAdmin
          ? [
              { label: 'Change plan', choose: () => open({ act: 'plan', account }) },
              { label: 'Password link', choose: () => open({ act: 'reset', account }) },
            ]
          : []),
        ...(isMe || !isAdmin
          ? []
          : [
              account.disabled
                ? { label: 'Enable', choose: () => open({ act: 'enable', account }) }
                : {
                    label: 'Disable',
                    danger: true,
                    choose: () => open({ act: 'disable', account }),
                  },
            ]),
      ]}
    />
  )
}

/** An open dialog and its account. */
type AccountAct =
  | { readonly act: 'create' }
  | { readonly act: 'plan' | 'reset' | 'disable' | 'enable'; readonly account: AccountRow }

type OneTimeLink = CreatedAccountReply['link']

interface DialogProps {
  readonly act: AccountAct
  readonly onClose: () => void
}

/** The dialog of an action. */
function AccountDialog({ act, onClose }: DialogProps) {
  switch (act.act) {
    case 'create':
      return <Create onClose={onClose} />
    case 'plan':
      return <ChangePlan account={act.account} onClose={onClose} />
    case 'reset':
      return <Reset account={act.account} onClose={onClose} />
    case 'disable':
    case 'enable':
      return <Switch account={act.account} onClose={onClose} />
  }
}

interface LinkProps {
  readonly title: string
  readonly link: OneTimeLink
  readonly onClose: () => void
}

/** A one-time link, shown once. */
export function LinkShown({ title, link, onClose }: LinkProps) {
  return (
    <Dialog
      title={title}
      description={`Send this link to the account holder. It sets a password, works once and expires ${fullTime(link.expiresAtMs)}. You will not see it again.`}
      closable={false}
      wide
      onClose={onClose}
    >
      <div className="secret">
        <code className="secret-text">{link.url}</code>
        <CopyButton text={link.url} what="link" label />
      </div>
      <SavedFoot onClose={onClose} />
    </Dialog>
  )
}

function usePlans(): readonly { value: PlanName; label: string }[] {
  const plans = useResource('/plans').data?.plans ?? []
  return plans.map(({ name, priceUsd, maxKeys }) => ({
    value: name,
    label: `${name}, $${priceUsd} a month, ${maxKeys === null ? 'unlimited' : maxKeys} keys`,
  }))
}

function Create({ onClose }: { readonly onClose: () => void }) {
  const plans = usePlans()
  const [made, setMade] = useState<CreatedAccountReply | null>(null)
  const [email, setEmail] = useState('')
  const [chosenPlan, setPlan] = useState<PlanName | null>(null)
  // As on the server: `starter`, else the first plan of the configuration.
  const plan =
    chosenPlan ?? (plans.find(({ value }) => value === 'starter') ?? plans[0])?.value ?? ''
  const [role, setRole] = useState('owner')
  const { busy, problem, submit } = useSubmit(async () => {
    const body = { email, plan, role: role === 'admin' ? 'admin' : 'owner' } as const
    setMade(await change('POST /accounts', body))
  })
  if (made !== null) {
    return <LinkShown title={`Account ${made.account.email}`} link={made.link} onClose={onClose} />
  }
  return (
    <Dialog title="Create account" onClose={onClose}>
      <form className="form" onSubmit={submit}>
        <Email value={email} onChange={setEmail} />
        <SelectField label="Plan" value={plan} onChange={(event) => setPlan(event.target.value)}>
          {plans.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </SelectField>
        <SelectField
          label="Role"
          hint="An administrator sees and changes all accounts."
          value={role}
          onChange={(event) => setRole(event.target.value)}
        >
          <option value="owner">owner of this account</option>
          <option value="admin">administrator</option>
        </SelectField>
        <ProblemLine problem={problem} />
        <FormFoot verb="Create" busy={busy} onCancel={onClose} />
      </form>
    </Dialog>
  )
}

interface AccountProps {
  readonly account: AccountRow
  readonly onClose: () => void
}

function ChangePlan({ account, onClose }: AccountProps) {
  const plans = usePlans()
  const { refresh } = useSession()
  const [plan, setPlan] = useState<PlanName>(account.plan)
  const { busy, problem, submit } = useSubmit(async () => {
    await change('PATCH /accounts/{id}', { plan }, account.id)
    await refresh()
    report(`${account.email} has the plan ${plan}.`)
    onClose()
  })
  return (
    <Dialog
      title={`Plan of ${account.email}`}
      description={`The account has ${account.liveKeys} keys. A smaller plan keeps them, and allows no new ones.`}
      onClose={onClose}
    >
      <form className="form" onSubmit={submit}>
        <SelectField
          label="Plan"
          value={plan}
          onChange={(event) => {
            const chosen = plans.find(({ value }) => value === event.target.value)
            if (chosen !== undefined) setPlan(chosen.value)
          }}
        >
          {plans.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </SelectField>
        <ProblemLine problem={problem} />
        <FormFoot verb="Change plan" busy={busy} onCancel={onClose} />
      </form>
    </Dialog>
  )
}

function Reset({ account, onClose }: AccountProps) {
  const [link, setLink] = useState<OneTimeLink | null>(null)
  if (link !== null) {
    return <LinkShown title={`Link for ${account.email}`} link={link} onClose={onClose} />
  }
  return (
    <Confirm
      title={`Create a password link for ${account.email}?`}
      consequence="Earlier links stop working. The password does not change until the new link is used."
      verb="Create link"
      tone="primary"
      keepOpen
      act={async () => setLink((await change('POST /accounts/{id}/reset', {}, account.id)).link)}
      onClose={onClose}
    />
  )
}

function Switch({ account, onClose }: AccountProps) {
  const { id, email, disabled, liveKeys } = account
  return (
    <Confirm
      title={`${disabled ? 'Enable' : 'Disable'} ${email}?`}
      consequence={
        disabled
          ? `The account holder can sign in again, and the ${liveKeys} keys work again.`
          : `Requests with the ${liveKeys} keys fail within 1 second, and the account holder is signed out. The account can be enabled again.`
      }
      verb={disabled ? 'Enable' : 'Disable'}
      tone={disabled ? 'primary' : 'danger'}
      act={async () => {
        await change('PATCH /accounts/{id}', { disabled: !disabled }, id)
        report(
          disabled
            ? `Enabled. ${email} works again.`
            : `Disabled. ${email} and its keys stopped working.`,
        )
      }}
      onClose={onClose}
    />
  )
}
