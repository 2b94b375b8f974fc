/** The frame of every page: title, purpose, main action and filters. */
import { useEffect, type ReactNode } from 'react'
import { useResource } from '../api/cache.js'
import { setFilter } from '../routing.js'
import { useAccount, useRights, useScope, useSession } from './session.js'

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
  const { readsGateway } = useRights()
  const { accounts } = useSession().session
  const mayChoose = readsGateway || accounts.length > 1
  const choice =
    mayChoose && scoped !== false ? <AccountSwitch hasAll={scoped !== 'one'} /> : undefined
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

/**
 * The account that the page shows. Administrators and auditors choose of all accounts, the newest first;
 * other users of those that they are members of.
 */
function AccountSwitch({ hasAll }: { readonly hasAll: boolean }) {
  const scope = useScope()
  const me = useAccount()
  const { readsGateway } = useRights()
  const { accounts } = useSession().session
  const { data } = useResource('/accounts', { limit: SHOWN }, { enabled: readsGateway })
  const own = accounts.map(({ id, name }) => ({ id, label: name }))
  const all = (data?.accounts ?? []).map(({ id, email }) => ({ id, label: email }))
  const others = (readsGateway ? all : own).filter(({ id }) => id !== me.id)
  const mine = readsGateway ? 'My account' : (own.find(({ id }) => id === me.id)?.label ?? '')
  const known = scope === null || scope === 'all' || others.some(({ id }) => id === scope)
  return (
    <select
      className={scope === null ? 'filter' : 'filter set'}
      aria-label="Account"
      value={scope ?? ''}
      // A key belongs to one account.
      onChange={(event) => setFilter({ account: event.target.value, key: null, request: null })}
    >
      <option value="">{mine}</option>
      {(readsGateway && hasAll) || scope === 'all' ? (
        <option value="all">All accounts</option>
      ) : null}
      {known ? null : <option value={scope}>{scope}</option>}
      {others.map(({ id, label }) => (
        <option key={id} value={id}>
          {label}
        </option>
      ))}
    </select>
  )
}
