/** Keys: list, create, change, rotate, revoke; and the state of their limits. */
import * as z from 'zod'
import { LIMIT_MEMBERS } from '../../../base/limit-members.js'
import { plan } from './accounts.js'
import {
  count,
  cursor,
  id,
  keyLimits,
  labelText,
  modelId,
  nanoUsdSum,
  numberText,
  scope,
  search,
  sort,
  timeMs,
  wanted,
  wantedLimits,
} from './shared-types.js'

/** Values by name. */
const labels = z.record(z.string(), z.string())

/**
 * Settings of a key. `models`: ids that the key may use; `claude-*` allows all ids with this prefix.
 * `allowTools`: tools and options of providers that it may use: `web_search`, `mcp`, …; `*` is all; null: the
 * lists of the upstreams. Only administrators may allow tools, and add, change or remove the label
 * `priority`: 403 with `field`.
 */
const settings = {
  name: wanted.optional(),
  /** Ms since 1970; null: never. */
  expiresAtMs: wanted.optional(),
  models: wanted.optional(),
  allowTools: wanted.optional(),
  limits: wantedLimits.optional(),
  labels: wanted.optional(),
}

/** A key, without its secret. */
export const key = z.strictObject({
  id,
  accountId: id,
  accountName: z.string(),
  name: z.string(),
  /** The e-mail address of the user who made it, or what else did; null: not known. */
  createdBy: z.string().nullable(),
  /** The first characters of the secret, `sk_9fQ2x`. */
  prefix: z.string(),
  lastFour: z.string(),
  createdAtMs: timeMs,
  /** Null: never. */
  expiresAtMs: timeMs.nullable(),
  revokedAtMs: timeMs.nullable(),
  /** `live`, or the reason why it does not work. */
  state: z.enum(['live', 'expired', 'revoked']),
  /** Null: all. */
  models: z.array(z.string()).nullable(),
  /** Null: the lists of the upstreams. */
  allowTools: z.array(z.string()).nullable(),
  limits: keyLimits,
  labels,
  /** The key that this one replaces, and the one that replaces it. */
  replaces: id.nullable(),
  replacedBy: id.nullable(),
  /** Null: never. */
  lastUsedAtMs: timeMs.nullable(),
  /** In the last 30 days, as are the next two members. */
  requests: count,
  costNanoUsd: nanoUsdSum,
  /** Requests of unknown price; `costNanoUsd` excludes them. */
  unpricedRequests: count,
})

/**
 * `GET /keys`, by default the newest first. `sort`: name, account, createdAt, expiresAt, lastUsedAt,
 * requests, cost, state. Of all accounts with `account=all`.
 */
export const keysQuery = z.strictObject({
  account: scope.optional(),
  /** `live` (default) omits revoked keys, `all` none; `expired` and `revoked` are only those. */
  state: z.enum(['live', 'all', 'expired', 'revoked']).optional(),
  /** Part of a name or, with `account=all`, of an account's; the id or last four characters. */
  search: search.optional(),
  label: labelText.optional(),
  /** Only keys that may use this model. */
  model: modelId.optional(),
  createdBy: z.string().max(400).optional(),
  sort: sort.optional(),
  after: cursor.optional(),
  /** 1 to 500; default 100. */
  limit: numberText(1, 500).optional(),
})
/** A page of keys. `total` is the number of keys of all pages. */
export const keysReply = z.strictObject({
  keys: z.array(key),
  next: z.string().nullable(),
  total: count,
})

/**
 * `POST /keys` → 201 `createdKeyReply`; 403 `plan_limit`; 403 with `param` for a limit above the plan's; 429
 * with `retry-after` if an account creates more than 60 keys at once (300 on a plan with a maximum number of
 * keys), and then more than 6 per minute.
 */
export const createKeyBody = z.strictObject(settings)
/** The only reply with a secret. The page must drop it when the dialog closes. */
export const createdKeyReply = z.strictObject({ key, secret: z.string() })

/**
 * `PATCH /keys/{id}` → `keyReply`. Omitted members are unchanged; `limits` and `labels` are replaced as a
 * whole. Administrators change keys of every account; with `account=all` the key's own account is found.
 */
export const changeKeyBody = z.strictObject({ ...settings, reason: wanted.optional() })
export const keyReply = z.strictObject({ key })

/**
 * `POST /keys/{id}/rotate` → 201 `rotatedKeyReply`: a new key with the name, expiry, models, tools,
 * limits and labels of the old one. Both work for `overlapSeconds`, by default until the old one is revoked.
 * A rotation may exceed the plan's number of keys by one; the old key then expires after 24 hours. 403
 * `plan_limit` if the account exceeds the plan already. `DELETE /keys/{id}` → `keyReply` revokes the key;
 * requests with it fail within a second.
 */
