/** Rules for the settings of a key that the account's role and plan decide. All throw `GatewayError`. */
import type { Account, KeyLimits } from '../../../accounts/account.js'
import { PRIORITY, type Labels } from '../../../accounts/labels.js'
import { ALLOWED_TOOL, allowedTools } from '../../../chat/hosted-tools.js'
import { GatewayError } from '../../../errors.js'
import type * as schema from '../schema/schema.js'

/** Keys with high priority are served first under overload, so only administrators may set the label. */
export function assertLabels(labels: Labels | undefined, { role }: Account): void {
  if (labels === undefined || role === 'admin' || !Object.hasOwn(labels, PRIORITY)) return
  const message = `Only administrators can give keys the label "${PRIORITY}".`
  throw new GatewayError('forbidden', message, { param: `labels.${PRIORITY}` })
}

/** Throws if the expiry is in the past. */
export function assertExpiry(expiresAtMs: number | null | undefined, nowMs: number): void {
  if (expiresAtMs === undefined || expiresAtMs === null || expiresAtMs > nowMs) return
  throw new GatewayError('malformed_request', 'A key cannot expire in the past.', {
    param: 'expiresAtMs',
  })
}

const LIMITS = [
  'requestsPerMinute',
  'tokensPerMinute',
  'concurrent',
  'nanoUsdPerDay',
  'nanoUsdPerWeek',
  'nanoUsdPerMonth',
] as const

/** Refuses limits above those of the plan with a message, instead of lowering them silently. */
export function assertWithin(limits: schema.KeyLimits | undefined, most: KeyLimits): void {
  for (const name of LIMITS) {
    const [wanted, allowed] = [limits?.[name], most[name]]
    if (wanted === undefined || allowed === undefined || wanted <= allowed) continue
    const limitText = name.startsWith('nanoUsd') ? `$${allowed / 1e9}` : String(allowed)
    const message = `The plan allows ${limitText} at most. Enter less, or choose a larger plan.`
    throw new GatewayError('forbidden', message, { param: `limits.${name}` })
  }
}

/** Throws for a model pattern with a * before its end. */
export function assertPatterns(models: readonly string[] | null | undefined): void {
  models?.forEach((pattern, index) => {
    if (!pattern.slice(0, -1).includes('*')) return
    const message = `"${pattern}" has a * before its end. Enter a model id, or the beginning of ids and a *.`
    throw new GatewayError('malformed_request', message, { param: `models.${index}` })
  })
}

/**
 * Whether the list allows tools that the account may not allow: a key's list takes precedence over those of
 * the upstreams, so only administrators may allow tools.
 */
export function isToolsGrant(
  tools: readonly string[] | null | undefined,
  { role }: Account,
): boolean {
  return (tools?.length ?? 0) > 0 && role !== 'admin'
}

/** The refusal of such a list. */
export function toolsRefusal(): GatewayError {
  const message = 'Only administrators can allow tools of providers. Leave the list empty.'
  return new GatewayError('forbidden', message, { param: 'allowTools' })
}

/** The names of tools in the form in which requests are compared. Throws for text that is not a name. */
export function checkedTools(tools: readonly string[]): string[] {
  const at = tools.findIndex((tool) => !ALLOWED_TOOL.test(tool))
  if (at === -1) return allowedTools(tools)
  const message = `"${tools[at] ?? ''}" is not the name of a tool. Enter a name such as web_search, or * for all.`
  throw new GatewayError('malformed_request', message, { param: `allowTools.${at}` })
}
