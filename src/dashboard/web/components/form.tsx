/** Form fields with a permanent label, a hint, and an error beside the field. */
import {
  useId,
  useEffect,
  useState,
  type InputHTMLAttributes,
  type ReactNode,
  type TextareaHTMLAttributes,
  type FormEvent,
} from 'react'
import { problemOf, type Problem } from '../api/client.js'
import { setFilter } from '../routing.js'
import { Button, Icon } from './button.js'
import { ProblemLine } from './loading-states.js'
import { withoutSecret } from './pasted-secret.js'
import type { Option } from './options.js'
import { Select } from './select.js'

/** The texts of a field. */
export interface FieldTexts {
  readonly label: string
  readonly hint?: ReactNode
  readonly error?: string | undefined
}

/** Attributes that connect a control to its label, hint and error. */
interface Control {
  readonly id: string
  readonly 'aria-invalid': boolean
  readonly 'aria-describedby': string | undefined
}

interface FieldProps extends FieldTexts {
  readonly control: (shared: Control) => ReactNode
}

/** A control with its label, hint and error. */
export function Field({ label, hint, error, control }: FieldProps) {
  const id = useId()
  const notes = [
    { id: `${id}-error`, className: 'field-error small', text: error },
    { id: `${id}-hint`, className: 'note', text: hint },
  ].filter(({ text }) => text !== undefined)
  const describedBy = notes.length === 0 ? undefined : notes.map((note) => note.id).join(' ')
  return (
    <div className={error === undefined ? 'field stack gap-4' : 'field stack gap-4 wrong'}>
      <label className="strong" htmlFor={id}>
        {label}
      </label>
      {control({ id, 'aria-invalid': error !== undefined, 'aria-describedby': describedBy })}
      {notes.map(({ id, className, text }) => (
        <p key={id} id={id} className={className}>
          {text}
        </p>
      ))}
    </div>
  )
}

/** A text field with one line. */
export function TextField({
  label,
  hint,
  error,
  ...rest
}: FieldTexts & InputHTMLAttributes<HTMLInputElement>) {
  const control = (shared: Control) => <input className="input" {...shared} {...rest} />
  return <Field {...{ label, hint, error, control }} />
}

/** Why the user makes a change, for the audit log. */
export function ReasonField(field: Bound) {
  const hint = 'Optional, for the audit log.'
  return <TextField label="Reason" hint={hint} maxLength={200} autoComplete="off" {...field} />
}

/** A text field with several lines. */
export function TextArea({
  label,
  hint,
  error,
  ...rest
}: FieldTexts & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const control = (shared: Control) => <textarea className="input" {...shared} {...rest} />
  return <Field {...{ label, hint, error, control }} />
}

interface SelectProps extends FieldTexts, Pick<Bound, 'value' | 'onChange'> {
  readonly options: readonly Option[]
}

/** A selection with its label. */
export function SelectField({ label, hint, error, options, value, onChange }: SelectProps) {
  const choose = (next: string): void => onChange({ target: { value: next } })
  const control = (shared: Control) => (
    <Select className="input" {...shared} {...{ options, value }} onChange={choose} />
  )
  return <Field {...{ label, hint, error, control }} />
}

interface FilterProps {
  readonly label: string
  readonly value: string
  /** The text of the option without a filter; absent: one of the options is always set. */
  readonly all?: string
  readonly options: readonly Option[]
  readonly onChange: (value: string) => void
}

/** A compact selection in a row of filters; its label is visible to screen readers only. */
export function Filter({ label, all, options, ...rest }: FilterProps) {
  const listed = all === undefined ? options : [{ value: '', label: all }, ...options]
  return <Select className="filter" aria-label={label} options={listed} {...rest} />
}

const PAUSE_MS = 200

interface SearchProps {
  readonly label: string
  /** The placeholder; the label by default. */
  readonly hint?: string
  readonly value: string
}

/** The search starts after a short pause in typing. */
export function Search({ label, hint = label, value }: SearchProps) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return undefined
    const timer = setTimeout(() => setFilter({ search: text.slice(0, 100) }, { replace: true }), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text, value])
  return (
    <span className="search">
      <Icon name="search" size={14} />
      <input
        type="search"
        className="filter"
        data-key="/"
        aria-keyshortcuts="/"
        aria-label={label}
        placeholder={hint}
        title={hint === label ? undefined : hint}
        maxLength={2_000}
        value={text}
        onChange={({ target }) => setText(withoutSecret(target.value))}
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.blur()
          if (event.key !== 'ArrowDown') return
          event.preventDefault()
          document.querySelector<HTMLElement>('#content tbody :is(button, a[href])')?.focus()
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </span>
  )
}

