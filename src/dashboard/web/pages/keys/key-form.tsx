/**
 * The form of a key's name, expiry, models, tools, limits and labels, for new and existing keys. An error
 * appears beside its field once the field was changed or the form was submitted.
 */
import {
  useRef,
  useState,
  useId,
  type Dispatch,
  type FormEvent,
  type ReactNode,
  type SetStateAction,
} from 'react'
import type { Plan, ModelsReply } from '../../../server/schema/schema.js'
import type { Problem } from '../../api/client.js'
import { useResource } from '../../api/cache.js'
import { Button } from '../../components/button.js'
import { FormFoot } from '../../components/dialog.js'
import { SelectField, TextField, useSubmit } from '../../components/form.js'
import { ProblemLine } from '../../components/states.js'
import { exactCount, exactDollars, plural } from '../../format/number.js'
import { date, fullTime } from '../../format/time.js'
import { useRights } from '../../shell/session.js'
import {
  faultsOf,
  LIMIT_FIELDS,
  modelFault,
  type Faults,
  type Field,
  type Draft,
  type LimitField,
} from './key-draft.js'

const EXPIRIES = [7, 30, 90, 365]

interface FieldsProps {
  readonly draft: Draft
  readonly setDraft: Dispatch<SetStateAction<Draft>>
  /** The values before any change. */
  readonly initial: Draft
  /** The form was submitted: all errors are shown. */
  readonly isSent: boolean
  readonly problem: Problem | null
  /** The current expiry of the key; null: never, or a new key. */
  readonly endsAtMs: number | null
  /** The plan of the key's account. */
  readonly plan: Plan
  /** The dialog begins at another field than the name. */
  readonly isInside?: boolean
  /** More fields, at the end. */
  readonly children?: ReactNode
}

interface FormProps extends Pick<
  FieldsProps,
  'initial' | 'endsAtMs' | 'plan' | 'isInside' | 'children'
> {
  /** The button's text. */
  readonly verb: string
  readonly send: (draft: Draft) => Promise<void>
  readonly onClose: () => void
  /** Advice for a refusal. */
  readonly advice?: (problem: Problem) => ReactNode
}

/** The whole form. Only a valid form is sent. */
export function KeyForm({ verb, send, onClose, advice, ...rest }: FormProps) {
  const { plan } = rest
  const [draft, setDraft] = useState(rest.initial)
  const [isSent, setSent] = useState(false)
  const form = useRef<HTMLFormElement>(null)
  const { busy, problem, submit } = useSubmit(() => send(draft))
  const onSubmit = (event: FormEvent): void => {
    setSent(true)
    if (Object.keys(faultsOf(draft, plan, Date.now())).length === 0) {
      submit(event)
      return
    }
    event.preventDefault()
    // Runs after the errors have been rendered.
    setTimeout(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus())
  }
  return (
    <form ref={form} className="form" noValidate onSubmit={onSubmit}>
      <KeyFields {...rest} {...{ draft, setDraft, isSent, problem }} />
      {problem === null ? null : advice?.(problem)}
      <FormFoot verb={verb} busy={busy} sticky onCancel={onClose} />
    </form>
  )
}

function KeyFields(props: FieldsProps) {
  const { draft, setDraft, problem, endsAtMs, plan, isInside = false, children } = props
  const errors = errorsOf(props, faultsOf(draft, plan, Date.now()))
  const isPlaced = problem?.param !== undefined && refusedField(problem) !== null
  return (
    <>
      <TextField
        label="Name"
        hint="Where the key is used: ci-runner, laptop."
        autoFocus={!isInside}
        maxLength={100}
        autoComplete="off"
        error={errors.name}
        value={draft.name}
        onChange={(event) => setDraft({ ...draft, name: event.target.value })}
      />
      <ExpiryFields {...{ draft, setDraft, endsAtMs }} error={errors.expiresAtMs} />
      <SelectField
        label="Models"
        value={draft.someModels ? 'some' : 'all'}
        onChange={(event) => setDraft({ ...draft, someModels: event.target.value === 'some' })}
      >
        <option value="all">all</option>
        <option value="some">only some</option>
      </SelectField>
      {draft.someModels ? (
        <ModelPicker
          chosen={draft.models}
          error={errors.models}
          onChange={(models) => setDraft({ ...draft, models })}
        />
      ) : null}
      <ToolsFields {...{ draft, setDraft }} error={errors.allowTools} />
      <LimitsFields {...{ draft, setDraft, errors, plan }} />
      <TextField
        label="Labels"
        hint="Optional, for usage by label, limits and routes: team=research env=ci."
        autoComplete="off"
        spellCheck={false}
        error={errors.labels}
        value={draft.labels}
        onChange={(event) => setDraft({ ...draft, labels: event.target.value })}
      />
      {children}
      {problem === null || isPlaced ? null : <ProblemLine problem={problem} />}
    </>
  )
}

