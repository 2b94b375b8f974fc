/** Texts about limits, and the time of their reset. Pure. */
import type { RequestRow } from '../../server/schema/schema.js'

/** What a limit counts, by its name in the configuration. */
export const LIMIT_NAMES: Readonly<Record<string, string>> = {
  requests_per_minute: 'Requests per minute',
  tokens_per_minute: 'Tokens per minute',
  concurrent: 'Concurrent requests',
  usd_per_day: 'Budget per day (UTC)',
  usd_per_week: 'Budget per week (UTC, from Monday)',
  usd_per_month: 'Budget per month (UTC)',
}

const MINUTE_MS = 60_000

/** The rule of a ledger entry as a text: `Requests per minute of this key`. */
export function limitText(limit: string): string {
  const [subject = '', name = ''] = limit.split(' ')
  return `${LIMIT_NAMES[name] ?? name} of ${ownerText(subject)}`
}

function ownerText(subject: string): string {
  const [owner = ''] = subject.split(';')
  const at = owner.indexOf(':')
  const [scope, name] = [owner.slice(0, at), owner.slice(at + 1)]
  switch (scope) {
    case 'key':
      return 'this key'
    case 'account':
      return subject.endsWith(';of-plan') ? 'the plan' : 'this account'
    case 'model':
    case 'upstream':
      return `the ${scope} "${name}"`
    case 'label':
      return `the label ${name}`
    default:
      return subject
  }
}

/** From 1 (on a Sunday) to 7 (on a Monday). */
function daysToMonday(at: Date): number {
  return 7 - ((at.getUTCDay() + 6) % 7)
}

/** When the limit that refused a request resets, ms since 1970; null if it depends on running requests. */
export function resetsAtMs({
  limit,
  atMs,
  retryAfterSeconds,
}: Pick<RequestRow, 'limit' | 'atMs' | 'retryAfterSeconds'>): number | null {
  const name = limit?.split(' ')[1]
  const at = new Date(atMs)
  switch (name) {
    case 'usd_per_day':
      return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() + 1)
    case 'usd_per_week':
      return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() + daysToMonday(at))
    case 'usd_per_month':
      return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1)
    case 'requests_per_minute':
    case 'tokens_per_minute':
      return atMs + (retryAfterSeconds === null ? MINUTE_MS : retryAfterSeconds * 1_000)
    default:
      return null
  }
}
