/**
 * The navigation rail: the account that the pages show, the search, the pages, and the user at its foot. On a
 * narrow screen it is a sheet.
 */
import { Dialog as Base } from '@base-ui/react/dialog'
import { useEffect, useState } from 'react'
import { useResource } from '../api/use-resource.js'
import { Button, IconButton, Icon, type IconName } from '../components/button.js'
import { later } from '../components/later.js'
import { Switch } from '../components/switch.js'
import { plural } from '../format/number.js'
import { accountOfPath, Link, useLocation } from '../routing.js'
import { useIncidents } from './incident-strip.js'
import { useAccount, useRights, useScope, useSession, withScope, type Rights } from './session.js'
import { chooseTheme, useThemeChoice } from './theme.js'

const AccountSwitch = later(
  async () => (await import('./account-switch.js')).AccountSwitch,
  () => <span className="filter account row" />,
)

/** The product's logo and name. */
export function Mark() {
  return (
    <span className="mark">
      <img src="/dashboard/mark.svg" width="20" height="20" alt="" />
      Sluice
    </span>
  )
}

interface RailProps {
  /** Opens the command palette. */
  readonly find: () => void
}

/** The rail of a wide screen, or the top bar of a narrow one. */
export function Rail({ find }: RailProps) {
  const [open, setOpen] = useState(false)
  const { path } = useLocation()
  useEffect(() => setOpen(false), [path])
  const here = path === '/settings' ? 'Settings' : SECTIONS.find((it) => isAt(it, path))?.name
  return (
    <>
      <aside className="rail" aria-label="Sluice">
        <Contents find={find} />
      </aside>
      <header className="top-bar">
        <Base.Root open={open} onOpenChange={setOpen}>
          <Base.Trigger render={<IconButton icon="menu" label="Menu" />} />
          <Base.Portal>
            <Base.Backdrop className="veil" />
            <Base.Popup className="sheet">
              <Base.Title className="unseen">Menu</Base.Title>
              <Contents
                find={() => {
                  setOpen(false)
                  find()
                }}
              />
            </Base.Popup>
          </Base.Portal>
        </Base.Root>
        <Mark />
        <span className="soft end">{here}</span>
      </header>
    </>
  )
}

function Contents({ find }: RailProps) {
  const { readsGateway } = useRights()
  const { accounts } = useSession().session
  return (
    <div className="rail-contents">
      <Link to="/" aria-label="Sluice, overview">
        <Mark />
      </Link>
      <div className="rail-head stack">
        {readsGateway || accounts.length > 1 ? <AccountSwitch /> : null}
        <button type="button" className="filter row line spread" onClick={find}>
          <span className="row line">
            <Icon name="search" /> Find
          </span>
          <kbd>Ctrl K</kbd>
        </button>
      </div>
      <nav aria-label="Pages">
        <Sections ofGateway={false} />
        {readsGateway ? <Sections ofGateway /> : null}
      </nav>
      <Foot />
    </div>
  )
}

function Sections({ ofGateway }: { readonly ofGateway: boolean }) {
  const rights = useRights()
  const { path } = useLocation()
  const scope = useScope()
  const { accounts } = useSession().session
  const [only] = accounts
  const isOfOne = !rights.readsGateway && accounts.length === 1 && only !== undefined
  const linkTo = ({ path: to }: Section): string =>
    to === ACCOUNTS ? (isOfOne ? `${to}/${only.name}` : to) : withScope(to, scope)
  return (
    <ul className="sections">
      {SECTIONS.filter((section) => {
        return (section.needs === 'readsGateway') === ofGateway && isShown(section, rights)
      }).map((section) => (
        <li key={section.path}>
          <Link
            to={linkTo(section)}
            className="section"
            aria-current={isAt(section, path) ? 'page' : undefined}
          >
            <Icon name={section.icon} />
            {isOfOne && section.path === ACCOUNTS ? 'Account' : section.name}
            {section.path === '/operations' ? <IncidentDot /> : null}
          </Link>
        </li>
      ))}
    </ul>
  )
}

