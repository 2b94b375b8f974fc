/** The fields of a key's name, expiry, models, tools, limits and labels, for new and existing keys. */
import { useState, useId } from 'react'
import type { Plan, ModelsReply } from '../../../../control/dashboard/schema/schema.js'
import { useResource } from '../../api/use-resource.js'
import { Button } from '../../components/button.js'
import { DateField } from '../../components/date-picker.js'
import { SelectField, TextField, type FormState } from '../../components/form.js'
import { exactCount, exactDollars, plural } from '../../format/number.js'
import { date, fullTime, inputTime } from '../../format/time.js'
import { useRights } from '../../shell/session.js'
import { LIMIT_FIELDS, modelFault, type Draft, type LimitField } from './key-draft.js'

const EXPIRIES = [7, 30, 90, 365]

interface FieldsProps {
  readonly form: FormState<Draft>
  /** The plan of the key's account. */
  readonly plan: Plan
  /** The current expiry of the key; null: never, or a new key. */
  readonly endsAtMs: number | null
  /** The dialog begins at another field than the name. */
  readonly isInside?: boolean
}

export function KeyFields({ form, plan, endsAtMs, isInside = false }: FieldsProps) {
  const { values: draft, set, field } = form
  return (
    <>
      <TextField
        label="Name"
        hint="Where the key is used: ci-runner, laptop."
        autoFocus={!isInside}
        maxLength={100}
        autoComplete="off"
        {...field('name')}
      />
      <ExpiryFields form={form} endsAtMs={endsAtMs} />
      <SelectField
        label="Models"
        options={[
          { value: 'all', label: 'all' },
          { value: 'some', label: 'only some' },
        ]}
        {...field('some')}
      />
      {draft.some === 'some' ? (
        <ModelPicker
          chosen={draft.models}
          error={field('models').error}
          onChange={(models) => set({ models })}
        />
      ) : null}
      <ToolsFields form={form} />
      <SelectField
        label="Limits"
        options={[
          { value: 'plan', label: 'of the plan' },
          { value: 'own', label: 'of this key, within the plan' },
        ]}
        {...field('limited')}
      />
      {draft.limited === 'own' ? (
        <div className="field-grid limit-fields">
          {LIMIT_FIELDS.map((limit) => (
            <LimitInput key={limit.name} {...{ form, plan, limit }} />
          ))}
        </div>
      ) : null}
      <TextField
        label="Labels"
        hint="Optional, for usage by label, limits and routes: team=research env=ci."
        autoComplete="off"
        spellCheck={false}
        {...field('labels')}
      />
    </>
  )
}

function ExpiryFields({ form: { values, field }, endsAtMs }: Pick<FieldsProps, 'form' | 'endsAtMs'>) {
  const now = Date.now()
  const kept = endsAtMs === null ? [] : [keptExpiry(endsAtMs, now)]
  const days = EXPIRIES.map((each) => ({ value: String(each), label: `in ${each} days` }))
  const isDate = values.expiry === 'date'
  const options = [
    ...kept,
    { value: '', label: 'never' },
    ...days,
    { value: 'date', label: 'at the end of a day…' },
  ]
  return (
    <>
      <SelectField
        label="Expires"
        options={options}
        {...field('expiry', isDate ? undefined : 'expiresAtMs')}
      />
      {isDate ? (
        <DateField label="Last day" min={inputTime(now).slice(0, 10)} {...field('date', 'expiresAtMs')} />
      ) : null}
    </>
  )
}

function keptExpiry(ms: number, now: number) {
  const label = ms > now ? `on ${date(ms, now)}, as now` : `expired ${date(ms, now)}`
  return { value: 'keep', label, title: fullTime(ms) }
}

/** The tools that providers run; only administrators may allow any. */
function ToolsFields({ form: { values, field } }: Pick<FieldsProps, 'form'>) {
  const { isAdmin } = useRights()
  const isSome = values.tools === 'some'
  const options = [
    { value: 'upstream', label: 'as the gateway allows' },
    { value: 'none', label: 'none' },
    ...(isAdmin || isSome ? [{ value: 'some', label: 'only some' }] : []),
    ...(isAdmin || values.tools === 'all' ? [{ value: 'all', label: 'all' }] : []),
  ]
  return (
    <>
      <SelectField
        label="Tools of providers"
        hint="Web search, code interpreters and others that cost extra or reach other models and hosts."
        options={options}
        {...field('tools', isSome ? undefined : 'allowTools')}
      />
      {isSome ? (
        <TextField
          label="Allowed tools"
          hint="Names with spaces between them: web_search mcp code_interpreter."
          autoComplete="off"
          spellCheck={false}
          {...field('toolNames', 'allowTools')}
        />
      ) : null}
    </>
  )
}

interface LimitInputProps extends Pick<FieldsProps, 'form' | 'plan'> {
  readonly limit: LimitField
}

function LimitInput({ form, plan, limit: { name, label, unit, step } }: LimitInputProps) {
  const most = plan.limits[name]
  const isMoney = unit !== 1
  const shown = isMoney ? exactDollars(most ?? 0) : exactCount(most ?? 0)
  return (
    <TextField
      label={label}
      type="number"
      min={step}
      step={step}
      inputMode={isMoney ? 'decimal' : 'numeric'}
      placeholder="no limit"
      hint={most === undefined ? undefined : `Plan ${plan.name}: ${shown}`}
      {...form.field(name, `limits.${name}`)}
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
      className={error === undefined ? 'field stack gap-4' : 'field stack gap-4 wrong'}
      aria-describedby={`${id}-hint${error === undefined ? '' : ` ${id}-error`}`}
    >
      <legend className="strong">Allowed models</legend>
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
      <div className="choices panel" tabIndex={-1}>
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
    <label className="row">
      <input type="checkbox" checked={isChosen} onChange={toggle} />
      <span>{model}</span>
      {model.endsWith('*') ? (
        <span className="note">every id that begins with {model.slice(0, -1)}</span>
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
        <p id={`${id}-error`} className="field-error small">
          {error}
        </p>
      )}
      <p id={`${id}-hint`} className="note">
        {plural(chosen.length, 'model')} chosen
        {chosen.length === 0 ? '' : `: ${chosen.join(', ')}`}
      </p>
    </>
  )
}
