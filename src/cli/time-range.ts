/** The times of options: a date, a time, or a duration before now (`--since`) or after it (`--expires`). */
import { UsageError } from './command.js'

/** The forms of `--since` and similar options. */
export const TIME_FORMS =
  'a date or time (2026-11-20, 2026-11-20T08:00:00Z), or a duration before now (90m, 24h, 7d)'

export interface TimeOptions {
  readonly since?: string | undefined
  readonly until?: string | undefined
}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Ms since 1970. Throws `UsageError` naming the option if the text is not a time. */
export function sinceOf(text: string, nowMs: number, option = '--since'): number {
  const [, count = '', unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  if (unit !== '') return nowMs - Number(count) * (UNIT_MS[unit] ?? 0)
  const atMs = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(atMs)) {
    throw new UsageError(
      `${option} must be a date (2026-11-20), a time, or a duration before now: 90m, 24h, 7d`,
    )
  }
  return atMs
}

/** The range of `--since` and `--until`; its end is exclusive, and null for now. Throws `UsageError`. */
export function rangeOf(
  { since, until }: TimeOptions,
  from: string,
  nowMs: number,
): { fromMs: number; untilMs: number | null } {
  const fromMs = sinceOf(since ?? from, nowMs)
  const untilMs = until === undefined ? null : sinceOf(until, nowMs, '--until')
  if (since !== undefined && untilMs !== null && untilMs <= fromMs) {
    throw new UsageError(`--until ${until ?? ''} must be later than --since ${since}`)
  }
  return { fromMs, untilMs }
}

/** A time of `12h`, `30d`, a date (its start, UTC) or a time; another text unchanged. */
export function timeIn(text: string, nowMs: number): string {
  const [, digits, unit = ''] = /^(\d{1,6})([hd])$/.exec(text) ?? []
  if (digits !== undefined) return new Date(nowMs + Number(digits) * (UNIT_MS[unit] ?? 0)).toISOString()
  if (/^\d{4}-\d{2}-\d{2}$/.test(text)) return `${text}T00:00:00Z`
  return text.replace(/^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(Z|[+-]\d{2}:\d{2})$/, '$1:00$2')
}