/** Beside Operations while an upstream is out. */
function IncidentDot() {
  const open = useIncidents()?.open.length ?? 0
  if (open === 0) return null
  return (
    <span className="incident-dot end">
      <span className="unseen">{plural(open, 'incident')}</span>
    </span>
  )
}

/** `Pro · 4 of 20 keys`. */
export function planText(plan: string, live: number, max: number | null): string {
  const keys = max === null ? plural(live, 'key') : `${live} of ${plural(max, 'key')}`
  return `${plan.charAt(0).toUpperCase()}${plan.slice(1)} · ${keys}`
}

/** `, $20 a month`; empty unless the operator has set a price. */
export function priceText(priceUsd: number): string {
  return priceUsd === 0 ? '' : `, $${priceUsd} a month`
}

const THEMES = [
  { value: 'system', icon: 'system', label: 'Match system theme' },
  { value: 'light', icon: 'sun', label: 'Light' },
  { value: 'dark', icon: 'moon', label: 'Dark' },
] as const

/** The plan of the account that the page shows. */
function PlanChip() {
  const scope = useScope()
  const { data } = useResource('/account', { account: scope }, { enabled: scope !== 'all' })
  if (data === null) return null
  const { name, plan, liveKeys } = data
  return (
    <Link to={withScope('/keys', scope)} className="plan-chip small" title={name + priceText(plan.priceUsd)}>
      {planText(plan.name, liveKeys, plan.maxKeys)}
    </Link>
  )
}

function Foot() {
  const { email } = useAccount()
  const { signOut } = useSession()
  const theme = useThemeChoice()
  return (
    <div className="rail-foot stack">
      <PlanChip />
      <Link to="/settings" className="rail-who note cut" title={email}>
        {email}
      </Link>
      <div className="row line spread gap-4">
        <Switch label="Theme" options={THEMES} value={theme} onChange={chooseTheme} />
        <Button tone="quiet" icon="out" onClick={() => void signOut(false)}>
          Sign out
        </Button>
      </div>
    </div>
  )
}

/** A page of the rail. */
export interface Section {
  readonly path: string
  readonly name: string
  readonly icon: IconName
  /** The letter after `g`. */
  readonly key: string
  /** The right without which the page is not shown. */
  readonly needs: 'readsKeys' | 'makesKeys' | 'readsMembers' | 'readsAccounts' | 'readsGateway' | null
}

const ACCOUNTS = '/accounts'

/** Whether the address is that of the page, or of one of its accounts. */
export function isAt(section: Section, path: string): boolean {
  return section.path === path || (section.path === ACCOUNTS && accountOfPath(path) !== null)
}

/** Whether the user may see the page. */
export function isShown({ needs }: Section, rights: Rights): boolean {
  return needs === null || rights[needs]
}

/** The pages, in the order of the rail. */
export const SECTIONS: readonly Section[] = [
  { path: '/', name: 'Overview', icon: 'overview', key: 'o', needs: null },
  { path: '/keys', name: 'Keys', icon: 'keys', key: 'k', needs: 'readsKeys' },
  { path: '/usage', name: 'Usage', icon: 'usage', key: 'u', needs: null },
  { path: '/budgets', name: 'Budgets', icon: 'budgets', key: 'b', needs: null },
  { path: '/requests', name: 'Requests', icon: 'requests', key: 'r', needs: null },
  { path: '/models', name: 'Models', icon: 'models', key: 'm', needs: null },
  { path: '/playground', name: 'Playground', icon: 'playground', key: 'p', needs: 'makesKeys' },
  { path: ACCOUNTS, name: 'Accounts', icon: 'accounts', key: 't', needs: 'readsAccounts' },
  { path: '/audit', name: 'Audit log', icon: 'audit', key: 'l', needs: 'readsMembers' },
  { path: '/operations', name: 'Operations', icon: 'operations', key: 'a', needs: 'readsGateway' },
  { path: '/users', name: 'Users', icon: 'users', key: 's', needs: 'readsGateway' },
  { path: '/providers', name: 'Providers', icon: 'providers', key: 'v', needs: 'readsGateway' },
  {
    path: '/configuration',
    name: 'Configuration',
    icon: 'configuration',
    key: 'c',
    needs: 'readsGateway',
  },
]