export const rotateKeyBody = z.strictObject({
  reason: wanted.optional(),
  /** 0: the old key ends at once. */
  overlapSeconds: wanted.optional(),
})
/** `GET /keys/{id}/clients`: how programs use the gateway with the key, as `sluice connect` prints it. */
export const keyClientsQuery = z.strictObject({
  account: scope.optional(),
  /** The gateway as the clients reach it, without a path. */
  url: z
    .url({ protocol: /^https?$/ })
    .max(300)
    .regex(/^https?:\/\/[^/?#@]+$/),
})
export const keyClientsReply = z.strictObject({
  clients: z.array(z.strictObject({ name: z.string(), title: z.string(), text: z.string() })),
  /** The variables of the SDKs; the value of the key is `${SLUICE_KEY}`. */
  env: z.record(z.string(), z.string()),
})

/** `DELETE /keys/{id}`. */
export const revokeKeyQuery = z.strictObject({
  account: scope.optional(),
  reason: wanted.optional(),
})
/** The new key, its secret, and the expiry of the old key (null: it works until it is revoked). */
export const rotatedKeyReply = createdKeyReply.extend({ oldEndsAtMs: timeMs.nullable() })

/** A key, without its secret. */
export type Key = z.output<typeof key>
export type KeysQuery = z.input<typeof keysQuery>
/** A page of keys. */
/**
 * `POST /keys/lookup`: the key with this SHA-256, which the page computes of a pasted secret, so that the
 * secret is never sent. Null: there is none that the user may see.
 */
export const lookUpKeyBody = z.strictObject({
  digest: z.string().regex(/^[0-9a-f]{64}$/, { error: 'must be the SHA-256 of a key in lower-case hex' }),
})
export const lookUpKeyReply = z.strictObject({
  key: z
    .strictObject({
      id,
      accountId: id,
      accountName: z.string(),
      name: z.string(),
      state: z.enum(['live', 'expired', 'revoked']),
    })
    .nullable(),
})
/** A key that was found by its digest. */
export type LookUpKeyReply = z.output<typeof lookUpKeyReply>

export type KeysReply = z.output<typeof keysReply>
/** The body that creates a key. */
export type CreateKeyBody = z.input<typeof createKeyBody>
/** The only reply with a secret. */
export type CreatedKeyReply = z.output<typeof createdKeyReply>
/** A key that replaces another one. */
export type RotatedKeyReply = z.output<typeof rotatedKeyReply>
/** The body that changes a key. */
export type ChangeKeyBody = z.input<typeof changeKeyBody>
export type KeyReply = z.output<typeof keyReply>

/** One limit and its usage. Amounts are requests, tokens, concurrent requests or nano-dollars. */
export const standing = z.strictObject({
  /** `plan`: all keys of the account together; `account`: a rule of the configuration; `key`: one key. */
  scope: z.enum(['plan', 'account', 'key']),
  /** Null unless `scope` is `key`. */
  keyId: z.string().nullable(),
  keyName: z.string().nullable(),
  /** As in the configuration. */
  kind: z.enum(LIMIT_MEMBERS.map(({ name }) => name)),
  limit: count,
  used: count,
  left: count,
  /** When the limit is fully available again; null: unused, or it depends on running requests. */
  resetsAtMs: timeMs.nullable(),
  /** A budget or quota counts what was used from this time on; null: in its whole period. */
  sinceMs: timeMs.nullable(),
})

/**
 * `GET /limits`: limits of the account and of its newest 100 keys with own limits. Not available for `all`.
 */
export const limitsQuery = z.strictObject({ account: scope.optional() })
/** The limits of the account first. */
export const limitsReply = z.strictObject({ nowMs: timeMs, limits: z.array(standing) })

/** `GET /keys/{id}`, also with `account=all`. */
export const keyQuery = z.strictObject({ account: scope.optional() })
/** A key, the limits that apply to it, and its labels over time. */
export const keyDetailReply = z.strictObject({
  key,
  nowMs: timeMs,
  /** The plan of the key's account, and the account's keys that are not revoked. */
  plan,
  liveKeys: count,
  /** The limits of the account first. */
  limits: z.array(standing),
  /**
   * The labels after each change, the newest first. The last ones are those of its creation, or the
   * earliest in the audit log if that no longer reaches back to it.
   */
  labelHistory: z.array(
    z.strictObject({
      atMs: timeMs,
      /** As `actor` in the audit log; null: not known. */
      by: z.string().nullable(),
      labels,
    }),
  ),
})

/** A key with its limits and the history of its labels. */
export type KeyDetailReply = z.output<typeof keyDetailReply>
/** One limit and its usage. */
export type LimitLevel = z.output<typeof standing>
/** All limits of an account. */
export type LimitsReply = z.output<typeof limitsReply>
/** How a key is rotated. */
export type RotateKeyBody = z.input<typeof rotateKeyBody>
/** Settings of clients for a key. */
export type KeyClientsReply = z.output<typeof keyClientsReply>
