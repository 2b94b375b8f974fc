/** The accounts as a tree with the figures of the month, for administrators, auditors and owners. */
import { useState } from 'react'
import { useResource } from '../../api/use-resource.js'
import { CreateButton } from '../../components/button.js'
import { useDialog } from '../../components/dialog.js'
import { Search } from '../../components/form.js'
import { Empty, Loaded, TableSkeleton } from '../../components/loading-states.js'
import { Money } from '../../components/values.js'
import { plural } from '../../format/number.js'
import { monthName } from '../../format/time.js'
import { useLocation } from '../../routing.js'
import { Page } from '../../shell/page.js'
import { useRights } from '../../shell/session.js'
import { AccountLimits, CreateAccount } from './account-dialogs.js'
import { AccountTree, Figures } from './account-tree.js'

const EVERY_MS = 30_000

/** The list of accounts. */
export function AccountsPage() {
  const { query } = useLocation()
  const { isAdmin, readsGateway } = useRights()
  const [dialog, open] = useDialog()
  const [budgetOf, setBudgetOf] = useState<string | null>(null)
  const search = query.get('search') ?? ''
  const resource = useResource('/account-tree', { search }, { everyMs: EVERY_MS })
  const create = (parent?: string) =>
    open((onClose) => <CreateAccount parent={parent ?? ''} onClose={onClose} />)
  return (
    <Page
      title="Accounts"
      purpose={`Teams, apps and customers. A row is an account and all below it${
        resource.data === null ? '' : `, in ${monthName(resource.data.fromMs)} (UTC)`
      }.`}
      action={isAdmin && <CreateButton text="Create account" onClick={() => create()} />}
      filters={<Search label="Search accounts" hint="Name, label or member" value={search} />}
    >
      <Loaded resource={resource} what="The accounts" skeleton={<TableSkeleton />}>
        {({ rows, total, sum }) =>
          rows.length === 0 ? (
            <Empty title={search === '' ? 'No accounts yet' : 'Nothing matches'}>
              <p>
                {search === ''
                  ? 'An account is a team, an app or a customer with keys of its own.'
                  : 'No account has this in its name, its labels or the address of a member.'}
              </p>
            </Empty>
          ) : (
            <>
              <AccountTree
                key={search}
                caption="Accounts"
                rows={rows}
                isFlat={search !== ''}
                budget={setBudgetOf}
                create={create}
                foot={
                  search === '' ? (
                    <tr>
                      <td className="strong">{readsGateway ? 'All accounts' : 'All of yours'}</td>
                      <td className="budget-cell strong">
                        <Money nano={sum.costNanoUsd} unpriced={sum.unpricedRequests} />
                      </td>
                      <td className="numeric minor" />
                      <Figures of={sum} />
                      <td className="actions" />
                    </tr>
                  ) : undefined
                }
              />
              {total > rows.length ? (
                <p className="pager soft">
                  The first {rows.length} of {plural(total, 'account')}. Search for the others.
                </p>
              ) : null}
            </>
          )
        }
      </Loaded>
      {dialog}
      {budgetOf === null ? null : <AccountLimits name={budgetOf} onClose={() => setBudgetOf(null)} />}
    </Page>
  )
}
