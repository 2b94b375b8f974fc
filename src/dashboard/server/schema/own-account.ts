/** The signed-in account and its plan. */
import { z } from 'zod'
import { count, id, keyLimits, timeMs } from './shared-types.js'

/** A plan's name. */
export const planName = z.enum(['starter', 'pro', 'max'])

/** `owner`: uses one account; `admin`: can also see and change all accounts. */
export const role = z.enum(['owner', 'admin'])

/** A plan. */
export const plan = z.strictObject({
  name: planName,
  /** Per month. */
  priceUsd: z.number(),
  /** Null is unlimited. */
  maxKeys: count.nullable(),
  /** Limits over all keys of the account; an omitted member is unlimited. */
  limits: keyLimits,
})

/** An account as its owner sees it. */
export const account = z.strictObject({
  id,
  email: z.string(),
  role,
  plan,
  /** Keys that are not revoked, expired ones included. */
  liveKeys: count,
  /** False if the account signs in with the identity provider only. */
  hasPassword: z.boolean(),
  createdAtMs: timeMs,
})

/** `GET /plans`: all plans. */
export const plansReply = z.strictObject({ plans: z.array(plan) })

/** A plan's name. */
export type PlanName = z.output<typeof planName>
/** A plan. */
export type Plan = z.output<typeof plan>
/** An account as its owner sees it. */
export type Account = z.output<typeof account>
/** All plans. */
export type PlansReply = z.output<typeof plansReply>
