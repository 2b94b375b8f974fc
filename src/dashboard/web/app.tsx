/** Selects the page: sign-in pages without a session, otherwise the shell with the requested page. */
import { lazy, Suspense, useState, type ComponentType } from 'react'
import { Notices } from './components/notices.js'
import { BlockSkeleton, ConnectionBanner } from './components/loading-states.js'
import { NotFoundPage } from './pages/not-found.js'
import { OverviewPage } from './pages/overview.js'
import { accountOfPath, useLocation } from './routing.js'
import { IncidentStrip } from './shell/incident-strip.js'
import { useKeyboard } from './shell/keyboard.js'
import { isAt, isShown, Rail, SECTIONS } from './shell/navigation-rail.js'
import { SessionGate, useRights, useSession } from './shell/session.js'

const CommandPalette = lazy(() =>
  import('./shell/command-palette.js').then((module) => ({ default: module.CommandPalette })),
)

const KeyHelp = lazy(() => import('./shell/key-help.js').then((module) => ({ default: module.KeyHelp })))

/** A page that is loaded on demand. */
function later<Name extends string>(
  name: Name,
  load: () => Promise<Readonly<Record<NoInfer<Name>, ComponentType>>>,
): ComponentType {
  return lazy(async (): Promise<{ default: ComponentType }> => {
    const pages = await load()
    return { default: pages[name] }
  })
}

/** All pages except the first are loaded on demand. */
const PAGES: Readonly<Record<string, ComponentType>> = {
  '/': OverviewPage,
  '/keys': later('KeysPage', () => import('./pages/keys/keys.js')),
  '/usage': later('UsagePage', () => import('./pages/usage/usage.js')),
  '/budgets': later('BudgetsPage', () => import('./pages/budgets.js')),
  '/statement': later('StatementPage', () => import('./pages/statement.js')),
  '/requests': later('RequestsPage', () => import('./pages/requests.js')),
  '/runs': later('RunPage', () => import('./pages/run.js')),
  '/batches': later('BatchesPage', () => import('./pages/batches.js')),
  '/me': later('MePage', () => import('./pages/me.js')),
  '/models': later('ModelsPage', () => import('./pages/models.js')),
  '/playground': later('PlaygroundPage', () => import('./pages/playground/playground.js')),
  '/settings': later('SettingsPage', () => import('./pages/settings.js')),
  '/members': later('MembersPage', () => import('./pages/members.js')),
  '/configuration': later('ConfigurationPage', () => import('./pages/configuration.js')),
  '/operations': later('OperationsPage', () => import('./pages/operations.js')),
  '/providers': later('ProvidersPage', () => import('./pages/providers.js')),
  '/users': later('UsersPage', () => import('./pages/users.js')),
  '/accounts': later('AccountsPage', () => import('./pages/accounts/accounts.js')),
  '/audit': later('AuditPage', () => import('./pages/audit.js')),
}

const SignInPages = later('SignInPages', () => import('./pages/sign-in.js'))
const DevicePage = later('DevicePage', () => import('./pages/device.js'))
const AccountPage = later('AccountPage', () => import('./pages/accounts/account-page.js'))

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
  if (path === DEVICE_PATH) {
    return (
      <Suspense fallback={<BlockSkeleton />}>
        <DevicePage />
      </Suspense>
    )
  }
  if (account !== null && !SIGN_IN_PATHS.includes(path)) return <Shell />
  return (
    <Suspense fallback={<BlockSkeleton />}>
      <SignInPages />
    </Suspense>
  )
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
        <Suspense fallback={<BlockSkeleton />}>
          {Shown === undefined ? <NotFoundPage section={hidden} /> : <Shown key={path} />}
        </Suspense>
      </div>
      {finding ? (
        <Suspense>
          <CommandPalette onClose={() => setFinding(false)} />
        </Suspense>
      ) : null}
      {help ? (
        <Suspense fallback={null}>
          <KeyHelp rights={rights} onClose={() => setHelp(false)} />
        </Suspense>
      ) : null}
    </div>
  )
}
