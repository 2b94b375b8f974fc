/**
 * What may be said of a key: its name, its end, its models, its limits. The same fields make a key and
 * change one; what was wrong stands beside the field that it is about.
 */
import type { Dispatch, SetStateAction } from 'react'
import type {
  ChangeKeyBody,
  CreateKeyBody,
  Key,
  KeyLimits,
  Plan,
} from '../../../server/schema/schema.js'
import type { Problem } from '../../api/client.js'
import { useResource } from '../../api/resource.js'
import { exampleOf } from '../../api/served-model.js'
import { DAY_MS } from '../../format/buckets.js'
import { exactCount, exactDollars } from '../../format/number.js'
import { date, fullTime } from '../../format/time.js'
import { SelectField, TextArea, TextField } from '../../parts/forms/field.js'
import { ProblemLine } from '../../parts/states/states.js'
import { useAccount } from '../../shell/session.js'

const EXPIRIES = [7, 30, 90, 365]
const NANO = 1e9

type LimitName = keyof KeyLimits

interface LimitField {
  readonly name: LimitName
  readonly label: string
  /** How many of the API's units one of the field's is. */
  readonly unit: number
  readonly step: number
}

const LIMITS: readonly LimitField[] = [
  { name: 'requestsPerMinute', label: 'Requests per minute', unit: 1, step: 1 },
  { name: 'tokensPerMinute', label: 'Tokens per minute', unit: 1, step: 1 },
  { name: 'concurrent', label: 'Requests at once', unit: 1, step: 1 },
  { name: 'nanoUsdPerDay', label: 'Dollars per day (UTC)', unit: NANO, step: 0.01 },
  { name: 'nanoUsdPerMonth', label: 'Dollars per month (UTC)', unit: NANO, step: 0.01 },
]

/** What has been put in so far. */
export interface Draft {
  readonly name: string
  /** Days, or: never (empty), `keep`, `date`. */
  readonly expiry: string
  /** `2027-04-01`, where `expiry` says so. */
  readonly date: string
  readonly someModels: boolean
  readonly models: string
  readonly limited: boolean
  readonly limits: Readonly<Record<LimitName, string>>
}

const NO_LIMITS: Draft['limits'] = {
  requestsPerMinute: '',
  tokensPerMinute: '',
  concurrent: '',
  nanoUsdPerDay: '',
  nanoUsdPerMonth: '',
}

/** A new key, before anything is said of it. */
export const BLANK: Draft = {
  name: '',
  expiry: '',
  date: '',
  someModels: false,
  models: '',
  limited: false,
  limits: NO_LIMITS,
}

/** A key as it is. */
export function draftOf({ name, expiresAtMs, models, limits }: Key): Draft {
  const shown = LIMITS.map(({ name, unit }): [LimitName, string] => {
    const value = limits[name]
    return [name, value === undefined ? '' : String(value / unit)]
  })
  return {
    ...BLANK,
    name,
    expiry: expiresAtMs === null ? '' : 'keep',
    someModels: models !== null,
    models: models?.join(' ') ?? '',
    limited: Object.keys(limits).length > 0,
    limits: { ...NO_LIMITS, ...Object.fromEntries(shown) },
  }
}

/** What makes the key. */
export function createBody(draft: Draft): CreateKeyBody {
  return { ...changeBody(draft), name: draft.name }
}

/** What makes a key be as the draft says. */
export function changeBody(draft: Draft): ChangeKeyBody {
  const ids = draft.models.split(/[\s,]+/).filter((model) => model !== '')
  return {
    name: draft.name,
    ...(draft.expiry === 'keep' ? {} : { expiresAtMs: endOf(draft) }),
    models: draft.someModels ? ids : null,
    limits: draft.limited ? limitsOf(draft) : {},
  }
}

function endOf({ expiry, date }: Draft): number | null {
  if (expiry === '') return null
  if (expiry !== 'date') return Date.now() + Number(expiry) * DAY_MS
  // The whole day that was named, as the reader's clock has it.
  return new Date(`${date}T00:00:00`).getTime() + DAY_MS
}

