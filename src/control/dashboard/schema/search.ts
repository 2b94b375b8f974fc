/** Search over everything, and the views that a user has saved. */
import * as z from 'zod'
import { id, scope, timeMs } from './shared-types.js'

/** `GET /search?q=`: keys, accounts, models and requests that the user may see, at most 8 of each. */
export const searchQuery = z.strictObject({
  account: scope.optional(),
  /** Part of a name, or a whole id. Nothing is found without it. */
  q: z.string().trim().max(128).optional(),
})
/** What was found. */
export const searchReply = z.strictObject({
  keys: z.array(
    z.strictObject({
      id,
      name: z.string(),
      accountId: id,
      accountName: z.string(),
      lastFour: z.string(),
      state: z.enum(['live', 'expired', 'revoked']),
    }),
  ),
  accounts: z.array(z.strictObject({ id, name: z.string(), email: z.string(), disabled: z.boolean() })),
  models: z.array(z.strictObject({ id: z.string() })),
  /** Requests with this id, or with this id of the client. */
  requests: z.array(
    z.strictObject({
      requestId: z.string(),
      clientRequestId: z.string().nullable(),
      accountId: z.string(),
      atMs: timeMs,
      model: z.string(),
      status: z.int(),
      outcome: z.string(),
    }),
  ),
})

/** A page with its filters, under a name. */
export const savedView = z.strictObject({ id, name: z.string(), url: z.string() })
/** `GET /views`: the views of the user, in the order in which they were saved. */
export const viewsReply = z.strictObject({ views: z.array(savedView) })
/**
 * `PUT /views/{id}` → `viewsReply`; at most 50. The page chooses the id. `DELETE /views/{id}` → `viewsReply`.
 */
export const viewBody = z.strictObject({
  /** 1 to 80 characters. */
  name: z.string().trim().min(1).max(80),
  /** Path and query within the dashboard: `/keys?sort=-cost`. */
  url: z
    .string()
    .max(1_000)
    .regex(/^\/(?!\/)[a-z0-9/-]*(?:\?[!"$-[\]-~]*)?$/, {
      error: 'must be a path of the dashboard',
    }),
})

/** What was found. */
export type SearchReply = z.output<typeof searchReply>
/** A page with its filters, under a name. */
export type SavedView = z.output<typeof savedView>
/** The views of the user. */
export type ViewsReply = z.output<typeof viewsReply>
/** The body that saves a view. */
export type ViewBody = z.input<typeof viewBody>
