/** The list of keyboard shortcuts. */
import { Dialog } from '../components/dialog.js'
import { isShown, SECTIONS } from './navigation-rail.js'
import type { Rights } from './session.js'

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
    ['j k', 'Next or previous row, in a drawer'],
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
