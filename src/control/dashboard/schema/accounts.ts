/** Accounts: one's own, and the list for administrators (403 for owners). */
import * as z from 'zod'
import {
  count,
  id,
  keyLimits,
  timeMs,
  cursor,
  nanoUsd,
  nanoUsdSum,
  numberText,
  scope,
  search,
  sort,
  wanted,
  wantedLimits,
} from './shared-types.js'

/** A plan's name: one of `GET /plans`, or an earlier one that the configuration no longer has. */
export const planName = z.string().min(1).max(64)

/** `owner`: uses one account; `admin`: can also see and change all accounts. */
export const role = z.enum(['owner', 'admin'])

export const plan = z.strictObject({
  name: planName,
  /** Per month; 0 if the configuration does not set it. */
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
  /** The name of the identity provider that signs the user in, who has no password; null for other users. */
  provider: z.string().nullable(),
  createdAtMs: timeMs,
})

/** `GET /account`: the account that the page shows; not available for `all`. */
export const shownAccountQuery = z.strictObject({ account: scope.optional() })
export const shownAccountReply = z.strictObject({ id, name: z.string(), plan, liveKeys: count })

/** `GET /plans`: all plans. */
export const plansReply = z.strictObject({ plans: z.array(plan) })

/** The account that the page shows. */
export type ShownAccountReply = z.output<typeof shownAccountReply>
/** A plan's name. */
export type PlanName = z.output<typeof planName>
export type Plan = z.output<typeof plan>
/** An account as its owner sees it. */
export type Account = z.output<typeof account>
export type PlansReply = z.output<typeof plansReply>

/** An account in the administrator's list. */
export const accountRow = z.strictObject({
  id,
  /** Unique; it never changes. */
  name: z.string(),
  /** That of the login that was made with the account, or the name. */
  email: z.string(),
  /** The name of the account above it; null for none. */
  parent: z.string().nullable(),
  role,
  plan: planName,
  disabled: z.boolean(),
  createdAtMs: timeMs,
  liveKeys: count,
  /** Of the last 30 days. */
  requests: count,
  costNanoUsd: nanoUsdSum,
  unpricedRequests: count,
})

/**
 * `GET /accounts`, by default the newest first. `sort`: name, email, plan, createdAt, liveKeys, requests,
 * cost, parent.
 */
export const accountsQuery = z.strictObject({
  /** Part of a name or e-mail address, or the id. */
  search: search.optional(),
  plan: planName.optional(),
  state: z.enum(['active', 'disabled', 'all']).optional(),
  /** The name or id of the account above. */
  parent: z.string().max(400).optional(),
  sort: sort.optional(),
  after: cursor.optional(),
  /** 1 to 200; default 50. */
  limit: numberText(1, 200).optional(),
})
/** A page of accounts. `total` is the number of accounts of all pages. */
export const accountsReply = z.strictObject({
  accounts: z.array(accountRow),
  next: z.string().nullable(),
  total: count,
})

/**
 * `POST /accounts` → 201 `createdAccountReply`. With an `email`, its user owns the account; a new user sets a
 * password with the link. Without a `name`, it is made from the address; one of the two is needed.
 */
export const createAccountBody = z.strictObject({
  name: z.string().optional(),
  email: z.string().optional(),
  plan: wanted,
  /** The name or id of the account above. */
  parent: z.string().optional(),
  role: role.optional(),
})
/** A one-time link to set a password, shown once. `url` null: the user's address got it by mail. */
export const link = z.strictObject({ url: z.string().nullable(), expiresAtMs: timeMs })
/** `link` is null without a new user. */
export const createdAccountReply = z.strictObject({ account: accountRow, link: link.nullable() })

/** `PATCH /accounts/{id}` → `accountReply`. Disabling ends sessions, and keys fail within a second. */
export const changeAccountBody = z.strictObject({
  displayName: wanted.optional(),
  plan: wanted.optional(),
  /** The name of the account above; null: none. */
  parent: wanted.optional(),
  /** All labels: those that are missing are removed. */
  labels: wanted.optional(),
  disabled: wanted.optional(),
})
export const accountReply = z.strictObject({ account: accountRow })

