/** The accounts with their plans and actions, for administrators. */
import type { ReactElement } from 'react'
import type { AccountRow, CreatedAccountReply, PlanName } from '../../server/schema/schema.js'
import { change, read } from '../api/endpoints.js'
import { useList, useResource } from '../api/use-resource.js'
import { CreateButton, IconButton } from '../components/button.js'
import { Menu } from '../components/menu.js'
import { Confirm, FormDialog, ShownOnce, useDialog, type OpenDialog } from '../components/dialog.js'
import { FilterBar, NoMatches, type ListFilter } from '../components/filter-bar.js'
import { SelectField, type Option } from '../components/form.js'
import { report } from '../components/notices.js'
import { counts, CREATED, names, RECENT_USE } from '../components/columns.js'
import { DataTable, type Column } from '../components/data-table.js'
import { fullTime } from '../format/time.js'
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
        <Link to={`/keys?account=${id}`} className="cut strong" title={name}>
          {name}
        </Link>
        {role === 'admin' ? <span className="tag">administrator</span> : null}
        {disabled ? <span className="tag revoked">disabled</span> : null}
      </>
    ),
    sort: 'name',
    text: true,
  },
  names('email', 'E-mail', ({ name, email }) => (email === name ? null : email), { extra: true }),
  names('parent', 'Below', ({ parent }) => parent ?? '', { minor: true }),
  { id: 'plan', head: 'Plan', cell: ({ plan }) => plan, sort: 'plan', extra: true },
  counts('liveKeys', 'Keys', ({ liveKeys }) => liveKeys, { minor: true }),
  ...RECENT_USE,
  CREATED,
]

const PAGE_ACCOUNTS = 50

