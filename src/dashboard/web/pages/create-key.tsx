/**
 * Making a key: one dialog that asks, and then turns into the secret. The secret is in the state of this
 * dialog and nowhere else, so it is gone with it.
 */
import { useState, type Dispatch, type SetStateAction } from 'react'
import type { CreatedKeyReply, CreateKeyBody, KeyLimits } from '../../schema.js'
import { change } from '../api/calls.js'
import { useResource } from '../api/resource.js'
import { exampleOf } from '../api/served-model.js'
import { DAY_MS } from '../format/buckets.js'
import { Button } from '../parts/button.js'
import { Dialog } from '../parts/dialog.js'
import { SelectField, TextArea, TextField } from '../parts/field.js'
import { ProblemLine } from '../parts/states.js'
import { Link } from '../routing/link.js'
import { useSubmit } from './door.js'
import { Secret } from './secret.js'

const EXPIRIES = [7, 30, 90, 365]
const NANO = 1e9

/** Asks for a name and makes a key; afterwards shows its secret once. */
export function CreateKey({ onClose }: { readonly onClose: () => void }) {
  const [made, setMade] = useState<CreatedKeyReply | null>(null)
  return made === null ? (
    <Dialog title="Create key" onClose={onClose}>
      <Form onMade={setMade} onClose={onClose} />
    </Dialog>
  ) : (
    <Secret made={made} onClose={onClose} />
  )
}

interface Draft {
  readonly name: string
  readonly days: string
  readonly models: string
  readonly limited: boolean
  readonly requestsPerMinute: string
  readonly tokensPerMinute: string
  readonly concurrent: string
  readonly usdPerMonth: string
}

const BLANK: Draft = {
  name: '',
  days: '',
  models: '',
  limited: false,
  requestsPerMinute: '',
  tokensPerMinute: '',
  concurrent: '',
  usdPerMonth: '',
}

function bodyOf(draft: Draft): CreateKeyBody {
  const models = draft.models.split(/[\s,]+/).filter((model) => model !== '')
  return {
    name: draft.name,
    ...(draft.days === '' ? {} : { expiresAtMs: Date.now() + Number(draft.days) * DAY_MS }),
    ...(models.length === 0 ? {} : { models }),
    ...(draft.limited ? { limits: limitsOf(draft) } : {}),
  }
}

function limitsOf(draft: Draft): KeyLimits {
  const { requestsPerMinute, tokensPerMinute, concurrent, usdPerMonth } = draft
  return {
    ...(requestsPerMinute === '' ? {} : { requestsPerMinute: Number(requestsPerMinute) }),
    ...(tokensPerMinute === '' ? {} : { tokensPerMinute: Number(tokensPerMinute) }),
    ...(concurrent === '' ? {} : { concurrent: Number(concurrent) }),
    ...(usdPerMonth === '' ? {} : { nanoUsdPerMonth: Math.round(Number(usdPerMonth) * NANO) }),
  }
}

interface FormProps {
  readonly onMade: (made: CreatedKeyReply) => void
  readonly onClose: () => void
}

function Form({ onMade, onClose }: FormProps) {
  const [draft, setDraft] = useState(BLANK)
  const { busy, problem, submit } = useSubmit(async () => {
    onMade(await change('POST /keys', bodyOf(draft)))
  })
  const at = problem?.status === 400 ? problem.param : undefined
  const errorAt = (field: string): string | undefined =>
    at?.split('.')[0] === field ? problem?.message : undefined
  const told = problem !== null && !['name', 'models'].includes(at ?? '')
  return (
    <form className="form" onSubmit={submit}>
      <TextField
        label="Name"
        hint="Where it will be used: ci-runner, laptop."
        autoFocus
        required
        maxLength={100}
        autoComplete="off"
        error={errorAt('name')}
        value={draft.name}
        onChange={(event) => setDraft({ ...draft, name: event.target.value })}
      />
      <SelectField
        label="Expires"
        value={draft.days}
        onChange={(event) => setDraft({ ...draft, days: event.target.value })}
      >
        <option value="">never</option>
        {EXPIRIES.map((days) => (
          <option key={days} value={days}>
            in {days} days
          </option>
        ))}
      </SelectField>
      <ModelsField draft={draft} setDraft={setDraft} error={errorAt('models')} />
      <LimitsFields draft={draft} setDraft={setDraft} />
      {told ? <ProblemLine problem={problem} /> : null}
      {problem?.kind === 'plan_limit' ? (
        <p className="soft">
          <Link to="/keys" onClick={onClose}>
            See which keys are not used
          </Link>
        </p>
      ) : null}
      <footer className="dialog-foot">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" tone="primary" busy={busy}>
          Create
        </Button>
      </footer>
    </form>
  )
}

interface DraftProps {
  readonly draft: Draft
  readonly setDraft: Dispatch<SetStateAction<Draft>>
}

function ModelsField({ draft, setDraft, error }: DraftProps & { error: string | undefined }) {
  const [chosen, setChosen] = useState(false)
  const { data } = useResource('/models', {}, { enabled: chosen })
  const example = exampleOf(data?.models ?? [])
  return (
    <>
      <SelectField
        label="Models"
        value={chosen ? 'some' : 'all'}
        onChange={(event) => {
          setChosen(event.target.value === 'some')
          setDraft({ ...draft, models: '' })
        }}
      >
        <option value="all">all</option>
        <option value="some">only some</option>
      </SelectField>
      {chosen ? (
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

const LIMITS = [
  { field: 'requestsPerMinute', label: 'Requests per minute', step: 1 },
  { field: 'tokensPerMinute', label: 'Tokens per minute', step: 1 },
  { field: 'concurrent', label: 'Requests at once', step: 1 },
  { field: 'usdPerMonth', label: 'Dollars per month', step: 0.01 },
] as const

function LimitsFields({ draft, setDraft }: DraftProps) {
  return (
    <>
      <SelectField
        label="Limits"
        value={draft.limited ? 'own' : 'plan'}
        onChange={(event) => setDraft({ ...draft, limited: event.target.value === 'own' })}
      >
        <option value="plan">plan default</option>
        <option value="own">of its own, within the plan</option>
      </SelectField>
      {draft.limited ? (
        <div className="field-grid">
          {LIMITS.map(({ field, label, step }) => (
            <TextField
              key={field}
              label={label}
              type="number"
              min={step}
              step={step}
              inputMode="decimal"
              placeholder="no limit"
              value={draft[field]}
              onChange={(event) => setDraft({ ...draft, [field]: event.target.value })}
            />
          ))}
        </div>
      ) : null}
    </>
  )
}
