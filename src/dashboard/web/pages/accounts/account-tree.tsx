/**
 * Accounts as a tree: a row is an account and all below it, and opens into the account itself and those
 * directly below. Each level is loaded when it opens. Right opens a row, Left closes it.
 */
import { useState, type KeyboardEvent, type ReactNode } from 'react'
import type { TreeRow } from '../../../../control/dashboard/schema/schema.js'
import { useResource } from '../../api/use-resource.js'
import { Icon, IconButton } from '../../components/button.js'
import { Meter } from '../../components/limits.js'
import { Menu } from '../../components/menu.js'
import { Count, Money, TwoLines } from '../../components/values.js'
import { dollars, exactDollars, percent } from '../../format/number.js'
import { go, Link } from '../../routing.js'
import { useRights } from '../../shell/session.js'

/** What a row can open. */
interface TreeActions {
  readonly budget: (name: string) => void
  readonly create: (parent: string) => void
}

interface TreeProps extends TreeActions {
  readonly caption: string
  readonly rows: readonly TreeRow[]
  /** Without levels: what a search found, each with its path. */
  readonly isFlat?: boolean
  /** The last row, such as the sum of all. */
  readonly foot?: ReactNode
}

/** The table of the tree. */
export function AccountTree({ caption, rows, isFlat = false, foot, ...actions }: TreeProps) {
  const first = rows.length === 1 && !isFlat ? rows.map(({ id }) => id) : []
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set(first))
  const toggle = (id: string, isOpen: boolean): void => {
    const next = new Set(opened)
    if (isOpen) next.add(id)
    else next.delete(id)
    setOpened(next)
  }
  return (
    <div className="table-frame panel">
      <table className="table tree" role="treegrid" aria-label={caption} onKeyDown={moveInTree}>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col" className="budget-cell">
              This month
            </th>
            <th scope="col" className="numeric minor">
              Forecast
            </th>
            <th scope="col" className="numeric extra">
              Requests
            </th>
            <th scope="col" className="numeric minor">
              Failed
            </th>
            <th scope="col" className="numeric minor">
              Keys
            </th>
            <th scope="col" className="numeric minor">
              Members
            </th>
            <th className="actions">
              <span className="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Branch key={row.id} {...{ row, isFlat, opened, toggle, actions }} level={1} />
          ))}
        </tbody>
        {foot === undefined ? null : <tfoot>{foot}</tfoot>}
      </table>
    </div>
  )
}

interface BranchProps {
  readonly row: TreeRow
  readonly level: number
  readonly isFlat: boolean
  readonly opened: ReadonlySet<string>
  readonly toggle: (id: string, isOpen: boolean) => void
  readonly actions: TreeActions
}

function Branch(props: BranchProps) {
  const { row, level, isFlat, opened, toggle, actions } = props
  const mayOpen = row.children > 0 && !isFlat
  const isOpen = mayOpen && opened.has(row.id)
  return (
    <>
      <tr
        aria-level={level}
        aria-expanded={mayOpen ? isOpen : undefined}
        className={row.disabled ? 'faded' : undefined}
      >
        <td className={`name-cell level-${level}`}>
          {mayOpen ? (
            <button
              type="button"
              className="twist bare"
              aria-label={`${isOpen ? 'Close' : 'Open'} ${row.name}`}
              onClick={() => toggle(row.id, !isOpen)}
            >
              <Icon name={isOpen ? 'down' : 'right'} size={14} />
            </button>
          ) : (
            <span className="twist" />
          )}
          <TwoLines
            first={
              <Link to={`/accounts/${row.name}`} className="strong" title={row.displayName}>
                {row.displayName}
              </Link>
            }
            second={secondLine(row, isFlat)}
          />
        </td>
        <td className="budget-cell">
          <Budget row={row} set={actions.budget} />
        </td>
        <td className="numeric minor">
          {row.forecastNanoUsd === null ? <span className="soft">–</span> : dollars(row.forecastNanoUsd)}
        </td>
        <Figures of={row} />
        <td className="actions">
          <RowMenu row={row} actions={actions} />
        </td>
      </tr>
      {isOpen ? <Below {...props} /> : null}
    </>
  )
}

/** The account alone, and the accounts directly below it. */
function Below(props: BranchProps) {
  const { row, level } = props
  const { data } = useResource('/account-tree', { parent: row.id })
  const itself = row.itself
  return (
    <>
      {itself === null ? null : (
        <tr aria-level={level + 1} className="itself">
          <td className={`name-cell level-${level + 1}`}>
            <span className="twist" />
            <span className="soft">(itself)</span>
          </td>
          <td className="budget-cell">
            <Money nano={itself.costNanoUsd} unpriced={itself.unpricedRequests} />
          </td>
          <td className="numeric minor" />
          <Figures of={itself} />
          <td className="actions" />
        </tr>
      )}
      {data === null ? (
        <tr aria-level={level + 1}>
          <td className={`name-cell level-${level + 1} soft`} colSpan={8}>
            Loading …
          </td>
        </tr>
      ) : (
        data.rows.map((child) => <Branch key={child.id} {...props} row={child} level={level + 1} />)
      )}
    </>
  )
}