/** The value of a text field or a selection, what is wrong with it, and its handler. */
export interface Bound {
  readonly value: string
  readonly error: string | undefined
  readonly onChange: (event: { readonly target: { readonly value: string } }) => void
}

/** What is wrong with the fields, by their names at the server. */
export type Faults = Readonly<Partial<Record<string, string>>>

/** The values of a form and the state of its submission. */
export interface FormState<Values> {
  readonly values: Values
  readonly set: (changes: Partial<Values>) => void
  readonly busy: boolean
  /** Why it was refused, unless that is shown at a field. */
  readonly problem: Problem | null
  readonly submit: (event: FormEvent<HTMLFormElement>) => void
  /** Connects a field; `param` is its name at the server. */
  readonly field: (name: keyof Values & string, param?: string) => Bound
}

/**
 * The values of a form. `send` gets them once `check` finds no fault. A fault appears at its field once the
 * field was changed or the form was submitted; a refusal of the server at the field that it names.
 */
export function useForm<Values extends object>(
  initial: Values,
  send: (values: Values) => Promise<void>,
  check: (values: Values) => Faults = () => ({}),
): FormState<Values> {
  const [first] = useState(initial)
  const [values, setValues] = useState(initial)
  const [state, setState] = useState<{ busy: boolean; isSent: boolean; problem: Problem | null }>({
    busy: false,
    isSent: false,
    problem: null,
  })
  const faults = check(values)
  const shown = new Set<string>()
  const param = state.problem?.param?.split('[')[0] ?? ''
  const run = async (): Promise<void> => {
    setState({ busy: true, isSent: true, problem: null })
    try {
      await send(values)
      setState({ busy: false, isSent: true, problem: null })
    } catch (error) {
      setState({ busy: false, isSent: true, problem: problemOf(error) })
    }
  }
  return {
    values,
    busy: state.busy,
    set: (changes) => setValues((now) => ({ ...now, ...changes })),
    submit: (event) => {
      event.preventDefault()
      if (Object.keys(faults).length === 0) return void run()
      setState({ ...state, isSent: true })
      const form = event.currentTarget
      // Runs after the errors have been rendered.
      setTimeout(() => form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus())
    },
    field: (name, at = name) => {
      shown.add(at)
      const value = values[name]
      const isDue = state.isSent || value !== first[name]
      return {
        value: typeof value === 'string' ? value : '',
        error: param === at ? state.problem?.message : isDue ? faults[at] : undefined,
        onChange: ({ target }) => setValues((now) => ({ ...now, [name]: target.value })),
      }
    },
    // Read after the fields have been rendered.
    get problem() {
      return shown.has(param) ? null : state.problem
    },
  }
}

interface FormProps<Values extends object> {
  readonly form: FormState<Values>
  /** The text of the button. */
  readonly verb: string
  readonly tone?: 'primary' | 'danger' | 'plain'
  /** Adds a button to leave the form. */
  readonly onCancel?: () => void
  readonly className?: string
  /** Errors are those of `check`, not the browser's. */
  readonly noValidate?: boolean
  readonly children?: ReactNode
  /** Advice about a refusal. */
  readonly advice?: ((problem: Problem) => ReactNode) | undefined
}

/** A form with its fields, the refusal and the buttons. */
export function Form<Values extends object>(props: FormProps<Values>) {
  const { form, verb, tone = 'primary', onCancel, className = '', noValidate, advice } = props
  const { problem } = form
  return (
    <form
      className={`form stack gap-16 ${className}`.trimEnd()}
      noValidate={noValidate}
      onSubmit={form.submit}
    >
      {props.children}
      <ProblemLine problem={problem} />
      {problem === null ? null : advice?.(problem)}
      <footer className={onCancel === undefined ? undefined : 'dialog-foot row'}>
        {onCancel === undefined ? null : <Button onClick={onCancel}>Cancel</Button>}
        <Button type="submit" tone={tone} busy={form.busy}>
          {verb}
        </Button>
      </footer>
    </form>
  )
}
