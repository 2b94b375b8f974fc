/** The edited settings of a key, and the request bodies made from them. Pure; the clock is an argument. */
import type {
  ChangeKeyBody,
  CreateKeyBody,
  Key,
  KeyLimits,
  Plan,
} from '../../../../control/dashboard/schema/schema.js'
import type { Faults } from '../../components/form.js'
import { exactCount, exactDollars } from '../../format/number.js'
import { DAY_MS } from '../../format/time.js'

const NANO = 1e9
/** An entry that allows all tools. */
const ANY_TOOL = '*'

type LimitName = keyof KeyLimits

export interface LimitField {
  readonly name: LimitName
  readonly label: string
  /** After the amount, in a list. */
  readonly short: string
  /** Number of API units per unit of the field. */
  readonly unit: number
  readonly step: number
}

/** The fields in display order. */
export const LIMIT_FIELDS: readonly LimitField[] = [
  {
    name: 'requestsPerMinute',
    label: 'Requests per minute',
    short: 'requests / min',
    unit: 1,
    step: 1,
  },
  { name: 'tokensPerMinute', label: 'Tokens per minute', short: 'tokens / min', unit: 1, step: 1 },
  { name: 'concurrent', label: 'Concurrent requests', short: 'at once', unit: 1, step: 1 },
  { name: 'nanoUsdPerDay', label: 'Dollars per day (UTC)', short: '/ day', unit: NANO, step: 0.01 },
  {
    name: 'nanoUsdPerWeek',
    label: 'Dollars per week (UTC)',
    short: '/ week',
    unit: NANO,
    step: 0.01,
  },
  {
    name: 'nanoUsdPerMonth',
    label: 'Dollars per month (UTC)',
    short: '/ month',
    unit: NANO,
    step: 0.01,
  },
  { name: 'nanoUsdTotal', label: 'Dollars in all', short: 'in all', unit: NANO, step: 0.01 },
  { name: 'tokensPerDay', label: 'Tokens per day (UTC)', short: 'tokens / day', unit: 1, step: 1 },
  { name: 'tokensPerWeek', label: 'Tokens per week (UTC)', short: 'tokens / week', unit: 1, step: 1 },
  { name: 'tokensPerMonth', label: 'Tokens per month (UTC)', short: 'tokens / month', unit: 1, step: 1 },
  { name: 'tokensTotal', label: 'Tokens in all', short: 'tokens in all', unit: 1, step: 1 },
  { name: 'requestsTotal', label: 'Requests in all', short: 'requests in all', unit: 1, step: 1 },
  { name: 'imagesPerMinute', label: 'Pictures per minute', short: 'pictures / min', unit: 1, step: 1 },
  {
    name: 'audioSecondsPerMinute',
    label: 'Seconds of sound per minute',
    short: 's of sound / min',
    unit: 1,
    step: 1,
  },
  {
    name: 'charactersPerMinute',
    label: 'Characters per minute',
    short: 'characters / min',
    unit: 1,
    step: 1,
  },
  { name: 'pagesPerMinute', label: 'Pages per minute', short: 'pages / min', unit: 1, step: 1 },
  { name: 'searchesPerMinute', label: 'Searches per minute', short: 'searches / min', unit: 1, step: 1 },
  { name: 'documentsPerMinute', label: 'Documents per minute', short: 'documents / min', unit: 1, step: 1 },
  { name: 'linesPerMinute', label: 'Lines of batches per minute', short: 'lines / min', unit: 1, step: 1 },
]

/** The texts of the fields of limits. */
type LimitValues = Readonly<Record<LimitName, string>>

/** The texts for some limits. */
export function limitValues(limits: KeyLimits): LimitValues {
  const texts = LIMIT_FIELDS.map(({ name, unit }): [LimitName, string] => {
    const value = limits[name]
    return [name, value === undefined ? '' : String(value / unit)]
  })
  return Object.fromEntries(texts) as LimitValues
}

/** The current values of the form. */
export interface Draft extends LimitValues {
  readonly name: string
  /** Days; or: never (empty), `keep`, `date`. */
  readonly expiry: string
  /** `2027-04-01`, if `expiry` is `date`. */
  readonly date: string
  /** `all`, `some`. */
  readonly some: string
  readonly models: readonly string[]
  /** `upstream`: the lists of the upstreams; `none`, `all`, `some`. */
  readonly tools: string
  /** The names for `some`: `web_search mcp`. */
  readonly toolNames: string
  /** `plan`, `own`. */
  readonly limited: string
  /** `team=research env=ci`. */
  readonly labels: string
}

/** The draft of a new key. */
export const BLANK: Draft = {
  name: '',
  expiry: '',
  date: '',
  some: 'all',
  models: [],
  tools: 'upstream',
  toolNames: '',
  limited: 'plan',
  ...limitValues({}),
  labels: '',
}

/** The draft of an existing key. */
export function draftOf({ name, expiresAtMs, models, allowTools, limits, labels }: Key): Draft {
  return {
    ...BLANK,
    name,
    expiry: expiresAtMs === null ? '' : 'keep',
    some: models === null ? 'all' : 'some',
    models: models ?? [],
    tools: toolsChoice(allowTools),
    toolNames: (allowTools ?? []).filter((tool) => tool !== ANY_TOOL).join(' '),
    limited: Object.keys(limits).length > 0 ? 'own' : 'plan',
    ...limitValues(limits),
    labels: labelsText(labels),
  }
}

