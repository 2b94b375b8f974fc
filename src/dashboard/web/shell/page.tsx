/** The frame of every page: title, purpose, main action and filters. */
import { lazy, Suspense, useEffect, useId, useState, type ReactNode } from 'react'
import { Button } from '../components/button.js'
import { useLocation } from '../routing.js'
import { useRights, useSession } from './session.js'

const AccountSwitch = lazy(() =>
  import('./account-switch.js').then((module) => ({ default: module.AccountSwitch })),
)

interface PageProps {
  readonly title: string
  readonly purpose: ReactNode
  readonly action?: ReactNode
  readonly filters?: ReactNode
  /**
   * The page shows data of one account, which administrators can select. `one`: it has no view of all
   * accounts.
   */
  readonly scoped?: boolean | 'one'
  readonly children: ReactNode
}

/** A page of the dashboard. */
export function Page({ title, purpose, action, filters, scoped = false, children }: PageProps) {
  const { readsGateway } = useRights()
  const { accounts } = useSession().session
  const mayChoose = readsGateway || accounts.length > 1
  const choice =
    mayChoose && scoped !== false ? (
      <Suspense fallback={<span className="filter account row" />}>
        <AccountSwitch hasAll={scoped !== 'one'} />
      </Suspense>
    ) : undefined
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
      {filters === undefined && choice === undefined ? null : (
        <Filters>
          {choice}
          {filters}
          {filters === undefined ? null : <ViewsButton />}
        </Filters>
      )}
      {children}
    </main>
  )
}

/** Parameters of the address that filter nothing; `to` counts with `from`. */
const NO_FILTERS = new Set(['sort', 'after', 'request', 'tab', 'figure', 'group', 'zone', 'by', 'to', 'toMs'])

/** The account of all accounts, which is no filter. */
const ALL = 'all'

/** The filters of the page; on phones they are behind a button with the number of those that are set. */
function Filters({ children }: { readonly children: ReactNode }) {
  const { query } = useLocation()
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  const set = [...query].filter(([name, value]) => !NO_FILTERS.has(name) && value !== ALL).length
  return (
    <>
      <Button
        className="phone-filters"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        {set === 0 ? 'Filters' : `Filters (${set})`}
      </Button>
      <div id={id} className={isOpen ? 'filters row open' : 'filters row'}>
        {children}
      </div>
    </>
  )
}

const SavedViews = lazy(() => import('./saved-views.js').then((module) => ({ default: module.SavedViews })))

/** Saves the page with its filters under a name, and opens saved ones. */
function ViewsButton() {
  const [open, setOpen] = useState(false)
  return (
    <>
      <Button tone="quiet" onClick={() => setOpen(true)}>
        Saved views
      </Button>
      {open ? (
        <Suspense>
          <SavedViews onClose={() => setOpen(false)} />
        </Suspense>
      ) : null}
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
