/**
 * The table of all lists (TanStack Table): sticky head, sorting, right-aligned numbers, arrow keys to move
 * and Enter to open, long texts cut with their whole text on hover. Its order and page are in the address.
 *
 * A list of the server (`list`, from `useList`) is sorted and paged by the server. Rows that are all there
 * (`rows`) are sorted here.
 */
import {
  createSortedRowModel,
  rowSortingFeature,
  sortFn_basic,
  tableFeatures,
  useTable,
  type ColumnDef,
  type Header,
  type SortingState,
} from '@tanstack/react-table'
import { useMemo, useRef, type KeyboardEvent, type MouseEvent, type ReactNode } from 'react'
import type { List } from '../api/use-resource.js'
import { manyOf, plural } from '../format/number.js'
import { setQuery, useLocation } from '../routing.js'
import { Icon, Button } from './button.js'
import { useShownColumns } from './column-chooser.js'
import { Failed, ProblemLine, TableSkeleton } from './loading-states.js'
import { keepRow } from './row-steps.js'

/** A column: its head, its cell and what it is sorted by. */
export interface Column<Row> {
  readonly id: string
  readonly head: string
  readonly cell: (row: Row) => ReactNode
  /** What whole tables are sorted by here; null comes last. */
  readonly value?: (row: Row) => number | string | null
  /** The column's name in `sort` of the server's list. */
  readonly sort?: string
  /** The order of the first click; default: numbers and times descending, texts ascending. */
  readonly first?: 'asc' | 'desc'
  readonly numeric?: boolean
  /** Hidden on medium screens. */
  readonly minor?: boolean
  /** Hidden on phones. */
  readonly extra?: boolean
  /** Names, which share the remaining width and are cut. */
  readonly text?: boolean
  /** Hidden until it is chosen. */
  readonly isOptional?: boolean
  readonly className?: string
}

interface RowsProps<Row> {
  /** The caption for screen readers. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly keyOf: (row: Row) => string
  /** Opens a row on click or Enter. */
  readonly open?: (row: Row) => void
  readonly nameOf?: (row: Row) => string
  /** Actions at the end of a row. */
  readonly actions?: (row: Row) => ReactNode
  readonly faded?: (row: Row) => boolean
}

interface WholeProps<Row> extends RowsProps<Row> {
  readonly rows: readonly Row[]
  /** The part before `sort` in the address, for the second table of a page. */
  readonly name?: string
  /** The order without `sort` in the address: a column's id, with `-` for descending. */
  readonly usualSort?: string
  /** They are a few of many, and are not sorted: the first of them would not be the first of all. */
  readonly isPart?: boolean
}

interface ListProps<Row> extends RowsProps<Row> {
  readonly list: List<Row>
  /** A row in words: `key`. */
  readonly unit: string
  /** Shown instead of a table without rows. */
  readonly empty: ReactNode
  /** What is not affected if the list cannot be loaded: `Keys keep working.` */
  readonly unaffected?: string
}

/** A table of rows that are all there, or one page of a list of the server. */
export function DataTable<Row extends object>(props: WholeProps<Row> | ListProps<Row>) {
  if ('list' in props) return <ListTable {...props} />
  return <WholeTable {...props} />
}

function WholeTable<Row extends object>({ name = '', usualSort, ...props }: WholeProps<Row>) {
  const { query } = useLocation()
  return <Sorted {...props} name={name} order={query.get(`${name}sort`) ?? usualSort ?? null} />
}

function ListTable<Row extends object>({ list, unit, empty, unaffected, ...props }: ListProps<Row>) {
  const { rows, problem, stale, reload } = list
  const { query } = useLocation()
  if (rows === null) {
    if (problem === null) return <TableSkeleton rows={12} />
    const what = `The list of ${manyOf(unit)}`
    return <Failed what={what} problem={problem} retry={reload} {...(unaffected && { unaffected })} />
  }
  if (rows.length === 0 && !query.has(`${list.name}after`)) return empty
  return (
    <div className={stale ? 'list stale' : 'list'}>
      <ProblemLine problem={problem} />
      <Sorted {...props} rows={rows} name={list.name} order={list.sort} list={list} />
      <Pager list={list} unit={unit} />
    </div>
  )
}

const features = tableFeatures({
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
  sortFns: { basic: sortFn_basic },
})

