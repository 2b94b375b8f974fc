/**
 * How long an upstream asks to wait, from its headers.
 * Knows no dialect and no clock: a date counts from the `date` beside it.
 */
import type { IncomingHttpHeaders } from 'node:http'

/** No client is told to wait longer than an hour. */
const MAX_SECONDS = 3600

/** `retry-after-ms`, else `retry-after` in seconds or as a date; undefined where neither is readable. */
export function retryAfterSeconds(headers: IncomingHttpHeaders): number | undefined {
  const ms = decimal(headers['retry-after-ms'])
  if (ms !== undefined) return wholeSeconds(ms / 1000)
  const header = headers['retry-after']
  if (header === undefined) return undefined
  const seconds = decimal(header)
  if (seconds !== undefined) return wholeSeconds(seconds)
  const wait = (Date.parse(header) - Date.parse(headers.date ?? '')) / 1000
  return wait >= 0 ? wholeSeconds(wait) : undefined
}

/** As the gateway passes a wait on: rounded up, an hour at most. */
export function wholeSeconds(seconds: number): number {
  return Math.min(Math.ceil(seconds), MAX_SECONDS)
}

function decimal(value: string | string[] | undefined): number | undefined {
  if (typeof value !== 'string' || !/^\s*\d{1,12}(?:\.\d+)?\s*$/.test(value)) return undefined
  return Number(value)
}