/** The body that creates the key. */
export function createBody(draft: Draft, nowMs: number): CreateKeyBody {
  return { ...changeBody(draft, nowMs), name: draft.name }
}

/** The body that changes the key. */
export function changeBody(draft: Draft, nowMs: number): ChangeKeyBody {
  return {
    name: draft.name,
    ...(draft.expiry === 'keep' ? {} : { expiresAtMs: endMs(draft, nowMs) }),
    models: draft.some === 'some' ? [...draft.models] : null,
    allowTools: toolsOf(draft),
    limits: draft.limited === 'own' ? limitsOf(draft) : {},
    labels: labelsIn(draft.labels),
  }
}

function toolsChoice(tools: readonly string[] | null): string {
  if (tools === null) return 'upstream'
  if (tools.includes(ANY_TOOL)) return 'all'
  return tools.length === 0 ? 'none' : 'some'
}

/** The list of tools of a draft; null: the lists of the upstreams. */
function toolsOf({ tools, toolNames }: Draft): string[] | null {
  if (tools === 'upstream') return null
  if (tools === 'all') return [ANY_TOOL]
  return tools === 'none' ? [] : toolsIn(toolNames)
}

/** The names of a text. */
function toolsIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '')
}

/** The expiry of the key; null: never. NaN if a date is missing. */
function endMs({ expiry, date }: Pick<Draft, 'expiry' | 'date'>, nowMs: number) {
  if (expiry === '') return null
  if (expiry !== 'date') return nowMs + Number(expiry) * DAY_MS
  // The end of the day in the user's time zone.
  return new Date(`${date}T00:00:00`).getTime() + DAY_MS
}

/** The limits of a form; a field without a value is no limit. */
export function limitsOf(values: LimitValues): KeyLimits {
  return Object.fromEntries(
    LIMIT_FIELDS.filter(({ name }) => values[name] !== '').map(({ name, unit }) => [
      name,
      Math.round(Number(values[name]) * unit),
    ]),
  )
}

/** `team=research env=ci`. */
export function labelsText(labels: Key['labels']): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
}

/** The labels of a text. A word without `=` has an empty value. */
export function labelsIn(text: string): Record<string, string> {
  const words = text.split(/[\s,]+/).filter((word) => word !== '')
  return Object.fromEntries(
    words.map((word): [string, string] => {
      const at = word.indexOf('=')
      return at === -1 ? [word, ''] : [word.slice(0, at), word.slice(at + 1)]
    }),
  )
}

const MAX_NAME = 100
const MAX_MODELS = 100
const MAX_LABELS = 16
const MAX_TOOLS = 64
const TOOL = /^[A-Za-z][\w-]{0,63}$/
const LABEL_NAME = /^[a-z0-9_.-]{1,32}$/
const LABEL_VALUE = /^[!-+\--~]{1,64}$/

/** What is wrong with a draft, by the names of the fields at the server, which checks them again. */
export function faultsOf(draft: Draft, plan: Pick<Plan, 'name' | 'limits'>, nowMs: number): Faults {
  const limits = draft.limited === 'own' ? LIMIT_FIELDS : []
  const faults = {
    name: nameFault(draft.name),
    expiresAtMs: expiryFault(draft, nowMs),
    models: modelsFault(draft),
    allowTools: toolsFault(draft),
    labels: labelsFault(draft.labels),
    ...Object.fromEntries(limits.map((field) => [`limits.${field.name}`, limitFault(draft, plan, field)])),
  }
  return Object.fromEntries(
    Object.entries(faults).flatMap(([name, fault]) => (fault === null ? [] : [[name, fault]])),
  )
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

function modelsFault({ some, models }: Draft): string | null {
  if (some === 'all') return null
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

/** What is wrong with the text of labels; null: nothing. */
export function labelsFault(text: string): string | null {
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
  draft: Draft,
  plan: Pick<Plan, 'name' | 'limits'>,
  { name, unit, step }: LimitField,
): string | null {
  const text = draft[name]
  if (text === '') return null
  const value = Number(text)
  if (!(value >= step)) return `Enter ${step} or more, or leave it empty.`
  if (unit === 1 && !Number.isInteger(value)) return 'Enter a whole number.'
  const most = plan.limits[name]
  if (most === undefined || Math.round(value * unit) <= most) return null
  const shown = unit === 1 ? exactCount(most) : exactDollars(most)
  return `The plan allows ${shown} at most.`
}

/** `30 requests / min`, `$5 / day`. */
export function limitTexts(limits: KeyLimits): readonly string[] {
  return LIMIT_FIELDS.flatMap(({ name, unit, short }) => {
    const value = limits[name]
    if (value === undefined) return []
    return [`${unit === 1 ? exactCount(value) : exactDollars(value)} ${short}`]
  })
}

/** `sk_9fQ2x…a7Lm`: enough to identify a key. */
export function maskOf({ prefix, lastFour }: Pick<Key, 'prefix' | 'lastFour'>): string {
  return `${prefix}…${lastFour}`
}
