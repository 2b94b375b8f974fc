/** Selects the page: sign-in pages without a session, otherwise the shell with the requested page. */
import { lazy, Suspense, useState, useEffect, type ComponentType } from 'react'
import { probe, useConnection } from './api/client.js'
import { Notices } from './components/notices.js'
import { BlockSkeleton } from './components/states.js'
import { clockTime } from './format/time.js'
import { KeyHelp, NotFoundPage } from './pages/help.js'
import { OverviewPage } from './pages/overview.js'
import { SignInPages } from './pages/sign-in.js'
import { useLocation } from './routing.js'
import { useKeyboard } from './shell/keyboard.js'
import { isShown, Rail, SECTIONS } from './shell/navigation-rail.js'
import { SessionGate, useRights, useSession } from './shell/session.js'

/* All pages except the first are loaded on demand. */
const AccountsPage = lazy(() =>
  import('./pages/accounts.js').then((module) => ({ default: module.AccountsPage })),
)
const KeysPage = lazy(() =>
  import('./pages/keys/keys.js').then((module) => ({ default: module.KeysPage })),
)
const MembersPage = lazy(() =>
  import('./pages/members.js').then((module) => ({ default: module.MembersPage })),
)
const ModelsPage = lazy(() =>
  import('./pages/models.js').then((module) => ({ default: module.ModelsPage })),
)
const OperationsPage = lazy(() =>
  import('./pages/operations.js').then((module) => ({ default: module.OperationsPage })),
)
const PlaygroundPage = lazy(() =>
  import('./pages/playground/playground.js').then((module) => ({ default: module.PlaygroundPage })),
)
const ProvidersPage = lazy(() =>
  import('./pages/providers.js').then((module) => ({ default: module.ProvidersPage })),
)
const RequestsPage = lazy(() =>
  import('./pages/requests.js').then((module) => ({ default: module.RequestsPage })),
)
const SettingsPage = lazy(() =>
  import('./pages/settings.js').then((module) => ({ default: module.SettingsPage })),
)
const StatementPage = lazy(() =>
  import('./pages/statement.js').then((module) => ({ default: module.StatementPage })),
)
const UsagePage = lazy(() =>
  import('./pages/usage.js').then((module) => ({ default: module.UsagePage })),
)

const AuditPage = lazy(() =>
  import('./pages/audit.js').then((module) => ({ default: module.AuditPage })),
)
const CommandPalette = lazy(() =>
  import('./shell/command-palette.js').then((module) => ({ default: module.CommandPalette })),
)

const ConfigurationPage = lazy(() =>
  import('./pages/configuration.js').then((module) => ({
    default: module.ConfigurationPage,
  })),
)

const PAGES: Readonly<Record<string, ComponentType>> = {
  '/': OverviewPage,
  '/keys': KeysPage,
  '/usage': UsagePage,
  '/statement': StatementPage,
  '/requests': RequestsPage,
  '/models': ModelsPage,
  '/playground': PlaygroundPage,
  '/settings': SettingsPage,
  '/members': MembersPage,
  '/configuration': ConfigurationPage,
  '/operations': OperationsPage,
  '/providers': ProvidersPage,
  '/accounts': AccountsPage,
  '/audit': AuditPage,
}

/** Pages for links, with or without a session. */
const SIGN_IN_PATHS = ['/setup', '/reset', '/oidc']

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
  return account === null || SIGN_IN_PATHS.includes(path) ? <SignInPages /> : <Shell />
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
  const section = SECTIONS.find((each) => each.path === path)
  const isHidden = section !== undefined && !isShown(section, rights)
  const Shown = (isHidden ? undefined : PAGES[path]) ?? NotFoundPage
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to content
      </a>
      <Rail />
      <div className="column">
        {sampleData ? (
          <p className="sample-note">
            <b>Sample data.</b> This is a demo: the providers are emulated, and what is named
            sample-… and its past requests are made up.
          </p>
        ) : null}
        <ConnectionBanner />
        <Suspense fallback={<BlockSkeleton />}>
          <Shown key={path} />
        </Suspense>
      </div>
      {finding ? (
        <Suspense>
          <CommandPalette onClose={() => setFinding(false)} />
        </Suspense>
      ) : null}
      {help ? <KeyHelp rights={rights} onClose={() => setHelp(false)} /> : null}
    </div>
  )
}

const EVERY_MS = 2_000

/** A line at the head of the page while no replies arrive. */
function ConnectionBanner() {
  const { isLost, lastAtMs } = useConnection()
  useEffect(() => {
    if (!isLost) return undefined
    const timer = setInterval(() => probe(), EVERY_MS)
    return () => clearInterval(timer)
  }, [isLost])
  return (
    <div role="status" className={isLost ? 'connection' : 'unseen'}>
      {isLost ? (
        <>
          <b>Reconnecting…</b> Figures are as of {clockTime(lastAtMs)}.
        </>
      ) : null}
    </div>
  )
}