function limitsOf({ limits }: Draft): KeyLimits {
  return Object.fromEntries(
    LIMITS.filter(({ name }) => limits[name] !== '').map(({ name, unit }) => [
      name,
      Math.round(Number(limits[name]) * unit),
    ]),
  )
}

interface FieldsProps {
  readonly draft: Draft
  readonly setDraft: Dispatch<SetStateAction<Draft>>
  readonly problem: Problem | null
  /** When the key ends as it is; null: never, or there is none yet. */
  readonly endsAtMs: number | null
}

/** The fields, and what was wrong. */
export function KeyFields({ draft, setDraft, problem, endsAtMs }: FieldsProps) {
  const at = problem?.param ?? ''
  const errorAt = (field: string): string | undefined =>
    at === field || at.startsWith(`${field}.`) ? problem?.message : undefined
  const isPlaced =
    ['name', 'expiresAtMs'].includes(at) ||
    at.startsWith('labels') ||
    (draft.someModels && at.startsWith('models')) ||
    (draft.limited && LIMITS.some(({ name }) => at === `limits.${name}`))
  return (
    <>
      <TextField
        label="Name"
        hint="Where it is used: ci-runner, laptop."
        autoFocus
        required
        maxLength={100}
        autoComplete="off"
        error={errorAt('name')}
        value={draft.name}
        onChange={(event) => setDraft({ ...draft, name: event.target.value })}
      />
      <ExpiryFields {...{ draft, setDraft, endsAtMs }} error={errorAt('expiresAtMs')} />
      <ModelsFields {...{ draft, setDraft }} error={errorAt('models')} />
      <LimitsFields {...{ draft, setDraft }} errorAt={(name) => errorAt(`limits.${name}`)} />
      {problem === null || isPlaced ? null : <ProblemLine problem={problem} />}
    </>
  )
}

type PartProps = Pick<FieldsProps, 'draft' | 'setDraft'> & { readonly error: string | undefined }

function ExpiryFields({
  draft,
  setDraft,
  endsAtMs,
  error,
}: PartProps & Pick<FieldsProps, 'endsAtMs'>) {
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
          required
          min={today.toISOString().slice(0, 10)}
          error={error}
          value={draft.date}
          onChange={(event) => setDraft({ ...draft, date: event.target.value })}
        />
      ) : null}
    </>
  )
}

function ModelsFields({ draft, setDraft, error }: PartProps) {
  const { data } = useResource('/models', {}, { enabled: draft.someModels })
  const example = exampleOf(data?.models ?? [])
  return (
    <>
      <SelectField
        label="Models"
        value={draft.someModels ? 'some' : 'all'}
        onChange={(event) => setDraft({ ...draft, someModels: event.target.value === 'some' })}
      >
        <option value="all">all</option>
        <option value="some">only some</option>
      </SelectField>
      {draft.someModels ? (
        <TextArea
          label="Allowed models"
          hint={`Ids with spaces between them, such as ${example}; claude-* allows all that begin so.`}
          rows={2}
          required
          spellCheck={false}
          error={error}
          value={draft.models}
          onChange={(event) => setDraft({ ...draft, models: event.target.value })}
        />
      ) : null}
    </>
  )
}

type LimitsProps = Pick<FieldsProps, 'draft' | 'setDraft'> & {
  readonly errorAt: (name: LimitName) => string | undefined
}

function LimitsFields({ draft, setDraft, errorAt }: LimitsProps) {
  const { plan } = useAccount()
  return (
    <>
      <SelectField
        label="Limits"
        value={draft.limited ? 'own' : 'plan'}
        onChange={(event) => setDraft({ ...draft, limited: event.target.value === 'own' })}
      >
        <option value="plan">those of the plan</option>
        <option value="own">of its own, within the plan</option>
      </SelectField>
      {draft.limited ? (
        <div className="field-grid">
          {LIMITS.map((field) => (
            <LimitInput
              key={field.name}
              field={field}
              plan={plan}
              error={errorAt(field.name)}
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
  const isMoney = unit === NANO
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
        : { hint: `${plan.name}: ${isMoney ? exactDollars(most) : exactCount(most)}` })}
      error={error}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}
