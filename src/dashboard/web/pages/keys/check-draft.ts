/** Validates the fields of a key while they are edited. The server validates them again. Pure. */
import type { Plan } from '../../../server/schema/schema.js'
import { exactCount, exactDollars } from '../../format/number.js'
import { endMs, labelsIn, LIMIT_FIELDS, toolsIn, type Draft, type LimitField } from './key-draft.js'

/** A field, as the API names it in `param`. */
export type Field =
  'name' | 'expiresAtMs' | 'models' | 'allowTools' | 'labels' | `limits.${LimitField['name']}`

/** Error texts by field. */
export type Faults = Readonly<Partial<Record<Field, string>>>

const MAX_NAME = 100
const MAX_MODELS = 100
const MAX_LABELS = 16
const MAX_TOOLS = 64
const TOOL = /^[A-Za-z][\w-]{0,63}$/
const LABEL_NAME = /^[a-z0-9_.-]{1,32}$/
const LABEL_VALUE = /^[!-+\--~]{1,64}$/

/** All errors of a draft. */
export function faultsOf(draft: Draft, plan: Pick<Plan, 'name' | 'limits'>, nowMs: number): Faults {
  const faults: Partial<Record<Field, string>> = {}
  const note = (field: Field, fault: string | null): void => {
    if (fault !== null) faults[field] = fault
  }
  note('name', nameFault(draft.name))
  note('expiresAtMs', expiryFault(draft, nowMs))
  note('models', modelsFault(draft))
  note('allowTools', toolsFault(draft))
  note('labels', labelsFault(draft.labels))
  if (draft.limited) {
    for (const field of LIMIT_FIELDS) note(`limits.${field.name}`, limitFault(draft, plan, field))
  }
  return faults
}

function nameFault(name: string): string | null {
  const length = Array.from(name.trim()).length
  if (length === 0) return 'Enter a name.'
  if (length > MAX_NAME) return `Use at most ${MAX_NAME} characters.`
  return /\p{Cc}/u.test(name) ? 'Remove the control characters.' : null
}

function expiryFault(draft: Draft, nowMs: number): string | null {
  if (draft.expiry === 'keep') return null
  const ms = endMs(draft, nowMs)
  if (ms === null) return null
  if (Number.isNaN(ms)) return 'Choose a day.'
  return ms <= nowMs ? 'Choose a day in the future.' : null
}

function modelsFault({ someModels, models }: Draft): string | null {
  if (!someModels) return null
  if (models.length === 0) return 'Choose at least one model.'
  return models.length > MAX_MODELS ? `Choose at most ${MAX_MODELS} models.` : null
}

/** The error of a model id or pattern; null if it is valid. */
export function modelFault(id: string): string | null {
  if (!/^[!-~]{1,256}$/.test(id)) return 'Use 1 to 256 printable ASCII characters without spaces.'
  return id.slice(0, -1).includes('*') ? 'Put the * at the end.' : null
}

function toolsFault({ tools, toolNames }: Draft): string | null {
  if (tools !== 'some') return null
  const names = toolsIn(toolNames)
  if (names.length === 0) return 'Enter at least one tool.'
  if (names.length > MAX_TOOLS) return `Enter at most ${MAX_TOOLS} tools.`
  const wrong = names.find((name) => !TOOL.test(name))
  return wrong === undefined ? null : `"${wrong}" is not the name of a tool.`
}

function labelsFault(text: string): string | null {
  const labels = Object.entries(labelsIn(text))
  if (labels.length > MAX_LABELS) return `Use at most ${MAX_LABELS} labels.`
  for (const [name, value] of labels) {
    if (!LABEL_NAME.test(name)) return `Use a-z, 0-9, "_", "." and "-" in the name "${name}".`
    if (value === '') return `Write "${name}" as ${name}=value.`
    if (!LABEL_VALUE.test(value)) return `Use printable ASCII characters in the value of "${name}".`
  }
  return null
}

function limitFault(
  { limits }: Draft,
  plan: Pick<Plan, 'name' | 'limits'>,
  { name, unit, step }: LimitField,
): string | null {
  const text = limits[name]
  if (text === '') return null
  const value = Number(text)
  if (!(value >= step)) return `Enter ${step} or more, or leave it empty.`
  if (unit === 1 && !Number.isInteger(value)) return 'Enter a whole number.'
  const most = plan.limits[name]
  if (most === undefined || Math.round(value * unit) <= most) return null
  const shown = unit === 1 ? exactCount(most) : exactDollars(most)
  return `The plan allows ${shown} at most.`
}