interface SortedProps<Row> extends RowsProps<Row> {
  readonly rows: readonly Row[]
  readonly name: string
  /** `cost`, `-cost`. */
  readonly order: string | null
  readonly list?: List<Row>
  readonly isPart?: boolean
}

function Sorted<Row extends object>(props: SortedProps<Row>) {
  const { caption, rows, keyOf, open, actions, name, order, list } = props
  const { shown: columns, chooser } = useShownColumns(caption.split(',')[0] ?? '', props.columns)
  const hasEnd = actions !== undefined || chooser !== null
  const isList = list !== undefined
  const isSortable = list?.sortable ?? props.isPart !== true
  const definitions = useMemo(
    () => columns.map((column) => define(column, isList, isSortable)),
    [columns, isList, isSortable],
  )
  const sorting = useMemo(() => sortingOf(order), [order])
  const table = useTable({
    features,
    columns: definitions,
    data: rows,
    getRowId: keyOf,
    state: { sorting },
    manualSorting: isList,
    enableSortingRemoval: false,
    enableMultiSort: false,
    onSortingChange: (update) => {
      const [next] = typeof update === 'function' ? update(sorting) : update
      const sort = next === undefined ? null : `${next.desc ? '-' : ''}${next.id}`
      setQuery({ [`${name}sort`]: sort, [`${name}after`]: null, [`${name}page`]: null })
    },
  })
  const body = useRef<HTMLTableSectionElement>(null)
  // On a narrow screen the frame scrolls. Without a focusable element in it, the frame itself must be
  // focusable.
  const isPlain = open === undefined && actions === undefined
  const frame = isPlain ? { tabIndex: 0, role: 'region', 'aria-label': caption } : {}
  const heads = table.getHeaderGroups()[0]?.headers ?? []
  const shownRows = table.getRowModel().rows
  const openAt = (place: number): void => {
    const row = shownRows[place]?.original
    if (row === undefined || open === undefined) return
    keepRow(openAt, place, shownRows.length)
    open(row)
  }
  return (
    <div className="table-frame panel" {...frame}>
      <table className={open === undefined ? 'table' : 'table opens'}>
        <caption className="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column, at) => (
              <Head key={column.id} column={column} header={heads[at]} />
            ))}
            {hasEnd ? (
              <th className="actions">
                <span className="unseen">Actions</span>
                {chooser}
              </th>
            ) : null}
          </tr>
        </thead>
        <tbody ref={body} onKeyDownCapture={(event) => move(event, body.current)} onMouseOver={showWhole}>
          {shownRows.map(({ id, original }, place) => (
            <Row
              key={id}
              row={original}
              {...props}
              {...(open === undefined ? {} : { open: () => openAt(place) })}
              columns={columns}
              hasEnd={hasEnd}
            />
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** The column for the library. In a list of the server, its id is the server's name. */
function define<Row extends object>(
  { id, sort, value, first, numeric }: Column<Row>,
  isList: boolean,
  isSortable: boolean,
): ColumnDef<typeof features, Row> {
  const order = first ?? (numeric === true ? 'desc' : isList ? 'asc' : undefined)
  return {
    id: isList ? (sort ?? `-${id}`) : id,
    accessorFn: (row) => value?.(row) ?? undefined,
    enableSorting: isSortable && (isList ? sort : value) !== undefined,
    sortFn: 'basic',
    sortUndefined: 'last',
    ...(order === undefined ? {} : { sortDescFirst: order === 'desc' }),
  }
}

function sortingOf(order: string | null): SortingState {
  if (order === null || order === '') return []
  const desc = order.startsWith('-')
  return [{ id: desc ? order.slice(1) : order, desc }]
}

interface HeadProps<Row extends object> {
  readonly column: Column<Row>
  readonly header: Header<typeof features, Row> | undefined
}

function Head<Row extends object>({ column, header }: HeadProps<Row>) {
  const name = classOf(column)
  const order = header?.column.getIsSorted() ?? false
  const aria = order === false ? undefined : order === 'desc' ? 'descending' : 'ascending'
  const isSortable = header?.column.getCanSort() === true
  const mark = order === false ? 'sort-mark' : order === 'desc' ? 'sort-mark on' : 'sort-mark on up'
  return (
    <th scope="col" className={name} aria-sort={aria}>
      {isSortable ? (
        <button
          type="button"
          className="sort bare"
          onClick={() => header.column.toggleSorting(undefined, false)}
        >
          {column.head}
          <span className={mark}>
            <Icon name="down" size={12} />
          </span>
        </button>
      ) : (
        column.head
      )}
    </th>
  )
}

function classOf<Row>({ numeric, minor, extra, text, className = '' }: Column<Row>): string {
  const flags = { numeric, minor, extra, text }
  const names = Object.entries(flags).flatMap(([name, isOn]) => (isOn === true ? [name] : []))
  return [...names, className].join(' ').trim()
}

interface RowProps<Row> extends RowsProps<Row> {
  readonly row: Row
  /** There is a column at the end, for actions. */
  readonly hasEnd: boolean
}

function Row<Row>({ row, columns, open, nameOf, actions, faded, hasEnd }: RowProps<Row>) {
  return (
    <tr
      className={faded?.(row) === true ? 'faded' : undefined}
      onClick={open === undefined ? undefined : () => open(row)}
    >
      {columns.map((column, index) => (
        <td key={column.id} className={classOf(column)} data-head={column.head}>
          {index === 0 && open !== undefined ? (
            <button
              type="button"
              className="row-open bare"
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
      {hasEnd ? (
        <td className="actions" onClick={(event) => event.stopPropagation()}>
          {actions?.(row)}
        </td>
      ) : null}
    </tr>
  )
}

/** Shows the whole text of a cell that is cut. */
function showWhole({ target }: MouseEvent<HTMLElement>): void {
  const cell = target instanceof HTMLElement ? target.closest('td') : null
  if (cell === null || cell.title !== '' || cell.scrollWidth <= cell.clientWidth) return
  cell.title = cell.innerText
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

const PLACES = 'sluice.places'
/** Cursors that are kept; the oldest are dropped. */
const MAX_PLACES = 200

/** The cursors of the pages that the user has left forwards, each after the one that it led to. */
function places(): readonly (readonly [list: string, cursor: string, before: string | null])[] {
  const text = window.sessionStorage.getItem(PLACES) ?? '[]'
  return JSON.parse(text) as ReturnType<typeof places>
}

/** A list with its filters and order: its cursors belong to it. */
function listNow(): string {
  const query = new URLSearchParams(window.location.search)
  for (const name of [...query.keys()]) {
    if (/(?:^|\.)(?:after|page)$/.test(name)) query.delete(name)
  }
  query.sort()
  return `${window.location.pathname}?${query.toString()}`
}

/** The page before each page is kept over a reload, in the storage of the tab. */
function keepBefore(cursor: string, before: string | null): void {
  const kept = [...places(), [listNow(), cursor, before]].slice(-MAX_PLACES)
  window.sessionStorage.setItem(PLACES, JSON.stringify(kept))
}

/** The cursor of the page before; null for the first page, undefined if this tab has not shown it. */
function before(cursor: string): string | null | undefined {
  const list = listNow()
  return places().findLast((place) => place[0] === list && place[1] === cursor)?.[2]
}

interface PagerProps {
  readonly list: List<unknown>
  readonly unit: string
}

/** The number of rows, and the pages before and after this one; nothing for a single page. */
function Pager({ list: { name, next, total }, unit }: PagerProps) {
  const { query } = useLocation()
  const [after, page] = [query.get(`${name}after`), Number(query.get(`${name}page`) ?? '1')]
  const show = (cursor: string | null, number: number): void => {
    if (cursor !== null && number > page) keepBefore(cursor, after)
    const isFirst = cursor === null
    setQuery({ [`${name}after`]: cursor, [`${name}page`]: isFirst ? null : String(number) })
    document.getElementById('content')?.scrollIntoView()
  }
  if (next === null && after === null) {
    return total === null ? null : <p className="pager soft">{plural(total, unit)}</p>
  }
  const last = after === null ? undefined : before(after)
  return (
    <nav className="pager row" aria-label={`Pages of ${manyOf(unit)}`}>
      <span className="soft" role="status">
        {total === null ? '' : `${plural(total, unit)} · `}page {page}
      </span>
      {after === null || (last === undefined && page === 2) ? null : (
        <Button onClick={() => show(null, 1)}>First page</Button>
      )}
      <Button
        disabled={after === null || (last === undefined && page > 2)}
        onClick={() => show(last ?? null, page - 1)}
      >
        Previous
      </Button>
      <Button disabled={next === null} onClick={() => show(next, page + 1)}>
        Next
      </Button>
    </nav>
  )
}