export function AccountsPage() {
  const { query } = useLocation()
  const [dialog, open] = useDialog()
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
  const list = useList('/accounts', { ...asked, limit: PAGE_ACCOUNTS }, ({ accounts }) => accounts, options)
  return (
    <Page
      title="Accounts"
      purpose="The accounts of this gateway, their plans and their usage."
      action={
        isAdmin && (
          <CreateButton
            text="Create account"
            onClick={() => open((onClose) => <Create onClose={onClose} />)}
          />
        )
      }
      filters={
        <FilterBar search={{ label: 'Search accounts', hint: 'Name, e-mail or id' }} filters={filters} />
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
        actions={(account) => <RowMenu account={account} open={open} />}
      />
      {dialog}
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

function RowMenu({ account, open }: { readonly account: AccountRow; readonly open: OpenDialog }) {
  const me = useAccount()
  const { isAdmin } = useRights()
  const { disabled } = account
  const look = (path: string) => () => go(`${path}?account=${account.id}`)
  const show = (Shown: typeof Reset) => () => open((onClose) => <Shown account={account} onClose={onClose} />)
  const changes = [
    { label: 'Change plan', choose: show(ChangePlan) },
    { label: 'Password link', choose: show(Reset) },
    { label: disabled ? 'Enable' : 'Disable', danger: !disabled, choose: show(Switch) },
  ]
  return (
    <Menu
      trigger={<IconButton icon="more" label={`Actions for ${account.email}`} />}
      items={[
        { label: 'Usage', choose: look('/usage') },
        { label: 'Keys', choose: look('/keys') },
        { label: 'Members', choose: look('/members') },
        // An administrator cannot disable the own account.
        ...changes.slice(0, isAdmin ? (account.id === me.id ? 2 : 3) : 0),
      ]}
    />
  )
}

interface LinkProps {
  readonly email: string
  readonly link: CreatedAccountReply['link']
  readonly onClose: () => void
}

/** A one-time link, shown once; only a notice if the address got it by mail. */
export function linkShown({ email, link, onClose }: LinkProps): ReactElement | undefined {
  const { url, expiresAtMs } = link
  if (url === null) {
    report(`${email} gets a link by mail.`)
    return undefined
  }
  return (
    <ShownOnce
      title={`Link for ${email}`}
      description={`Send this link to the person. It sets a password, works once and expires ${fullTime(expiresAtMs)}. A person who has a password here enters it, or signs in. You will not see the link again.`}
      what="link"
      secret={url}
      onClose={onClose}
    />
  )
}

function usePlans(): readonly { value: PlanName; label: string }[] {
  const plans = useResource('/plans').data?.plans ?? []
  return plans.map(({ name, priceUsd, maxKeys }) => ({
    value: name,
    label: `${name}, $${priceUsd} a month, ${maxKeys === null ? 'unlimited' : maxKeys} keys`,
  }))
}

const ROLES = [
  { value: 'owner', label: 'owner of this account' },
  { value: 'admin', label: 'administrator' },
]

function Create({ onClose }: { readonly onClose: () => void }) {
  const plans = usePlans()
  // As on the server: `starter`, else the first plan of the configuration.
  const usual = (plans.find(({ value }) => value === 'starter') ?? plans[0])?.value ?? ''
  return (
    <FormDialog
      title="Create account"
      verb="Create"
      initial={{ email: '', plan: '', role: 'owner' }}
      send={async ({ email, plan, role }) => {
        const body = {
          email,
          plan: plan || usual,
          role: role === 'admin' ? 'admin' : 'owner',
        } as const
        const { account, link } = await change('POST /accounts', body)
        return linkShown({ email: account.email, link, onClose })
      }}
      onClose={onClose}
    >
      {({ field, values }) => (
        <>
          <Email {...field('email')} />
          <SelectField label="Plan" options={plans} {...field('plan')} value={values.plan || usual} />
          <SelectField
            label="Role"
            hint="An administrator sees and changes all accounts."
            options={ROLES}
            {...field('role')}
          />
        </>
      )}
    </FormDialog>
  )
}

interface AccountProps {
  readonly account: AccountRow
  readonly onClose: () => void
}

function ChangePlan({ account: { id, email, plan, liveKeys }, onClose }: AccountProps) {
  const plans = usePlans()
  const { refresh } = useSession()
  return (
    <FormDialog
      title={`Plan of ${email}`}
      description={`The account has ${liveKeys} keys. A smaller plan keeps them, and allows no new ones.`}
      verb="Change plan"
      initial={{ plan }}
      send={async (chosen) => {
        await change('PATCH /accounts/{id}', chosen, id)
        await refresh()
        report(`${email} has the plan ${chosen.plan}.`)
      }}
      onClose={onClose}
    >
      {({ field }) => <SelectField label="Plan" options={plans} {...field('plan')} />}
    </FormDialog>
  )
}

function Reset({ account: { id, email }, onClose }: AccountProps) {
  return (
    <Confirm
      title={`Create a password link for ${email}?`}
      description="Earlier links stop working. The password does not change until the new link is used."
      verb="Create link"
      tone="primary"
      send={async () => {
        const { link } = await change('POST /accounts/{id}/reset', {}, id)
        return linkShown({ email, link, onClose })
      }}
      onClose={onClose}
    />
  )
}

function Switch({ account: { id, email, disabled, liveKeys }, onClose }: AccountProps) {
  return (
    <Confirm
      title={`${disabled ? 'Enable' : 'Disable'} ${email}?`}
      description={
        disabled
          ? `The account holder can sign in again, and the ${liveKeys} keys work again.`
          : `Requests with the ${liveKeys} keys fail within 1 second, and the account holder is signed out. The account can be enabled again.`
      }
      verb={disabled ? 'Enable' : 'Disable'}
      tone={disabled ? 'primary' : 'danger'}
      send={async () => {
        await change('PATCH /accounts/{id}', { disabled: !disabled }, id)
        report(
          disabled ? `Enabled. ${email} works again.` : `Disabled. ${email} and its keys stopped working.`,
        )
      }}
      onClose={onClose}
    />
  )
}
