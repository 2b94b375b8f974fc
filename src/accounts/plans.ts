/**
 * Plans of accounts: the ones that exist without a configuration, and which plan an account has. The
 * configuration may name any others.
 */
import type { PlanConfig } from '../config/config.js'
import { GatewayError } from '../errors.js'
import type { PlanName } from './account.js'

/** The plans of a configuration. */
export type Plans = Readonly<
  Record<PlanName, Pick<PlanConfig, 'priceUsd' | 'maxKeys'> & Partial<Pick<PlanConfig, 'limits'>>>
>

/** The plans of a file that names no other. */
export const BUILT_IN_PLANS = {
  starter: { priceUsd: 20, maxKeys: 5, limits: {} },
  pro: { priceUsd: 50, maxKeys: 20, limits: {} },
  max: { priceUsd: 100, maxKeys: null, limits: {} },
} as const satisfies Record<string, PlanConfig>

/** Whether the configuration has the plan, so that accounts may get it. */
export function isPlanOf(plans: Plans, name: string): boolean {
  return Object.hasOwn(plans, name)
}

/**
 * The plan of an account. Accounts keep a built-in plan that the configuration has left out. Null for a plan
 * that the configuration no longer has: its limits are unknown, so the account makes no keys and no requests.
 */
export function planNamed<P extends Plans[string]>(
  plans: Readonly<Record<PlanName, P>>,
  name: PlanName,
): P | PlanConfig | null {
  if (Object.hasOwn(plans, name)) return plans[name] ?? null
  const builtIn: Readonly<Record<string, PlanConfig>> = BUILT_IN_PLANS
  return Object.hasOwn(builtIn, name) ? (builtIn[name] ?? null) : null
}

/** The plan of accounts that their owners create: `starter`, else the first of the configuration. */
export function planOfNewAccounts(plans: Plans): PlanName {
  return isPlanOf(plans, 'starter') ? 'starter' : (Object.keys(plans)[0] ?? 'starter')
}

/** The plan of the first administrator: `max`, else the last of the configuration. */
export function planOfAdministrators(plans: Plans): PlanName {
  return isPlanOf(plans, 'max') ? 'max' : (Object.keys(plans).at(-1) ?? 'max')
}

/**
 * The plans that tokens of an account with the plan may give to accounts below it: those of
 * `limiting.child_plans`, else its own and smaller ones.
 */
export function childPlans(
  plans: Readonly<Record<PlanName, PlanConfig>>,
  own: PlanName,
  given: readonly PlanName[] | null,
): PlanName[] {
  if (given !== null) return given.filter((name) => isPlanOf(plans, name))
  const most = planNamed(plans, own)
  if (most === null) return []
  return Object.keys(plans).filter((name) => {
    const plan = plans[name]
    return name === own || (plan !== undefined && isWithin(plan, most))
  })
}

/** Whether a plan costs and allows no more than another. */
function isWithin(plan: PlanConfig, most: PlanConfig): boolean {
  if (plan.priceUsd > most.priceUsd) return false
  if ((plan.maxKeys ?? Infinity) > (most.maxKeys ?? Infinity)) return false
  const limits = new Map(Object.entries(plan.limits))
  return Object.entries(most.limits).every(([name, amount]) => (limits.get(name) ?? Infinity) <= amount)
}

/** The refusal of requests of an account whose plan the configuration does not have. */
export function planMissing(name: PlanName): GatewayError {
  const message = `The configuration of the gateway does not have the plan '${name}' of this account: an administrator can change the plan or add it to the configuration.`
  return new GatewayError('forbidden', message)
}
