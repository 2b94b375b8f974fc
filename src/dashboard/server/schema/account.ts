/** Who is signed in, and what they pay for. */
import { z } from 'zod'
import { count, id, keyLimits, timeMs } from './basics.js'

/** A plan's name. */
export const planName = z.enum(['starter', 'pro', 'max'])

/** `owner`: of an account of their own; `admin`: sees and changes all accounts, too. */
export const role = z.enum(['owner', 'admin'])

/** A plan. */
export const plan = z.strictObject({
  name: planName,
  /** A month. */
  priceUsd: z.number(),
  /** Null is unlimited. */
  maxKeys: count.nullable(),
  /** What an account's keys together may do; left out: no limit. */
  limits: keyLimits,
})

/** An account as its owner sees it. */
export const account = z.strictObject({
  id,
  email: z.string(),
  role,
  plan,
  /** Keys that are not revoked; expired ones count until they are. */
  liveKeys: count,
  /** False for one that signs in with the identity provider only. */
  hasPassword: z.boolean(),
  createdAtMs: timeMs,
})

/** `GET /plans`: what there is to choose from. */
export const plansReply = z.strictObject({ plans: z.array(plan) })

/** A plan's name. */
export type PlanName = z.output<typeof planName>
/** A plan. */
export type Plan = z.output<typeof plan>
/** An account as its owner sees it. */
export type Account = z.output<typeof account>
/** What there is to choose from. */
export type PlansReply = z.output<typeof plansReply>
