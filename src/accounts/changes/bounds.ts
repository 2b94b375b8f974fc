/**
 * What a change may give: limits within those above (`limits-above.ts`), for everybody; and what tokens with
 * an account and users of the dashboard may give beside that.
 */
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import type { KeyLimits } from '../account.js'
import { MANAGED_BY, PRIORITY } from '../labels.js'
import { isSame, textIn } from './field-types.js'
import { limitBeyond } from './limits-above.js'
import { invalid, Refusal } from './refusal.js'

/** What a token with an account may give. */
export interface TokenBounds {
  readonly of: 'token'
  /** The plans of accounts, the default of new ones first. */
  readonly plans: readonly string[]
  /** The names of labels with which workload identities select accounts. */
  readonly labels: readonly string[]
  /** When the token ends, in ms since 1970. */
  readonly endsAtMs: number
}

/** What the maker of a change may give: a user of the dashboard who is no administrator; null: everything. */
export type Bounds = TokenBounds | { readonly of: 'user' } | null

/** The values of a change, beside those before it. */
interface Wish {
  readonly values: JsonObject
  /** Empty for a new object. */
  readonly before: JsonObject
  /** The limits of the accounts above. */
  readonly most: readonly KeyLimits[]
}

/** The first value of an account that the maker may not give; null: it may give all. */
export function accountBeyond(bounds: TokenBounds | null, { values, before, most }: Wish): Refusal | null {
  if (bounds === null) return limitBeyond(values, before, most)
  const { plan } = values
  if (plan !== before['plan'] && !bounds.plans.some((name) => name === plan)) {
    return new Refusal('forbidden', `This token cannot give the plan "${textIn(plan)}".`, {
      field: 'plan',
      fix:
        bounds.plans.length === 0
          ? 'Use a token of the whole gateway.'
          : `Send one of: ${[...new Set(bounds.plans)].join(', ')}.`,
    })
  }
  for (const name of bounds.labels) {
    const value = labelOf(values, name)
    if (value !== undefined && value !== labelOf(before, name)) return labelRefusal(name)
  }
  return (
    limitBeyond(values, before, most) ??
    labelChange(PRIORITY, values, before) ??
    labelChange(MANAGED_BY, values, before)
  )
}

/** The first value of a key that the maker may not give, or no maker may; null: all are allowed. */
export function keyBeyond(
  bounds: Bounds,
  { values, before, most, nowMs }: Wish & { readonly nowMs: number },
): Refusal | null {
  const { expires_at: end } = values
  const isChanged = typeof end === 'string' && end !== before['expires_at']
  // A key that has ended keeps its end.
  if (isChanged && Date.parse(end) <= nowMs) {
    return invalid('expires_at', 'A key cannot expire in the past.', 'Send a later time, or null.')
  }
  if (isChanged && bounds?.of === 'token' && Date.parse(end) > bounds.endsAtMs) {
    return outlives('expires_at', bounds.endsAtMs)
  }
  const surplus = limitBeyond(values, before, most)
  if (surplus !== null || bounds === null) return surplus
  if (bounds.of === 'token') return labelChange(PRIORITY, values, before)
  if (labelOf(values, PRIORITY) !== labelOf(before, PRIORITY)) {
    const detail = `Only administrators can change the label "${PRIORITY}" of keys.`
    return new Refusal('forbidden', detail, { field: `labels.${PRIORITY}` })
  }
  return toolsGrant(values, before)
}

/**
 * A key's list of tools takes precedence over those of the upstreams, so only administrators allow tools. The
 * page sends the list with every change; an unchanged one needs no administrator.
 */
function toolsGrant({ allow_tools: tools }: JsonObject, before: JsonObject): Refusal | null {
  const isGrant = Array.isArray(tools) && tools.length > 0 && !isSame(tools, before['allow_tools'])
  if (!isGrant) return null
  const fix = 'Leave the list empty.'
  return new Refusal('forbidden', 'Only administrators can allow tools of providers.', {
    ...{ field: 'allow_tools', fix },
  })
}

/**
 * The values of a key without an end: one that a token with an account makes ends with the token, and an
 * existing key without an end keeps none. `former` is null if the secret is new, too.
 */
export function withEnd(values: JsonObject, former: JsonObject | null, latestMs: number | null): JsonObject {
  const isEndless = (values['expires_at'] ?? null) === null
  if (latestMs === null || !isEndless) return values
  const keepsNone = former !== null && (former['expires_at'] ?? null) === null
  return keepsNone ? values : { ...values, expires_at: new Date(latestMs).toISOString() }
}

/** The refusal of an end after that of the token. */
export function outlives(field: string, endsAtMs: number): Refusal {
  const end = new Date(endsAtMs).toISOString()
  return new Refusal('forbidden', `This token ends at ${end} and makes nothing that outlives it.`, {
    field,
    fix: 'Send that time or an earlier one.',
  })
}

/**
 * Whether a label that matters was given, changed or removed. Keys with high priority are served first under
 * overload, and a low one is a restriction; documents of the gateway prune and refuse by `managed-by`.
 */
function labelChange(name: string, values: JsonObject, before: JsonObject): Refusal | null {
  return labelOf(values, name) === labelOf(before, name) ? null : labelRefusal(name)
}

function labelOf({ labels }: JsonObject, name: string): JsonValue | undefined {
  return isObject(labels) && Object.hasOwn(labels, name) ? labels[name] : undefined
}

function labelRefusal(name: string): Refusal {
  return new Refusal('forbidden', `A token with an account neither gives nor changes the label "${name}".`, {
    field: `labels.${name}`,
    fix: 'Send the value that the object has, or leave the label out if it has none.',
  })
}
