/**
 * Decodes the wait that an upstream requests in its headers. Dates are relative to the `date` header, which
 * the caller adds if the upstream sent none.
 */

import type { IncomingHttpHeaders } from 'node:http'

const GO_DURATION = /^(?:\d{1,9}(?:\.\d{1,9})?(?:h|ms|m|s|us|µs|ns)){1,6}$/
const GO_PART = /(\d{1,9}(?:\.\d{1,9})?)(h|ms|m|s|us|µs|ns)/g
const SECONDS: Readonly<Record<string, number>> = {
  h: 3600,
  m: 60,
  s: 1,
  ms: 1e-3,
  us: 1e-6,
  µs: 1e-6,
  ns: 1e-9,
}

/** Headers of rate limits, OpenAI's and then Anthropic's. */
const LIMITS: readonly (readonly [remaining: string, reset: string])[] = [
  ...['requests', 'tokens', 'input-images'].map(
    (what) => [`x-ratelimit-remaining-${what}`, `x-ratelimit-reset-${what}`] as const,
  ),
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map(
    (what) => [`anthropic-ratelimit-${what}-remaining`, `anthropic-ratelimit-${what}-reset`] as const,
  ),
]

/** Maximum wait that is reported to clients. */
const MAX_SECONDS = 3600

/**
 * Seconds from `retry-after-ms`, else from `retry-after` (seconds or a date), else until the exhausted rate
 * limits reset; undefined if no header is valid.
 */
export function retryAfterSeconds(headers: IncomingHttpHeaders): number | undefined {
  const ms = decimal(headers['retry-after-ms'])
  if (ms !== undefined) return wholeSeconds(ms / 1000)
  const header = headers['retry-after']
  const wait = decimal(header) ?? secondsUntil(header, headers) ?? resetSeconds(headers)
  return wait === undefined ? undefined : wholeSeconds(wait)
}

/** The longest time until an exhausted limit resets. */
function resetSeconds(headers: IncomingHttpHeaders): number | undefined {
  let longest: number | undefined
  for (const [remaining, reset] of LIMITS) {
    if (decimal(headers[remaining]) !== 0) continue
    const text = headers[reset]
    const wait = goDuration(text) ?? secondsUntil(text, headers)
    if (wait !== undefined && wait > (longest ?? 0)) longest = wait
  }
  return longest
}

/** Seconds until a date of RFC 9110 or RFC 3339. */
function secondsUntil(date: string | string[] | undefined, headers: IncomingHttpHeaders): number | undefined {
  if (typeof date !== 'string') return undefined
  const wait = (Date.parse(date) - Date.parse(headers.date ?? '')) / 1000
  return wait >= 0 ? wait : undefined
}

/** Seconds of a duration in Go's form, which OpenAI and Groq use: `6m0s`, `1h30m`, `120ms`. */
function goDuration(text: string | string[] | undefined): number | undefined {
  if (typeof text !== 'string' || !GO_DURATION.test(text)) return undefined
  let seconds = 0
  for (const [, count = '', unit = ''] of text.matchAll(GO_PART)) {
    seconds += Number(count) * (SECONDS[unit] ?? 0)
  }
  return seconds
}

/** The wait for clients: rounded up to seconds, at most one hour. */
export function wholeSeconds(seconds: number): number {
  return Math.min(Math.ceil(seconds), MAX_SECONDS)
}

function decimal(value: string | string[] | undefined): number | undefined {
  if (typeof value !== 'string' || !/^\s*\d{1,12}(?:\.\d+)?\s*$/.test(value)) return undefined
  return Number(value)
}