/** `POST /accounts/{id}/reset` with `{}` → 201: a link for a new password; older ones stop working. */
export const resetLinkBody = z.strictObject({})
export const resetLinkReply = z.strictObject({ link })

/** An account in the list. */
export type AccountRow = z.output<typeof accountRow>
export type AccountsQuery = z.input<typeof accountsQuery>
/** A page of accounts. */
export type AccountsReply = z.output<typeof accountsReply>
/** The body that creates an account. */
export type CreateAccountBody = z.input<typeof createAccountBody>
export type CreatedAccountReply = z.output<typeof createdAccountReply>
/** The body that changes an account. */
export type ChangeAccountBody = z.input<typeof changeAccountBody>
export type AccountReply = z.output<typeof accountReply>
/** A link for a new password. */
export type ResetLinkReply = z.output<typeof resetLinkReply>

const treeFigures = {
  /** Of this month (UTC). */
  requests: count,
  failed: count,
  costNanoUsd: nanoUsdSum,
  unpricedRequests: count,
  liveKeys: count,
}
/** An account in the tree: its figures are those of the account and of all below it. */
export const treeRow = z.strictObject({
  id,
  name: z.string(),
  displayName: z.string(),
  /** The names of the accounts above it, from the top. */
  above: z.array(z.string()),
  labels: z.record(z.string(), z.string()),
  disabled: z.boolean(),
  /** The number of accounts directly below it. */
  children: count,
  ...treeFigures,
  /** People with a role in one of the accounts. */
  members: count,
  /** Its own budget for the month; null for none. */
  budgetNanoUsd: nanoUsd.nullable(),
  /** The spend at the end of the month if it goes on so; null while that is too early to say. */
  forecastNanoUsd: nanoUsd.nullable(),
  /** The account alone; null for one without accounts below it. */
  itself: z.strictObject({ ...treeFigures, members: count }).nullable(),
})
/**
 * `GET /account-tree`: the accounts at the top, those directly below `parent`, or those that a search finds;
 * the highest spend first. Administrators and auditors see all, owners theirs and those below them.
 */
export const accountTreeQuery = z.strictObject({
  /** The name or id of the account above. */
  parent: z.string().max(400).optional(),
  /** Part of a name, a label or the address of a member. */
  search: search.optional(),
})
/** At most 500 rows; `total` is the number of all. */
export const accountTreeReply = z.strictObject({
  rows: z.array(treeRow),
  total: count,
  /** All accounts that the user sees, without those that were removed. */
  sum: z.strictObject({ ...treeFigures, members: count }),
  fromMs: timeMs,
  toMs: timeMs,
  nowMs: timeMs,
})

/** The limits of an account above. */
const inheritedLimits = z.strictObject({ name: z.string(), limits: keyLimits })
/** `GET /accounts/{id}`, by name or id: the page of an account. */
export const accountPageReply = z.strictObject({
  account: treeRow.extend({
    plan: planName,
    createdAtMs: timeMs,
    /** The address of the login that was made with it; null for none. */
    email: z.string().nullable(),
  }),
  owners: z.array(z.string()),
  /** Its own limits. */
  limits: keyLimits,
  /** Those of the plan, and of the accounts above it, the nearest first. */
  planLimits: keyLimits,
  inherited: z.array(inheritedLimits),
  /** Whether the user may change its limits. */
  mayChangeLimits: z.boolean(),
  /** The month of the figures (UTC). */
  fromMs: timeMs,
  toMs: timeMs,
  nowMs: timeMs,
})
/**
 * `PUT /accounts/{id}/limits` → `accountLimitsReply`: replaces the limits. 403 with `param` above a limit of
 * an account above. Only administrators change those of an account without one.
 */
export const accountLimitsBody = wantedLimits
export const accountLimitsReply = z.strictObject({ limits: keyLimits })

export type TreeRow = z.output<typeof treeRow>
/** A part of the tree of accounts. */
export type AccountTreeReply = z.output<typeof accountTreeReply>
/** What the page of an account shows. */
export type AccountPageReply = z.output<typeof accountPageReply>
/** The limits of an account. */
export type AccountLimitsBody = z.input<typeof accountLimitsBody>
export type AccountLimitsReply = z.output<typeof accountLimitsReply>
