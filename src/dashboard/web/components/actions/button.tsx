/** Buttons: one primary on a page, quiet ones beside it, and red for what cannot be taken back. */
import { forwardRef, type ButtonHTMLAttributes } from 'react'
import { Icon, type IconName } from './icon.js'

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly tone?: 'primary' | 'plain' | 'quiet' | 'danger'
  readonly icon?: IconName
  /** The work it began is not done: it cannot be pressed again. */
  readonly busy?: boolean
}

/** A button with words. */
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
  /** What it does, for those who do not see the picture. */
  readonly label: string
}

/** A button of a picture alone. */
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
