/** The list of keyboard shortcuts, opened with `?`. */
import { Dialog } from '../components/dialog.js'
import { Empty } from '../components/loading-states.js'
import { Link } from '../routing.js'
import { isShown, SECTIONS } from '../shell/navigation-rail.js'
import { Page } from '../shell/page.js'
import type { Rights } from '../shell/session.js'

interface KeyHelpProps {
  readonly rights: Rights
  readonly onClose: () => void
}

/** The shortcuts and their actions. */
export function KeyHelp({ rights, onClose }: KeyHelpProps) {
  const places = SECTIONS.filter((section) => isShown(section, rights))
  const keys: readonly (readonly [string, string])[] = [
    ['Ctrl K', 'Find anything'],
    ['/', 'Search'],
    ['c', 'Create'],
    ['[ ]', 'Half or twice the time range'],
    ['↑ ↓', 'Move between rows'],
    ['enter', 'Open a row'],
    ['esc', 'Close'],
    ...places.map(({ key, name }) => [`g ${key}`, `Go to ${name}`] as const),
  ]
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl className="key-help stack">
        {keys.map(([key, what]) => (
          <div key={key} className="row gap-16">
            <dt>
              {key.split(' ').map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}

/** Links to the overview. */
export function NotFoundPage() {
  return (
    <Page title="Not found" purpose="No page has this address.">
      <Empty title="Page not found">
        <p>
          The address may be mistyped, or the page is for administrators.{' '}
          <Link to="/">Go to the overview</Link>
        </p>
      </Empty>
    </Page>
  )
}
