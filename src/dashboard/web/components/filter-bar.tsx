/**
 * The filters of a list: one button that adds any of them from a searchable list, and a chip for each that is
 * set. They are kept in the address.
 */
import { useQuery } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import { setFilter, useLocation } from '../routing.js'
import { Button, Icon } from './button.js'
import { Search } from './form.js'
import { Picker, type Entry } from './picker.js'
import type { Option } from './options.js'
import { Empty } from './loading-states.js'

export interface ListFilter {
  /** The parameter of the address. */
  readonly name: string
  readonly label: string
  readonly options: readonly Option[]
  /** Looks for more options on the server. */
  readonly find?: (text: string) => Promise<readonly Option[]>
  /** Any text is a value, not only the options. */
  readonly isFree?: boolean
}

interface FilterBarProps {
  readonly filters: readonly ListFilter[]
  /** A search field before the filters; its parameter is `search`. */
  readonly search?: { readonly label: string; readonly hint?: string }
  /** Other controls, before the search. */
  readonly before?: ReactNode
  /** Parameters of other controls, which "Clear filters" removes too. */
  readonly also?: readonly string[]
  /** Other controls, after the button and its chips. */
  readonly children?: ReactNode
}

/** An entry of the list: a filter, or one of its values. */
interface FilterEntry extends Entry {
  readonly filter: ListFilter
  readonly value: string | null
}

/** The search, the button and the chips. */
export function FilterBar({ filters, search, before, also = [], children }: FilterBarProps) {
  const { query } = useLocation()
  const [open, setOpen] = useState(false)
  const [chosen, choose] = useState<ListFilter | null>(null)
  const set = filters.filter(({ name }) => (query.get(name) ?? '') !== '')
  const show = (filter: ListFilter | null): void => {
    choose(filter)
    setOpen(true)
  }
  const names = ['search', ...also, ...filters.map(({ name }) => name)]
  const isFiltered = names.some((name) => (query.get(name) ?? '') !== '')
  return (
    <>
      {before}
      {search === undefined ? null : <Search {...search} value={query.get('search') ?? ''} />}
      <AddFilter {...{ filters, open, setOpen, chosen, choose }} />
      {set.map((filter) => (
        <Chip key={filter.name} filter={filter} value={query.get(filter.name) ?? ''} edit={show} />
      ))}
      {children}
      {isFiltered ? (
        <Button tone="quiet" onClick={() => setFilter(emptied(names))}>
          Clear filters
        </Button>
      ) : null}
    </>
  )
}

/** The empty state of a list whose filters or search match nothing; else `children`. */
export function NoMatches({
  what,
  filters,
  also = [],
  children,
}: Pick<FilterBarProps, 'filters' | 'also' | 'children'> & { readonly what: string }) {
  const { query } = useLocation()
  const names = ['search', ...also, ...filters.map(({ name }) => name)]
  if (!names.some((name) => query.has(name))) return children
  return (
    <Empty title={`No ${what} match these filters`}>
      <p>
        <Button onClick={() => setFilter(emptied(names))}>Clear filters</Button>
      </p>
    </Empty>
  )
}

function emptied(names: readonly string[]): Record<string, null> {
  return Object.fromEntries(names.map((name) => [name, null]))
}

interface ChipProps {
  readonly filter: ListFilter
  readonly value: string
  readonly edit: (filter: ListFilter) => void
}

function Chip({ filter, value, edit }: ChipProps) {
  const shown = filter.options.find((option) => option.value === value)?.label ?? value
  return (
    <span className="chip">
      <button
        type="button"
        className="bare cut"
        title={`${filter.label}: ${shown}`}
        onClick={() => edit(filter)}
      >
        {filter.label}: <b>{shown}</b>
      </button>
      <button
        type="button"
        className="bare"
        aria-label={`Remove filter ${filter.label}`}
        onClick={() => setFilter({ [filter.name]: null })}
      >
        <Icon name="close" size={12} />
      </button>
    </span>
  )
}

/** Entries that are shown at once; typing finds the others. */
const SHOWN = 100

interface AddFilterProps {
  readonly filters: readonly ListFilter[]
  readonly open: boolean
  readonly setOpen: (open: boolean) => void
  /** The filter whose values are listed; null: all filters. */
  readonly chosen: ListFilter | null
  readonly choose: (filter: ListFilter | null) => void
}

function AddFilter({ filters, open, setOpen, chosen, choose }: AddFilterProps) {
  const [text, setText] = useState('')
  const current = filters.find(({ name }) => name === chosen?.name) ?? null
  const found = useQuery({
    queryKey: ['options', current?.name, text],
    queryFn: async () => (await current?.find?.(text)) ?? [],
    enabled: open && current?.find !== undefined,
  })
  const entries = entriesOf(filters, current, text, found.data ?? [])
  const end = (): void => {
    setOpen(false)
    choose(null)
    setText('')
  }
  const take = (entry: FilterEntry): void => {
    setText('')
    if (entry.value === null) return choose(entry.filter)
    setFilter({ [entry.filter.name]: entry.value })
    end()
  }
  const label = current === null ? 'filters' : current.label.toLowerCase()
  return (
    <Picker
      trigger={<Button icon="plus">Add filter</Button>}
      label={label}
      hint={current === null ? 'Filter by …' : `${current.label} is …`}
      {...{ entries, text, setText, open, take }}
      isLoading={found.isLoading}
      setOpen={(next) => (next ? setOpen(true) : end())}
      onKeyDown={({ key }) => {
        if (key === 'Backspace' && text === '') choose(null)
      }}
    />
  )
}

/** The filters by name; with a text also their values; after a choice the values of one filter. */
function entriesOf(
  filters: readonly ListFilter[],
  chosen: ListFilter | null,
  text: string,
  found: readonly Option[],
): readonly FilterEntry[] {
  const wanted = text.trim().toLowerCase()
  const matches = (label: string): boolean => label.toLowerCase().includes(wanted)
  const valueOf = (filter: ListFilter, { value, label }: Option, prefix = ''): FilterEntry => {
    return { id: `${filter.name} ${value}`, label: prefix + label, filter, value }
  }
  if (chosen === null) {
    const names = filters
      .filter(({ label }) => matches(label))
      .map((filter) => ({ id: filter.name, label: filter.label, filter, value: null }))
    if (wanted === '') return names
    const values = filters.flatMap((filter) =>
      filter.options
        .map((option) => valueOf(filter, option, `${filter.label}: `))
        .filter(({ label }) => matches(label)),
    )
    return [...names, ...values].slice(0, SHOWN)
  }
  const known = chosen.options.filter(({ label, value }) => matches(label) || matches(value))
  const more = found.filter(({ value }) => !known.some((option) => option.value === value))
  const options = [...known, ...more].slice(0, SHOWN)
  const isKnown = options.some(({ value }) => value === text.trim())
  const own = chosen.isFree === true && wanted !== '' && !isKnown
  const typed = own ? [{ value: text.trim(), label: `“${text.trim()}”` }] : []
  return [...typed, ...options].map((option) => valueOf(chosen, option))
}
