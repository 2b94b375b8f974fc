/** For administrators: operations and accounts. Owners get 403; the audit trail is everybody's own. */
import { z } from 'zod'
import { planName, role } from './account.js'
import { count, cursor, id, nanoUsd, numberText, scope, search, timeMs } from './basics.js'
import { requestRow } from './usage.js'

/** An upstream as it has been in the last five minutes. */
export const upstreamState = z.strictObject({
  name: z.string(),
  dialect: z.string(),
  preset: z.string().nullable(),
  /** Without a path: `https://api.openai.com`. */
  origin: z.string(),
  configured: z.boolean(),
  /** The variable or file that its key comes from. */
  apiKeySource: z.string().nullable(),
  /** Requests that are with it now, all processes of this machine together; null: not known. */
  inFlight: count.nullable(),
  /** Attempts at it, retries included. */
  attemptsPerMinute: z.number(),
  /**
   * Failures by who has to act on them. Only those of the provider tell of its health. Attempts count for the upstream
   * that they went to, and requests that were refused before an attempt for the one that would have been asked.
   */
  failures: z.strictObject({ provider: count, gateway: count, limits: count, client: count }),
  /** Failures of the provider as a share of the attempts, 0 to 1. */
  failureShare: z.number().min(0).max(1),
  /** The five most frequent kinds of failures of the provider. */
  errors: z.array(z.strictObject({ kind: z.string(), count, lastAtMs: timeMs })),
  /** Attempts that were repeated at this upstream, and moves to another upstream after a failure here. */
  retries: z.strictObject({ count, lastAtMs: timeMs.nullable() }),
  fallbacks: z.strictObject({ count, lastAtMs: timeMs.nullable() }),
  firstTokenP50Ms: z.number().nullable(),
  firstTokenP95Ms: z.number().nullable(),
  /** Of several processes the state that is furthest from closed; null: not known. */
  breaker: z.enum(['closed', 'open', 'half_open']).nullable(),
  /** When the breaker last opened or closed; null: closed since the start, or not known. */
  breakerChangedAtMs: timeMs.nullable(),
})

/** The configuration in force. Secrets are masked. */
export const configState = z.strictObject({
  generation: count,
  loadedAtMs: timeMs,
  /** Of the file's text, hex. */
  fileHash: z.string(),
  /** What differs from the generation before, by path; empty for the first. */
  changes: z.array(
    z.strictObject({
      path: z.string(),
      /** JSON; null: it was not there. */
      before: z.string().nullable(),
      /** JSON; null: it is gone. */
      after: z.string().nullable(),
    }),
  ),
  /** The last file that was not taken, if that was after the one in force was loaded. */
  refused: z.strictObject({ atMs: timeMs, problems: z.array(z.string()) }).nullable(),
})

/** `GET /operations`. */
export const operationsReply = z.strictObject({
  nowMs: timeMs,
  upstreams: z.array(upstreamState),
  config: configState,
  /** The last 25 that failed for any account, newest first. */
  failed: z.array(requestRow),
})

/** An account in the administrator's list. */
export const accountRow = z.strictObject({
  id,
  email: z.string(),
  role,
  plan: planName,
  disabled: z.boolean(),
  createdAtMs: timeMs,
  liveKeys: count,
  /** Of the last 30 days. */
  requests: count,
  spendNanoUsd: nanoUsd,
  unpricedRequests: count,
})

/** `GET /accounts`: newest first. */
export const accountsQuery = z.strictObject({
  search: search.optional(),
  after: cursor.optional(),
  /** 1 to 200; 50 where left out. */
  limit: numberText(1, 200).optional(),
})
/** A page of accounts, with the same promise as a page of keys. */
export const accountsReply = z.strictObject({
  accounts: z.array(accountRow),
  next: z.string().nullable(),
})

/** `POST /accounts` → 201 `createdAccountReply`. The person gets a link and sets the password. */
export const createAccountBody = z.strictObject({
  email: z.string().max(254),
  plan: planName,
  role: role.optional(),
})
/** A one-time link to set a password, shown once. */
export const link = z.strictObject({ url: z.string(), expiresAtMs: timeMs })
/** An account that was made. */
export const createdAccountReply = z.strictObject({ account: accountRow, link })

/** `PATCH /accounts/{id}` → `accountReply`. Disabling ends sessions, and keys fail within a second. */
export const changeAccountBody = z.strictObject({
  plan: planName.optional(),
  disabled: z.boolean().optional(),
})
/** One account. */
export const accountReply = z.strictObject({ account: accountRow })

/** `POST /accounts/{id}/reset` with `{}` → 201: a link for a new password; older ones stop working. */
export const resetLinkBody = z.strictObject({})
/** The link. */
export const resetLinkReply = z.strictObject({ link })

/** Something that was done to an account or a key. */
export const auditEntry = z.strictObject({
  id: z.string(),
  atMs: timeMs,
  /** Whose account it was done to. */
  accountId: id,
  /** Who did it: an account's e-mail, or `command line`. */
  actor: z.string(),
  /** `key.create`, `account.disable`, `session.sign-in` and so on. */
  action: z.string(),
  /** The key's or account's id. */
  target: z.string(),
  /** Its name at the time, and what changed: `name: laptop → ci`. */
  detail: z.string(),
  /** The address that the request came from, as the socket has it; null for the command line. */
  address: z.string().nullable(),
})

/** `GET /audit`: newest first. */
export const auditQuery = z.strictObject({
  account: scope.optional(),
  after: cursor.optional(),
  /** 1 to 200; 50 where left out. */
  limit: numberText(1, 200).optional(),
})
/** A page of the trail. */
export const auditReply = z.strictObject({
  entries: z.array(auditEntry),
  next: z.string().nullable(),
})

/** An upstream as it is now. */
export type UpstreamState = z.output<typeof upstreamState>
/** The configuration in force. */
export type ConfigState = z.output<typeof configState>
/** How things run. */
export type OperationsReply = z.output<typeof operationsReply>
/** An account in the list. */
export type AccountRow = z.output<typeof accountRow>
/** Which accounts. */
export type AccountsQuery = z.input<typeof accountsQuery>
/** A page of accounts. */
export type AccountsReply = z.output<typeof accountsReply>
/** Makes an account. */
export type CreateAccountBody = z.input<typeof createAccountBody>
/** An account that was made. */
export type CreatedAccountReply = z.output<typeof createdAccountReply>
/** Changes an account. */
export type ChangeAccountBody = z.input<typeof changeAccountBody>
/** One account. */
export type AccountReply = z.output<typeof accountReply>
/** A link for a new password. */
export type ResetLinkReply = z.output<typeof resetLinkReply>
/** Something that was done. */
export type AuditEntry = z.output<typeof auditEntry>
/** A page of the trail. */
export type AuditReply = z.output<typeof auditReply>
