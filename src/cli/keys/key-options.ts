/** Parses the options of a new key: limits, expiry, models, tools. */
import type { KeyLimits } from '../../accounts/account.js'
import { ALLOWED_TOOL, allowedTools, MAX_ALLOWED_TOOLS } from '../../chat/hosted-tools.js'
import { LABEL_NAME, LABEL_VALUE, MAX_LABELS, type Labels } from '../../accounts/labels.js'
import type { NewKeySettings } from '../../accounts/create-key.js'
import { UsageError } from '../usage-error.js'
import { type OptionValues } from '../parse-action.js'

/** The options for `parseArgs`. */
export const KEY_OPTIONS = {
  rpm: { type: 'string' },
  tpm: { type: 'string' },
  concurrent: { type: 'string' },
  'usd-per-day': { type: 'string' },
  'usd-per-week': { type: 'string' },
  'usd-per-month': { type: 'string' },
  expires: { type: 'string' },
  models: { type: 'string' },
  'allow-tools': { type: 'string' },
  label: { type: 'string', multiple: true },
} as const

/** The values of these options. */
export type KeyOptions = OptionValues<typeof KEY_OPTIONS>

/** The same maximums as in the configuration's `limits`. */
const MAX = { rpm: 1e9, tpm: 1e12, concurrent: 1e6 } as const
const MAX_USD = 1_000_000
/** A century. */
const MAX_DAYS = 36_500
const UNITS_MS = { h: 3_600_000, d: 86_400_000 } as const
const MODEL = /^[!-~]{1,256}$/
const MAX_MODELS = 100

/** The options of a new key. Throws `UsageError` naming the option. */
export function readKeyOptions(options: KeyOptions, nowMs: number): NewKeySettings {
  const limits: KeyLimits = {}
  const { rpm, tpm, concurrent, expires, models } = options
  if (rpm !== undefined) limits.requestsPerMinute = count('rpm', rpm)
  if (tpm !== undefined) limits.tokensPerMinute = count('tpm', tpm)
  if (concurrent !== undefined) limits.concurrent = count('concurrent', concurrent)
  const [day, week] = [options['usd-per-day'], options['usd-per-week']]
  const month = options['usd-per-month']
  const tools = options['allow-tools']
  if (day !== undefined) limits.nanoUsdPerDay = nanoUsd('usd-per-day', day)
  if (week !== undefined) limits.nanoUsdPerWeek = nanoUsd('usd-per-week', week)
  if (month !== undefined) limits.nanoUsdPerMonth = nanoUsd('usd-per-month', month)
  return {
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
    ...(expires === undefined ? {} : { expiresAtMs: expiryOf(expires, nowMs) }),
    ...(models === undefined ? {} : { models: modelsOf(models) }),
    ...(tools === undefined ? {} : { allowTools: toolsOf(tools) }),
    ...(options.label === undefined ? {} : { labels: labelsOf(options.label) }),
  }
}

function labelsOf(pairs: readonly string[]): Labels {
  const labels = new Map<string, string>()
  for (const pair of pairs) {
    const separator = pair.indexOf('=')
    const name = pair.slice(0, Math.max(0, separator))
    if (!LABEL_NAME.test(name) || !LABEL_VALUE.test(pair.slice(separator + 1))) {
      throw new UsageError(
        '--label must be NAME=VALUE: a name of 1 to 32 characters (a-z, 0-9, _ . -), a value of 1 to 64 printable ASCII characters without spaces and commas',
      )
    }
    if (labels.has(name)) throw new UsageError(`--label ${name} is given twice`)
    labels.set(name, pair.slice(separator + 1))
  }
  if (labels.size > MAX_LABELS) throw new UsageError(`a key has at most ${MAX_LABELS} labels`)
  return Object.fromEntries(labels)
}

function count(name: keyof typeof MAX, text: string): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= 1 && value <= MAX[name]) return value
  throw new UsageError(`--${name} must be a whole number from 1 to ${MAX[name]}`)
}

function nanoUsd(name: string, text: string): number {
  const value = Number(text)
  if (/^\d+(\.\d{1,9})?$/.test(text) && value <= MAX_USD) return Math.round(value * 1e9)
  throw new UsageError(`--${name} must be US dollars, such as 2.50, at most ${MAX_USD}`)
}

/** `12h`, `30d`, a date (its start, UTC) or a time. */
function expiryOf(text: string, nowMs: number): number {
  const [, digits, unit] = /^(\d{1,6})([hd])$/.exec(text) ?? []
  const lastsMs = unit === 'h' || unit === 'd' ? Number(digits) * UNITS_MS[unit] : null
  const isDate = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2}))?$/.test(text)
  const atMs = lastsMs === null ? (isDate ? Date.parse(text) : Number.NaN) : nowMs + lastsMs
  if (atMs > nowMs && atMs < nowMs + MAX_DAYS * UNITS_MS.d) return atMs
  throw new UsageError(
    '--expires must be in the future: 12h, 30d, 2027-01-31 or 2027-01-31T12:00:00Z',
  )
}

function modelsOf(text: string): string[] {
  const models = text.split(',').map((model) => model.trim())
  const isValid = models.every((model) => MODEL.test(model) && !model.slice(0, -1).includes('*'))
  if (isValid && models.length <= MAX_MODELS) return models
  throw new UsageError(
    `--models must be at most ${MAX_MODELS} comma-separated model ids, each optionally ending in *`,
  )
}

/** An empty text allows none. */
function toolsOf(text: string): string[] {
  const tools = text === '' ? [] : text.split(',').map((tool) => tool.trim())
  if (tools.every((tool) => ALLOWED_TOOL.test(tool)) && tools.length <= MAX_ALLOWED_TOOLS) {
    return allowedTools(tools)
  }
  throw new UsageError(
    `--allow-tools must be '*', or at most ${MAX_ALLOWED_TOOLS} comma-separated names of tools, such as web_search,mcp`,
  )
}