/** The errors to show: the server's, otherwise those of changed fields. */
function errorsOf({ draft, initial, isSent, problem }: FieldsProps, faults: Faults): Faults {
  const refused = problem === null ? null : refusedField(problem)
  const isChanged = (field: Field): boolean => {
    if (isSent) return true
    switch (field) {
      case 'name':
        return draft.name !== initial.name
      case 'expiresAtMs':
        return draft.date !== initial.date
      case 'models':
        return draft.models !== initial.models
      case 'allowTools':
        return draft.toolNames !== initial.toolNames
      case 'labels':
        return draft.labels !== initial.labels
      default:
        return draft.limits !== initial.limits
    }
  }
  const shown = Object.entries(faults).filter(([field]) => isChanged(field as Field))
  return {
    ...Object.fromEntries(shown),
    ...(refused === null || problem === null ? {} : { [refused]: problem.message }),
  }
}

/** The field of a refusal; null if the form does not have it. */
function refusedField({ param = '' }: Problem): Field | null {
  if (param === 'name' || param === 'expiresAtMs') return param
  if (param.startsWith('models')) return 'models'
  if (param.startsWith('allowTools')) return 'allowTools'
  if (param.startsWith('labels')) return 'labels'
  const limit = LIMIT_FIELDS.find(({ name }) => param === `limits.${name}`)
  return limit === undefined ? null : `limits.${limit.name}`
}

type PartProps = Pick<FieldsProps, 'draft' | 'setDraft'>

interface ExpiryProps extends PartProps, Pick<FieldsProps, 'endsAtMs'> {
  readonly error: string | undefined
}

function ExpiryFields({ draft, setDraft, endsAtMs, error }: ExpiryProps) {
  const today = new Date(Date.now() - new Date().getTimezoneOffset() * 60_000)
  const isDate = draft.expiry === 'date'
  const now = Date.now()
  return (
    <>
      <SelectField
        label="Expires"
        {...(isDate ? {} : { error })}
        value={draft.expiry}
        onChange={(event) => setDraft({ ...draft, expiry: event.target.value })}
      >
        {endsAtMs === null ? null : (
          <option value="keep" title={fullTime(endsAtMs)}>
            {endsAtMs > now
              ? `on ${date(endsAtMs, now)}, as now`
              : `expired ${date(endsAtMs, now)}`}
          </option>
        )}
        <option value="">never</option>
        {EXPIRIES.map((days) => (
          <option key={days} value={days}>
            in {days} days
          </option>
        ))}
        <option value="date">at the end of a day…</option>
      </SelectField>
      {isDate ? (
        <TextField
          label="Last day"
          type="date"
          min={today.toISOString().slice(0, 10)}
          error={error}
          value={draft.date}
          onChange={(event) => setDraft({ ...draft, date: event.target.value })}
        />
      ) : null}
    </>
  )
}

interface ToolsProps extends PartProps {
  readonly error: string | undefined
}

/** The tools that providers run; only administrators may allow any. */
function ToolsFields({ draft, setDraft, error }: ToolsProps) {
  const { isAdmin } = useRights()
  return (
    <>
      <SelectField
        label="Tools of providers"
        hint="Web search, code interpreters and others that cost extra or reach other models and hosts."
        {...(draft.tools === 'some' ? {} : { error })}
        value={draft.tools}
        onChange={(event) => setDraft({ ...draft, tools: event.target.value })}
      >
        <option value="upstream">as the gateway allows</option>
        <option value="none">none</option>
        {isAdmin || draft.tools === 'some' ? <option value="some">only some</option> : null}
        {isAdmin || draft.tools === 'all' ? <option value="all">all</option> : null}
      </SelectField>
      {draft.tools === 'some' ? (
        <TextField
          label="Allowed tools"
          hint="Names with spaces between them: web_search mcp code_interpreter."
          autoComplete="off"
          spellCheck={false}
          error={error}
          value={draft.toolNames}
          onChange={(event) => setDraft({ ...draft, toolNames: event.target.value })}
        />
      ) : null}
    </>
  )
}

interface LimitsProps extends PartProps, Pick<FieldsProps, 'plan'> {
  readonly errors: Faults
}

function LimitsFields({ draft, setDraft, errors, plan }: LimitsProps) {
  return (
    <>
      <SelectField
        label="Limits"
        value={draft.limited ? 'own' : 'plan'}
        onChange={(event) => setDraft({ ...draft, limited: event.target.value === 'own' })}
      >
        <option value="plan">of the plan</option>
        <option value="own">of this key, within the plan</option>
      </SelectField>
      {draft.limited ? (
        <div className="field-grid limit-fields">
          {LIMIT_FIELDS.map((field) => (
            <LimitInput
              key={field.name}
              field={field}
              plan={plan}
              error={errors[`limits.${field.name}`]}
              value={draft.limits[field.name]}
              onChange={(value) =>
                setDraft({ ...draft, limits: { ...draft.limits, [field.name]: value } })
              }
            />
          ))}
        </div>
      ) : null}
    </>
  )
}

