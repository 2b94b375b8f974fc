/** The frame and the fields of the sign-in pages. */
import { useEffect, type ReactNode } from 'react'
import { TextField } from '../../components/forms/field.js'
import { Mark } from '../../shell/navigation-rail.js'

interface DoorProps {
  readonly title: string
  readonly text?: ReactNode
  readonly children: ReactNode
}

/** The frame of a sign-in page. */
export function SignInFrame({ title, text, children }: DoorProps) {
  useEffect(() => {
    document.title = `${title} · Sluice`
  }, [title])
  return (
    <main className="door">
      <div className="door-panel">
        <Mark />
        <h1 className="page-title">{title}</h1>
        {text === undefined ? null : <p className="soft">{text}</p>}
        {children}
      </div>
    </main>
  )
}

interface InputProps {
  readonly value: string
  readonly onChange: (value: string) => void
}

/** An e-mail address. */
export function Email({ value, onChange }: InputProps) {
  return (
    <TextField
      label="E-mail"
      type="email"
      name="email"
      autoComplete="username"
      required
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

interface PasswordProps extends InputProps {
  readonly label: string
  readonly isNew: boolean
  readonly error?: string | undefined
}

/** A password field with the attributes that password managers need. */
export function Password({ label, isNew, error, value, onChange }: PasswordProps) {
  return (
    <TextField
      label={label}
      error={error}
      type="password"
      name={isNew ? 'new-password' : 'password'}
      autoComplete={isNew ? 'new-password' : 'current-password'}
      required
      {...(isNew ? { hint: 'At least 8 characters. A sentence is stronger.', minLength: 8 } : {})}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}
