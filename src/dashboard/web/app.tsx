/** Selects the page: sign-in pages without a session, otherwise the shell with the requested page. */
import { useState, type ComponentType, type FunctionComponent } from 'react'
import { later } from './components/later.js'
import { Notices } from './components/notices.js'
import { BlockSkeleton, ConnectionBanner } from './components/loading-states.js'
import { NotFoundPage } from './pages/not-found.js'
import { OverviewPage } from './pages/overview.js'
import { accountOfPath, useLocation } from './routing.js'
import { IncidentStrip } from './shell/incident-strip.js'
import { useKeyboard } from './shell/keyboard.js'
import { isAt, isShown, Rail, SECTIONS } from './shell/navigation-rail.js'
import { SessionGate, useRights, useSession } from './shell/session.js'

const CommandPalette = later(async () => (await import('./shell/command-palette.js')).CommandPalette)
const KeyHelp = later(async () => (await import('./shell/key-help.js')).KeyHelp)

/** A page that is loaded on demand. */
function page(load: () => Promise<FunctionComponent>): ComponentType {
  return later(load, () => <BlockSkeleton />)
}

/** All pages except the first are loaded on demand. */
const PAGES: Readonly<Record<string, ComponentType>> = {
  '/': OverviewPage,
  '/keys': page(async () => (await import('./pages/keys/keys.js')).KeysPage),
  '/usage': page(async () => (await import('./pages/usage/usage.js')).UsagePage),
  '/budgets': page(async () => (await import('./pages/budgets.js')).BudgetsPage),
  '/statement': page(async () => (await import('./pages/statement.js')).StatementPage),
  '/requests': page(async () => (await import('./pages/requests.js')).RequestsPage),
  '/runs': page(async () => (await import('./pages/run.js')).RunPage),
  '/batches': page(async () => (await import('./pages/batches.js')).BatchesPage),
  '/me': page(async () => (await import('./pages/me.js')).MePage),
  '/models': page(async () => (await import('./pages/models.js')).ModelsPage),
  '/playground': page(async () => (await import('./pages/playground/playground.js')).PlaygroundPage),
  '/settings': page(async () => (await import('./pages/settings.js')).SettingsPage),
  '/members': page(async () => (await import('./pages/members.js')).MembersPage),
  '/configuration': page(async () => (await import('./pages/configuration.js')).ConfigurationPage),
  '/operations': page(async () => (await import('./pages/operations.js')).OperationsPage),
  '/providers': page(async () => (await import('./pages/providers.js')).ProvidersPage),
  '/users': page(async () => (await import('./pages/users.js')).UsersPage),
  '/accounts': page(async () => (await import('./pages/accounts/accounts.js')).AccountsPage),
  '/audit': page(async () => (await import('./pages/audit.js')).AuditPage),
}

const SignInPages = page(async () => (await import('./pages/sign-in.js')).SignInPages)
const DevicePage = page(async () => (await import('./pages/device.js')).DevicePage)
const AccountPage = page(async () => (await import('./pages/accounts/account-page.js')).AccountPage)

/** Pages for links, with or without a session. */
const SIGN_IN_PATHS = ['/setup', '/reset', '/oidc']

/** Beside `/dashboard`. */
const DEVICE_PATH = '/auth/device'

/** The whole page. */
export function App() {
  return (
    <SessionGate>
      <Inside />
      <Notices />
    </SessionGate>
  )
}

function Inside() {
  const { account } = useSession().session
  const { path } = useLocation()
  if (path === DEVICE_PATH) return <DevicePage />
  return account !== null && !SIGN_IN_PATHS.includes(path) ? <Shell /> : <SignInPages />
}

function Shell() {
  const rights = useRights()
  const { sampleData } = useSession().session
  const [help, setHelp] = useState(false)
  const [showHelp] = useState(() => () => setHelp(true))
  const [finding, setFinding] = useState(false)
  const [find] = useState(() => () => setFinding(true))
  useKeyboard(rights, { help: showHelp, find })
  const { path } = useLocation()
  const section = SECTIONS.find((each) => isAt(each, path))
  const hidden = section !== undefined && !isShown(section, rights) ? section : undefined
  const found = accountOfPath(path) === null ? PAGES[path] : AccountPage
  const Shown = hidden === undefined ? found : undefined
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to content
      </a>
      <Rail find={find} />
      <div className="column">
        {sampleData ? (
          <p className="sample-note note">
            <b>Sample data.</b> This is a demo: the providers are emulated, and what is named sample-… and its
            past requests are made up.
          </p>
        ) : null}
        <ConnectionBanner />
        <IncidentStrip />
        {Shown === undefined ? <NotFoundPage section={hidden} /> : <Shown key={path} />}
      </div>
      {finding ? <CommandPalette onClose={() => setFinding(false)} /> : null}
      {help ? <KeyHelp rights={rights} onClose={() => setHelp(false)} /> : null}
    </div>
  )
}
