/** Buttons: primary, quiet, and red for irreversible actions. */
import { forwardRef, type ButtonHTMLAttributes } from 'react'
import { Icon, type IconName } from './icon.js'

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