interface LimitInputProps {
  readonly field: LimitField
  readonly plan: Plan
  readonly error: string | undefined
  readonly value: string
  readonly onChange: (value: string) => void
}

function LimitInput({ field, plan, error, value, onChange }: LimitInputProps) {
  const { name, label, unit, step } = field
  const most = plan.limits[name]
  const isMoney = unit !== 1
  return (
    <TextField
      label={label}
      type="number"
      min={step}
      step={step}
      inputMode={isMoney ? 'decimal' : 'numeric'}
      placeholder="no limit"
      {...(most === undefined
        ? {}
        : { hint: `Plan ${plan.name}: ${isMoney ? exactDollars(most) : exactCount(most)}` })}
      error={error}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

interface PickerProps {
  readonly chosen: readonly string[]
  readonly onChange: (chosen: readonly string[]) => void
  readonly error: string | undefined
}

/** The choices: `*` patterns of routes, then aliases, then models. */
function choicesOf({ models, aliases }: ModelsReply): string[] {
  const served = models.filter(({ route }) => route?.configured === true)
  const prefixes = served.flatMap(({ route }) => {
    const label = route?.label ?? ''
    return label.endsWith('-') ? [`${label}*`] : []
  })
  return [...new Set([...prefixes, ...aliases.map(({ id }) => id), ...served.map(({ id }) => id)])]
}

/** Check boxes with a search. A searched id that is not listed can be added. */
function ModelPicker({ chosen, onChange, error }: PickerProps) {
  const id = useId()
  const { data } = useResource('/models')
  const [search, setSearch] = useState('')
  const listed = data === null ? [] : choicesOf(data)
  const all = [...chosen.filter((model) => !listed.includes(model)), ...listed]
  const wanted = search.trim()
  const shown = all.filter((model) => model.toLowerCase().includes(wanted.toLowerCase()))
  const isNew = wanted !== '' && !all.includes(wanted)
  const fault = isNew && shown.length === 0 ? modelFault(wanted) : null
  const toggle = (model: string): void =>
    onChange(chosen.includes(model) ? chosen.filter((one) => one !== model) : [...chosen, model])
  const add = (): void => {
    onChange([...chosen, wanted])
    setSearch('')
  }
  return (
    <fieldset
      className={error === undefined ? 'field picker' : 'field picker wrong'}
      aria-describedby={`${id}-hint${error === undefined ? '' : ` ${id}-error`}`}
    >
      <legend className="field-label">Allowed models</legend>
      <input
        type="search"
        className="input"
        aria-label="Search models"
        placeholder="Search models"
        value={search}
        onChange={(event) => setSearch(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return
          // Otherwise Enter would submit the form.
          event.preventDefault()
          const [only] = shown
          if (shown.length === 1 && only !== undefined) toggle(only)
          else if (isNew && fault === null) add()
        }}
      />
      <div className="picker-list" tabIndex={-1}>
        {shown.map((model) => (
          <ModelBox
            key={model}
            model={model}
            isChosen={chosen.includes(model)}
            toggle={() => toggle(model)}
          />
        ))}
        {isNew && fault === null ? (
          <Button tone="quiet" icon="plus" onClick={add}>
            Add "{wanted}"
          </Button>
        ) : null}
      </div>
      <Notes id={id} error={fault ?? error} chosen={chosen} />
    </fieldset>
  )
}

interface BoxProps {
  readonly model: string
  readonly isChosen: boolean
  readonly toggle: () => void
}

function ModelBox({ model, isChosen, toggle }: BoxProps) {
  return (
    <label className="picker-item">
      <input type="checkbox" checked={isChosen} onChange={toggle} />
      <span>{model}</span>
      {model.endsWith('*') ? (
        <span className="soft">every id that begins with {model.slice(0, -1)}</span>
      ) : null}
    </label>
  )
}

interface NotesProps {
  readonly id: string
  readonly error: string | undefined
  readonly chosen: readonly string[]
}

function Notes({ id, error, chosen }: NotesProps) {
  return (
    <>
      {error === undefined ? null : (
        <p id={`${id}-error`} className="field-error">
          {error}
        </p>
      )}
      <p id={`${id}-hint`} className="field-hint">
        {plural(chosen.length, 'model')} chosen
        {chosen.length === 0 ? '' : `: ${chosen.join(', ')}`}
      </p>
    </>
  )
}
