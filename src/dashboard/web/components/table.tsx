/**
 * The table component of all lists: sticky head, sorting, right-aligned numbers, arrow keys to move and Enter
 * to open.
 */
import { useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import type { Pages } from '../api/load-resource.js'
import { count, dollars, duration, exactCount, exactDollars, plural } from '../format/number.js'
import { ago, date, fullTime } from '../format/time.js'
import { useNow } from '../shell/clock.js'
import { Icon, Button } from './button.js'
import { ProblemLine } from './states.js'

/** A column: its head, its cell and its sort value. */
export interface Column<Row> {
  readonly id: string
  readonly head: string
  readonly cell: (row: Row) => ReactNode
  readonly sort?: (row: Row) => number | string
  readonly numeric?: boolean
  /** Hidden on medium screens. */
  readonly minor?: boolean
  /** Hidden on phones. */
  readonly extra?: boolean
  readonly className?: string
}

interface TableProps<Row> {
  /** The caption for screen readers. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  /** Opens a row on click or Enter. */
  readonly open?: (row: Row) => void
  readonly nameOf?: (row: Row) => string
  /** Actions at the end of a row. */
  readonly actions?: (row: Row) => ReactNode
  readonly faded?: (row: Row) => boolean
  readonly initialSort?: { readonly id: string; readonly down: boolean }
}

interface Sort {
  readonly id: string
  readonly down: boolean
}

/** A table of rows. */
export function Table<Row>(props: TableProps<Row>) {
  const { caption, columns, keyOf, actions } = props
  const [sort, setSort] = useState<Sort | null>(props.initialSort ?? null)
  const rows = useMemo(() => sorted(props.rows, columns, sort), [props.rows, columns, sort])
  const body = useRef<HTMLTableSectionElement>(null)
  // On a narrow screen the frame scrolls. Without a focusable element in it, the frame itself must be
  // focusable.
  const isPlain = props.open === undefined && actions === undefined
  const frame = isPlain ? { tabIndex: 0, role: 'region', 'aria-label': caption } : {}
  return (
    <div className="table-frame" {...frame}>
      <table className={props.open === undefined ? 'table' : 'table opens'}>
        <caption className="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <Head key={column.id} column={column} sort={sort} choose={setSort} />
            ))}
            {actions === undefined ? null : (
              <th className="actions">
                <span className="unseen">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody ref={body} onKeyDownCapture={(event) => move(event, body.current)}>
          {rows.map((row) => (
            <Row key={keyOf(row)} row={row} {...props} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function sorted<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  sort: Sort | null,
): readonly Row[] {
  const by = columns.find(({ id }) => id === sort?.id)?.sort
  if (by === undefined || sort === null) return rows
  const sign = sort.down ? -1 : 1
  return [...rows].sort((a, b) => {
    const [x, y] = [by(a), by(b)]
    return x === y ? 0 : x < y ? -sign : sign
  })
}

interface HeadProps<Row> {
  readonly column: Column<Row>
  readonly sort: Sort | null
  readonly choose: (sort: Sort) => void
}

function Head<Row>({ column, sort, choose }: HeadProps<Row>) {
  const name = classOf(column)
  if (column.sort === undefined) {
    return (
      <th scope="col" className={name}>
        {column.head}
      </th>
    )
  }
  const mine = sort?.id === column.id ? sort : null
  const order = mine === null ? undefined : mine.down ? 'descending' : 'ascending'
  return (
    <th scope="col" className={name} aria-sort={order}>
      <button
        type="button"
        className="sort"
        onClick={() => choose({ id: column.id, down: mine === null ? true : !mine.down })}
      >
        {column.head}
        <span
          className={mine === null ? 'sort-mark' : mine.down ? 'sort-mark on' : 'sort-mark on up'}
        >
          <Icon name="down" size={12} />
        </span>
      </button>
    </th>
  )
}

function classOf<Row>({ numeric, minor, extra, className }: Column<Row>): string {
  const extraClass = extra === true ? 'extra' : ''
  const minorClass = minor === true ? 'minor' : ''
  return [numeric === true ? 'numeric' : '', minorClass, extraClass, className ?? '']
    .filter((part) => part !== '')
    .join(' ')
}

function Row<Row>({ row, columns, open, nameOf, actions, faded }: TableProps<Row> & { row: Row }) {
  return (
    <tr
      className={faded?.(row) === true ? 'faded' : undefined}
      onClick={open === undefined ? undefined : () => open(row)}
    >
      {columns.map((column, index) => (
        <td key={column.id} className={classOf(column)}>
          {index === 0 && open !== undefined ? (
            <button
              type="button"
              className="row-open"
              onClick={(event) => {
                event.stopPropagation()
                open(row)
              }}
            >
              {column.cell(row)}
              {nameOf === undefined ? null : <span className="unseen">, open {nameOf(row)}</span>}
            </button>
          ) : (
            column.cell(row)
          )}
        </td>
      ))}
      {actions === undefined ? null : (
        <td className="actions" onClick={(event) => event.stopPropagation()}>
          {actions(row)}
        </td>
      )}
    </tr>
  )
}

/** Up and Down move to the same control of the next row; Home and End move to the first and last row. */
function move(event: KeyboardEvent<HTMLElement>, body: HTMLElement | null): void {
  const keys = ['ArrowUp', 'ArrowDown', 'Home', 'End']
  const own = event.target instanceof HTMLElement ? event.target.closest('tr') : null
  if (body === null || own === null || !keys.includes(event.key)) return
  const rows = [...body.querySelectorAll('tr')]
  const at = rows.indexOf(own)
  const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: rows.length - 1 }[event.key] ?? at
  const inRow = (row: Element | undefined): HTMLElement[] => [
    ...(row?.querySelectorAll<HTMLElement>('button, a[href]') ?? []),
  ]
  const place = inRow(own).findIndex((element) => element === event.target)
  const targets = inRow(rows[to])
  const target = targets[Math.min(Math.max(place, 0), targets.length - 1)]
  if (target === undefined) return
  event.preventDefault()
  // Otherwise a menu button would open its menu.
  event.stopPropagation()
  target.focus()
}

interface MoneyProps {
  /** Null if the price is unknown. */
  readonly nano: number | null
  /** Requests of unknown price, which the sum excludes. */
  readonly unpriced?: number
}

/** Nano-dollars as dollars. */
export function Money({ nano, unpriced = 0 }: MoneyProps) {
  if (nano === null) return <Absent />
  const rest = unpriced === 0 ? '' : `, and ${plural(unpriced, 'request')} of unknown price`
  return (
    <span title={exactDollars(nano) + rest}>
      {dollars(nano)}
      {unpriced === 0 ? '' : '+'}
    </span>
  )
}

/** A count. */
export function Count({ value, unit = '' }: { readonly value: number; readonly unit?: string }) {
  return <span title={`${exactCount(value)} ${unit}`.trim()}>{count(value)}</span>
}

/** A duration; a dash if it is unknown. */
export function Took({ ms }: { readonly ms: number | null }) {
  if (ms === null) return <Absent />
  return <span title={`${exactCount(ms)} ms`}>{duration(ms)}</span>
}

/** The age of a time. */
export function Ago({ ms }: { readonly ms: number | null }) {
  const now = useNow()
  if (ms === null) return <span className="soft">never</span>
  return (
    <time dateTime={new Date(ms).toISOString()} title={fullTime(ms)}>
      {ago(ms, now)}
    </time>
  )
}

/** The date of a time. */
export function Day({ ms }: { readonly ms: number }) {
  return (
    <time dateTime={new Date(ms).toISOString()} title={fullTime(ms)}>
      {date(ms, Date.now())}
    </time>
  )
}

/** An unknown value, which is not zero. */
export function Absent() {
  return (
    <span className="soft" title="Unknown">
      –
    </span>
  )
}

/** A row with a creation time. */
interface CreatedRow {
  readonly createdAtMs: number
}

/** A row with usage of the last 30 days. */
interface UsedRow {
  readonly requests: number
  readonly spendNanoUsd: number
  readonly unpricedRequests: number
}

/** The creation time. */
export const CREATED: Column<CreatedRow> = {
  id: 'created',
  head: 'Created',
  cell: ({ createdAtMs }) => <Day ms={createdAtMs} />,
  sort: ({ createdAtMs }) => createdAtMs,
  minor: true,
}

/** Requests and spend. */
export const RECENT_USE: readonly Column<UsedRow>[] = [
  {
    id: 'requests',
    head: '30 d requests',
    cell: ({ requests }) => <Count value={requests} unit="requests" />,
    sort: ({ requests }) => requests,
    numeric: true,
    minor: true,
  },
  {
    id: 'spend',
    head: '30 d spend',
    cell: ({ spendNanoUsd, unpricedRequests }) => (
      <Money nano={spendNanoUsd} unpriced={unpricedRequests} />
    ),
    sort: ({ spendNanoUsd }) => spendNanoUsd,
    numeric: true,
  },
]

interface MoreProps {
  readonly pages: Pages<unknown>
  /** The button's text, such as "Older keys". */
  readonly label: string
}

/** Loads the next page, and shows why the last attempt failed. */
export function More({ pages: { more, isLoading, problem }, label }: MoreProps) {
  if (more === null) return null
  return (
    <div className="more">
      <ProblemLine problem={problem} />
      <Button busy={isLoading} onClick={more}>
        {label}
      </Button>
    </div>
  )
}
