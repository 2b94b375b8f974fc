/** The names of the dashboard's API for what `accounts/changes` checks, and its words for problems. */
import { PLAIN_LIMITS, UNIT_LIMITS, UNIT_MEMBERS, unitOf } from '../../base/limit-members.js'
import type { JsonObject, JsonValue } from '../../base/json.js'
import type { RaiseBody } from './schema/schema.js'
import { OTHER_VALUE, type ProblemWords } from '../problem-details.js'

export const DASHBOARD_WORDS: ProblemWords = {
  isAlike: true,
  titles: {
    unauthenticated: 'Not signed in',
    forbidden: 'Your role, or the page, does not allow this',
    rate_limited: 'Too many requests',
  },
  fixes: { [OTHER_VALUE]: null },
  fieldOf,
}

/** `limits.nanoUsdPerDay` of `limits.usd_per_day`, `models.0` of `models[0]`. */
function fieldOf(field: string): string {
  if (field === 'expires_at') return 'expiresAtMs'
  if (field === 'until') return 'untilMs'
  if (field.startsWith('labels')) return field
  return field
    .replace('usd_per_', 'nano_usd_per_')
    .replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    .replace(/\[(\d+)\]/, '.$1')
}

/** Limits of a request in the spelling of `accounts/changes`, which checks them. */
export function namedLimits(limits: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  const named: JsonObject = {}
  const units: JsonObject = {}
  for (const member of PLAIN_LIMITS) {
    const amount = limits[member.field]
    if (amount === undefined) continue
    named[member.name] = typeof amount === 'number' ? amount / unitOf(member) : amount
  }
  for (const { field, unit } of UNIT_MEMBERS) {
    const amount = limits[field]
    if (amount !== undefined) units[unit] = amount
  }
  return Object.keys(units).length === 0 ? named : { ...named, [UNIT_LIMITS.name]: units }
}

/** A time in ms since 1970 as text; another value unchanged. */
export function namedTime(value: JsonValue): JsonValue {
  const time = new Date(typeof value === 'number' ? value : Number.NaN)
  return Number.isNaN(time.getTime()) ? value : time.toISOString()
}

/** A raise in the spelling of `accounts/changes`. */
export function wishIn({ untilMs, ...wish }: RaiseBody): JsonObject {
  const given = untilMs === undefined ? wish : { ...wish, until: namedTime(untilMs) }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}
