/** The edited settings of a key, and the request bodies made from them. Pure; the clock is an argument. */
import type { ChangeKeyBody, CreateKeyBody, Key, KeyLimits } from '../../../server/schema/schema.js'
import { DAY_MS } from '../../format/time-buckets.js'

const NANO = 1e9
/** An entry that allows all tools. */
const ANY_TOOL = '*'

/** The name of a limit. */
export type LimitName = keyof KeyLimits

/** The field of a limit. */
export interface LimitField {
  readonly name: LimitName
  readonly label: string
  /** Number of API units per unit of the field. */
  readonly unit: number
  readonly step: number
}

/** The fields in display order. */
export const LIMIT_FIELDS: readonly LimitField[] = [
  { name: 'requestsPerMinute', label: 'Requests per minute', unit: 1, step: 1 },
  { name: 'tokensPerMinute', label: 'Tokens per minute', unit: 1, step: 1 },
  { name: 'concurrent', label: 'Concurrent requests', unit: 1, step: 1 },
  { name: 'nanoUsdPerDay', label: 'Dollars per day (UTC)', unit: NANO, step: 0.01 },
  { name: 'nanoUsdPerWeek', label: 'Dollars per week (UTC)', unit: NANO, step: 0.01 },
  { name: 'nanoUsdPerMonth', label: 'Dollars per month (UTC)', unit: NANO, step: 0.01 },
]

/** The current values of the form. */
export interface Draft {
  readonly name: string
  /** Days; or: never (empty), `keep`, `date`. */
  readonly expiry: string
  /** `2027-04-01`, if `expiry` is `date`. */
  readonly date: string
  readonly someModels: boolean
  readonly models: readonly string[]
  /** `upstream`: the lists of the upstreams; `none`, `all`, `some`. */
  readonly tools: string
  /** The names for `some`: `web_search mcp`. */
  readonly toolNames: string
  readonly limited: boolean
  readonly limits: Readonly<Record<LimitName, string>>
  /** `team=research env=ci`. */
  readonly labels: string
}

const NO_LIMITS: Draft['limits'] = {
  requestsPerMinute: '',
  tokensPerMinute: '',
  concurrent: '',
  nanoUsdPerDay: '',
  nanoUsdPerWeek: '',
  nanoUsdPerMonth: '',
}

/** The draft of a new key. */
export const BLANK: Draft = {
  name: '',
  expiry: '',
  date: '',
  someModels: false,
  models: [],
  tools: 'upstream',
  toolNames: '',
  limited: false,
  limits: NO_LIMITS,
  labels: '',
}

/** The draft of an existing key. */
export function draftOf({ name, expiresAtMs, models, allowTools, limits }: Key): Draft {
  const shown = LIMIT_FIELDS.map(({ name, unit }): [LimitName, string] => {
    const value = limits[name]
    return [name, value === undefined ? '' : String(value / unit)]
  })
  return {
    ...BLANK,
    name,
    expiry: expiresAtMs === null ? '' : 'keep',
    someModels: models !== null,
    models: models ?? [],
    tools: toolsChoice(allowTools),
    toolNames: (allowTools ?? []).filter((tool) => tool !== ANY_TOOL).join(' '),
    limited: Object.keys(limits).length > 0,
    limits: { ...NO_LIMITS, ...Object.fromEntries(shown) },
  }
}

/** The body that creates the key. */
export function createBody(draft: Draft, nowMs: number): CreateKeyBody {
  return { ...changeBody(draft, nowMs), name: draft.name, labels: labelsIn(draft.labels) }
}

/** The body that changes the key. */
export function changeBody(draft: Draft, nowMs: number): ChangeKeyBody {
  return {
    name: draft.name,
    ...(draft.expiry === 'keep' ? {} : { expiresAtMs: endMs(draft, nowMs) }),
    models: draft.someModels ? [...draft.models] : null,
    allowTools: toolsOf(draft),
    limits: draft.limited ? limitsOf(draft) : {},
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
export function toolsIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '')
}

/** The expiry of the key; null: never. NaN if a date is missing. */
export function endMs({ expiry, date }: Pick<Draft, 'expiry' | 'date'>, nowMs: number) {
  if (expiry === '') return null
  if (expiry !== 'date') return nowMs + Number(expiry) * DAY_MS
  // The end of the day in the user's time zone.
  return new Date(`${date}T00:00:00`).getTime() + DAY_MS
}

function limitsOf({ limits }: Draft): KeyLimits {
  return Object.fromEntries(
    LIMIT_FIELDS.filter(({ name }) => limits[name] !== '').map(({ name, unit }) => [
      name,
      Math.round(Number(limits[name]) * unit),
    ]),
  )
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
