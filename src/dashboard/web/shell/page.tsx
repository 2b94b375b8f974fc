/** The frame of every page: title, purpose, main action and filters. */
import { useEffect, type ReactNode } from 'react'
import { useResource } from '../api/load-resource.js'
import { setQuery } from '../routing.js'
import { useAccount, useScope } from './session.js'

interface PageProps {
  readonly title: string
  readonly purpose: string
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
  const isAdmin = useAccount().role === 'admin'
  const choice =
    isAdmin && scoped !== false ? <AccountSwitch hasAll={scoped !== 'one'} /> : undefined
  useEffect(() => {
    document.title = `${title} · Sluice`
  }, [title])
  return (
    <main className="page" id="content" tabIndex={-1}>
      <header className="page-head">
        <div>
          <h1 className="page-title">{title}</h1>
          <p className="page-purpose">{purpose}</p>
        </div>
        {action === undefined ? null : <div className="page-action">{action}</div>}
      </header>
      {filters === undefined && choice === undefined ? null : (
        <div className="filters">
          {choice}
          {filters}
        </div>
      )}
      {children}
    </main>
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
    <section className="block">
      <header className="block-head">
        <h2 className="block-title">{title}</h2>
        {note === undefined ? null : <span className="block-note">{note}</span>}
        {action === undefined ? null : <div className="block-action">{action}</div>}
      </header>
      {children}
    </section>
  )
}

const SHOWN = 200

/** The own account, all accounts, or one of the newest; further ones are on the page of accounts. */
function AccountSwitch({ hasAll }: { readonly hasAll: boolean }) {
  const scope = useScope()
  const me = useAccount()
  const { data } = useResource('/accounts', { limit: SHOWN })
  const others = (data?.accounts ?? []).filter(({ id }) => id !== me.id)
  const known = scope === null || scope === 'all' || others.some(({ id }) => id === scope)
  return (
    <select
      className={scope === null ? 'filter' : 'filter set'}
      aria-label="Account"
      value={scope ?? ''}
      // A key belongs to one account.
      onChange={(event) => setQuery({ account: event.target.value, key: null, request: null })}
    >
      <option value="">My account</option>
      {hasAll || scope === 'all' ? <option value="all">All accounts</option> : null}
      {known ? null : <option value={scope}>{scope}</option>}
      {others.map(({ id, email }) => (
        <option key={id} value={id}>
          {email}
        </option>
      ))}
    </select>
  )
}