/** The cells of the figures. */
export function Figures({
  of,
}: {
  readonly of: Pick<TreeRow, 'requests' | 'failed' | 'liveKeys' | 'members'>
}) {
  const { requests, failed, liveKeys, members } = of
  return (
    <>
      <td className="numeric extra">
        <Count value={requests} unit="requests" />
      </td>
      <td className="numeric minor">
        {requests === 0 ? (
          <span className="soft">–</span>
        ) : (
          <span title={`${failed} of ${requests}`}>{percent(failed / requests)}</span>
        )}
      </td>
      <td className="numeric minor">
        <Count value={liveKeys} unit="keys" />
      </td>
      <td className="numeric minor">
        <Count value={members} unit="members" />
      </td>
    </>
  )
}

function secondLine({ name, displayName, above, labels, disabled }: TreeRow, isFlat: boolean): string {
  const parts = [
    ...(disabled ? ['disabled'] : []),
    ...(isFlat && above.length > 0 ? [`${above.join(' › ')} › ${name}`] : displayName === name ? [] : [name]),
    ...Object.entries(labels).map(([label, value]) => `${label}=${value}`),
  ]
  return parts.join(' · ')
}

/** Administrators limit every account, owners those below others, auditors none. */
function useMayLimit({ above }: TreeRow): boolean {
  const { isAdmin, readsGateway } = useRights()
  return isAdmin || (!readsGateway && above.length > 0)
}

interface BudgetProps {
  readonly row: TreeRow
  readonly set: (name: string) => void
}

/** The cost against the budget of the month, or the way to set one. */
function Budget({ row, set }: BudgetProps) {
  const mayLimit = useMayLimit(row)
  const { name, costNanoUsd: spent, budgetNanoUsd: budget, unpricedRequests } = row
  if (budget === null) {
    return (
      <span className="row line gap-8">
        <Money nano={spent} unpriced={unpricedRequests} />
        <span className="soft small">no budget</span>
        {mayLimit ? (
          <button type="button" className="link small" onClick={() => set(name)}>
            Set<span className="unseen"> the budget of {name}</span>
          </button>
        ) : null}
      </span>
    )
  }
  return <BudgetBar name={name} spent={spent} budget={budget} />
}

interface BarProps {
  readonly name: string
  readonly spent: number
  readonly budget: number
}

/** `$412 of $500` over a bar. */
export function BudgetBar({ name, spent, budget }: BarProps) {
  return (
    <Meter
      label={`Budget of ${name}`}
      used={spent}
      limit={budget}
      title={`${exactDollars(spent)} of ${exactDollars(budget)}`}
      above={<span className="limit-amount">{`${dollars(spent)} of ${dollars(budget)}`}</span>}
    />
  )
}

function RowMenu({ row, actions }: { readonly row: TreeRow; readonly actions: TreeActions }) {
  const { isAdmin } = useRights()
  const mayLimit = useMayLimit(row)
  const { name } = row
  const look = (path: string) => () => go(`${path}?account=${name}`)
  return (
    <Menu
      trigger={<IconButton icon="more" label={`Actions for ${name}`} />}
      items={[
        { label: 'Open', choose: () => go(`/accounts/${name}`) },
        ...(mayLimit ? [{ label: 'Set budget', choose: () => actions.budget(name) }] : []),
        ...(isAdmin ? [{ label: 'New account below', choose: () => actions.create(name) }] : []),
        { label: 'Usage', choose: look('/usage') },
        { label: 'Requests', choose: look('/requests') },
        { label: 'Keys', choose: look('/keys') },
        { label: 'Statement', choose: look('/statement') },
      ]}
    />
  )
}

/** Right opens the row of the focus, Left closes it; Up and Down go to the next row. */
function moveInTree(event: KeyboardEvent<HTMLTableElement>): void {
  const target = event.target instanceof HTMLElement ? event.target : null
  const row = target?.closest('tr') ?? null
  if (row === null || target?.closest('[role="menu"]') !== null) return
  const { key } = event
  const expanded = row.getAttribute('aria-expanded')
  if ((key === 'ArrowRight' && expanded === 'false') || (key === 'ArrowLeft' && expanded === 'true')) {
    event.preventDefault()
    row.querySelector<HTMLElement>('.twist')?.click()
    return
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[key]
  if (step === undefined) return
  const rows = [...event.currentTarget.querySelectorAll('tbody tr')]
  const place = rows.indexOf(row)
  for (let at = place + step; at >= 0 && at < rows.length; at += step) {
    const link = rows[at]?.querySelector<HTMLElement>('a[href]') ?? null
    if (link === null) continue
    event.preventDefault()
    link.focus()
    return
  }
}
