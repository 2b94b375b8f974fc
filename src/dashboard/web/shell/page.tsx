/** The frame of every page: title, purpose, main action and filters. */
import { useEffect, useId, useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { Button } from '../components/button.js'
import { later } from '../components/later.js'
import { useLocation } from '../routing.js'

interface PageProps {
  readonly title: string
  readonly purpose: ReactNode
  readonly action?: ReactNode
  readonly filters?: ReactNode
  readonly children: ReactNode
}

/** A page of the dashboard. */
export function Page({ title, purpose, action, filters, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Sluice`
  }, [title])
  return (
    <main className="page" id="content" tabIndex={-1}>
      <header className="page-head">
        <div>
          <h1>{title}</h1>
          <p className="soft">{purpose}</p>
        </div>
        {action === undefined ? null : <div className="page-action row">{action}</div>}
      </header>
      {filters === undefined ? null : (
        <Filters>
          {filters}
          <ViewsButton />
        </Filters>
      )}
      {children}
    </main>
  )
}

/** Parameters of the address that filter nothing; `to` counts with `from`. */
const NO_FILTERS = new Set([
  ...['account', 'own', 'sort', 'after', 'request', 'tab', 'figure', 'group', 'zone', 'by', 'to', 'toMs'],
])

/** The filters of the page; on phones a sheet, behind a button with the number of those that are set. */
function Filters({ children }: { readonly children: ReactNode }) {
  const { query } = useLocation()
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  const set = [...query.keys()].filter((name) => !NO_FILTERS.has(name)).length
  const button = useRef<HTMLButtonElement>(null)
  const close = (): void => {
    setOpen(false)
    button.current?.focus()
  }
  const onKeyDown = ({ key }: KeyboardEvent): void => {
    if (key === 'Escape' && isOpen) close()
  }
  return (
    <>
      <Button
        ref={button}
        className="phone-filters"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
        onKeyDown={onKeyDown}
      >
        {set === 0 ? 'Filters' : `Filters (${set})`}
      </Button>
      {isOpen ? <div className="veil of-filters" onClick={close} /> : null}
      <div
        id={id}
        className={isOpen ? 'filters row open' : 'filters row'}
        role="group"
        aria-label="Filters"
        onKeyDown={onKeyDown}
      >
        {children}
        <Button className="filters-done" tone="primary" onClick={close}>
          Done
        </Button>
      </div>
    </>
  )
}

const SavedViews = later(async () => (await import('./saved-views.js')).SavedViews)

/** Saves the page with its filters under a name, and opens saved ones. */
function ViewsButton() {
  const [open, setOpen] = useState(false)
  return (
    <>
      <Button tone="quiet" onClick={() => setOpen(true)}>
        Saved views
      </Button>
      {open ? <SavedViews onClose={() => setOpen(false)} /> : null}
    </>
  )
}

interface BlockProps {
  readonly title: string
  readonly note?: ReactNode
  readonly action?: ReactNode
  readonly children: ReactNode
}

/** A section of a page with a heading. */
export function Block({ title, note, action, children }: BlockProps) {
  return (
    <section className="stack gap-12">
      <header className="block-head row line">
        <h2>{title}</h2>
        {note === undefined ? null : <span className="note">{note}</span>}
        {action === undefined ? null : <div className="end">{action}</div>}
      </header>
      {children}
    </section>
  )
}
