/** The accounts with their plans and actions, for administrators. */
import { useState } from 'react'
import type { AccountRow } from '../../../server/schema/schema.js'
import { usePages } from '../../api/list-pages.js'
import { Button, CreateButton, IconButton } from '../../components/actions/button.js'
import { Menu } from '../../components/actions/menu.js'
import { More } from '../../components/tables/show-more.js'
import { Search } from '../../components/forms/search-field.js'
import { Empty, Failed, TableSkeleton } from '../../components/states/states.js'
import { Table, type Column } from '../../components/tables/table.js'
import { go, setQuery, useLocation } from '../../routing/location.js'
import { Page } from '../../shell/page.js'
import { useAccount } from '../../shell/session.js'
import { AccountDialog, type AccountAct } from './account-dialogs.js'
import { CREATED, RECENT_USE } from '../../components/tables/recent-columns.js'

const COLUMNS: readonly Column<AccountRow>[] = [
  {
    id: 'email',
    head: 'E-mail',
    cell: ({ email, role, disabled }) => (
      <>
        <span className="cell-name">{email}</span>
        {role === 'admin' ? <span className="tag">administrator</span> : null}
        {disabled ? <span className="tag revoked">disabled</span> : null}
      </>
    ),
    sort: ({ email }) => email,
    className: 'main-cell',
  },
  { id: 'plan', head: 'Plan', cell: ({ plan }) => plan, sort: ({ plan }) => plan, extra: true },
  {
    id: 'keys',
    head: 'Keys',
    cell: ({ liveKeys }) => liveKeys,
    sort: ({ liveKeys }) => liveKeys,
    numeric: true,
    minor: true,
  },
  ...RECENT_USE,
  CREATED,
]

/** Accounts per page; older ones are loaded on demand. */
const PAGE_ACCOUNTS = 100

/** The page of accounts. */
export function AccountsPage() {
  const { query } = useLocation()
  const search = query.get('search') ?? ''
  const [act, setAct] = useState<AccountAct | null>(null)
  const asked = { search, limit: PAGE_ACCOUNTS }
  const pages = usePages('/accounts', asked, { isEmpty: ({ accounts }) => accounts.length === 0 })
  const { replies, problem, reload } = pages
  const accounts = replies?.flatMap((reply) => reply.accounts) ?? null
  return (
    <Page
      title="Accounts"
      purpose="The accounts of this gateway, their plans and their usage."
      action={<CreateButton text="Create account" onClick={() => setAct({ act: 'create' })} />}
      filters={<Search label="Search accounts" value={search} />}
    >
      {problem !== null && accounts === null ? (
        <Failed what="The list of accounts" problem={problem} retry={() => reload()} />
      ) : accounts === null ? (
        <TableSkeleton />
      ) : accounts.length === 0 ? (
        <Empty title="No accounts match this search">
          <p>
            <Button onClick={() => setQuery({ search: null })}>Clear search</Button>
          </p>
        </Empty>
      ) : (
        <>
          <Table
            caption="Accounts"
            columns={COLUMNS}
            rows={accounts}
            keyOf={({ id }) => id}
            faded={({ disabled }) => disabled}
            actions={(account) => <RowMenu account={account} open={setAct} />}
          />
          <More pages={pages} label="Older accounts" />
        </>
      )}
      {act === null ? null : (
        <AccountDialog
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
  readonly account: AccountRow
  readonly open: (act: AccountAct) => void
}

function RowMenu({ account, open }: RowMenuProps) {
  const me = useAccount()
  const isMe = account.id === me.id
  const look = (path: string) => () => go(`${path}?account=${account.id}`)
  return (
    <Menu
      trigger={<IconButton icon="more" label={`Actions for ${account.email}`} />}
      items={[
        { label: 'Usage', choose: look('/usage') },
        { label: 'Keys', choose: look('/keys') },
        { label: 'Change plan', choose: () => open({ act: 'plan', account }) },
        { label: 'Password link', choose: () => open({ act: 'reset', account }) },
        ...(isMe
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
