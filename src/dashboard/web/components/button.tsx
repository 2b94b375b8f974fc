/** Buttons and icons. */
import { forwardRef, type ButtonHTMLAttributes } from 'react'
import { urlOf, type Query } from '../api/client.js'

const PATHS = {
  overview: 'M3 3h6v8H3zM11 3h6v5h-6zM11 11h6v6h-6zM3 14h6v3H3z',
  keys: 'M8.5 11.5a4 4 0 1 1 2.2-2.2L17 15.5V18h-3v-2h-2v-2h-1.2zM6.5 6.5h.01',
  usage: 'M3 17h14M5 14V9M10 14V4M15 14v-7',
  budgets: 'M10 17.5a7.5 7.5 0 1 0 0-15 7.5 7.5 0 0 0 0 15zM10 2.5V10l5.3 5.3',
  requests: 'M3 5h14M3 10h14M3 15h9',
  models: 'M10 2.5l6.5 3.7v7.6L10 17.5l-6.5-3.7V6.2zM3.7 6.3L10 10l6.3-3.7M10 10v7.3',
  playground: 'M4 5.5l4 4-4 4M10 14.5h6',
  operations: 'M2.5 10h3.2l2.3-6 4 12 2.3-6h3.2',
  providers: 'M7 4v12M4 13l3 3 3-3M13 16V4M10 7l3-3 3 3',
  accounts: 'M7.5 2.5h5v4h-5zM2.5 13.5h5v4h-5zM12.5 13.5h5v4h-5zM10 6.5v3.5M5 13.5V10h10v3.5',
  users:
    'M7.5 9.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2 16.5c.6-3 2.7-4.5 5.5-4.5s4.9 1.5 5.5 4.5M13.5 3.8a3 3 0 0 1 0 5.4M15.2 12.3c1.5.7 2.4 2 2.8 4.2',
  user: 'M10 10a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3.5 17c.8-3.2 3.3-5 6.5-5s5.7 1.8 6.5 5',
  settings: 'M3 6h8M15 6h2M3 14h2M9 14h8M13 4v4M7 12v4',
  more: 'M4.5 10h.01M10 10h.01M15.5 10h.01',
  copy: 'M7 7V3.5h9.5V13H13M3.5 7H13v9.5H3.5z',
  check: 'M4 10.5l4 4 8-9',
  close: 'M5 5l10 10M15 5L5 15',
  menu: 'M3 6h14M3 10h14M3 14h14',
  down: 'M6 8l4 4 4-4',
  left: 'M12 5l-5 5 5 5',
  right: 'M8 5l5 5-5 5',
  sun: 'M10 13.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM10 2v1.5M10 16.5V18M2 10h1.5M16.5 10H18M4.3 4.3l1.1 1.1M14.6 14.6l1.1 1.1M4.3 15.7l1.1-1.1M14.6 5.4l1.1-1.1',
  moon: 'M16.5 12A7 7 0 0 1 8 3.5 7 7 0 1 0 16.5 12z',
  system: 'M3 4h14v9H3zM7 16.5h6M10 13v3.5',
  out: 'M8 3.5H4v13h4M8.5 10H17M13.5 6.5L17 10l-3.5 3.5',
  search: 'M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12zM13.5 13.5L17 17',
  zoomIn: 'M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12zM13.5 13.5L17 17M9 6.5v5M6.5 9h5',
  zoomOut: 'M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12zM13.5 13.5L17 17M6.5 9h5',
  table: 'M3 4h14v12H3zM3 8h14M3 12h14M8 8v8',
  calendar: 'M3 4.5h14v12.5H3zM3 8.5h14M7 2.5v3.5M13 2.5v3.5',
  columns: 'M3 4h14v12H3zM8 4v12M12.5 4v12',
  chart: 'M3 17h14M3 13l4-5 4 3 6-7',
  audit: 'M5 2.5h7l3.5 3.5v11.5h-10.5zM7.5 8.5h5M7.5 11.5h5M7.5 14.5h3',
  configuration:
    'M7.5 3.5c-2 0-2 1-2 3s-.5 3.5-2.5 3.5c2 0 2.5 1.5 2.5 3.5s0 3 2 3M12.5 3.5c2 0 2 1 2 3s.5 3.5 2.5 3.5c-2 0-2.5 1.5-2.5 3.5s0 3-2 3',
  file: 'M10 3v9M6.5 8.5L10 12l3.5-3.5M3.5 16.5h13',
  send: 'M10 16V4M5 9l5-5 5 5',
  stop: 'M5.5 5.5h9v9h-9z',
  plus: 'M10 4v12M4 10h12',
  bin: 'M4 6h12M8 6V3.5h4V6M5.5 6l.8 10.5h7.4L14.5 6',
  alert: 'M10 3l7.5 13.5h-15zM10 8v4M10 14.2h.01',
} as const

export type IconName = keyof typeof PATHS

/** An icon beside a text, hidden from screen readers. */
export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg className="icon" viewBox="0 0 20 20" width={size} height={size} aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  )
}

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly tone?: 'primary' | 'plain' | 'quiet' | 'danger'
  readonly icon?: IconName
  /** Its action is running; the button is disabled. */
  readonly busy?: boolean
}

/** A button with a text. */
export const Button = forwardRef<HTMLButtonElement, ButtonProps>(function Button(
  { tone = 'plain', icon, busy = false, className = '', children, disabled, ...rest },
  ref,
) {
  return (
    <button
      ref={ref}
      type="button"
      className={`button ${tone} ${className}`.trimEnd()}
      disabled={disabled === true || busy}
      aria-busy={busy || undefined}
      {...rest}
    >
      {icon === undefined ? null : <Icon name={icon} />}
      {children}
    </button>
  )
})

interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly icon: IconName
  /** The accessible name. */
  readonly label: string
}

/** A button with only an icon. */
export const IconButton = forwardRef<HTMLButtonElement, IconButtonProps>(function IconButton(
  { icon, label, className = '', ...rest },
  ref,
) {
  return (
    <button
      ref={ref}
      type="button"
      className={`button quiet square ${className}`.trimEnd()}
      aria-label={label}
      title={label}
      {...rest}
    >
      <Icon name={icon} />
    </button>
  )
})

interface CreateButtonProps {
  /** The button's text, such as "Create key". */
  readonly text: string
  readonly onClick: () => void
}

/** The button that opens a page's form of creation; the key `c` presses it. */
export function CreateButton({ text, onClick }: CreateButtonProps) {
  return (
    <Button tone="primary" icon="plus" data-key="c" aria-keyshortcuts="c" onClick={onClick}>
      {text}
    </Button>
  )
}

/**
 * Saves all rows that match as a CSV file of the server. The browser writes them to the disk while they
 * arrive, and shows the progress: a million rows do not fit into the memory of the page.
 */
export function SaveCsv({ path, query }: { readonly path: string; readonly query: Query }) {
  return (
    <a className="button" href={`/dashboard/api${urlOf(path, query)}`} download>
      <Icon name="file" /> Save CSV
    </a>
  )
}
