/**
 * The dashboard's API, shared by its server and its page: every request and every reply.
 * It imports nothing of Node. The page should only `import type`, or zod becomes part of the page's script.
 *
 * All paths below are under `/dashboard/api`. A request's body is JSON with `content-type: application/json`;
 * an unknown key is refused with 400. Replies are JSON, except the CSV file and the playground's stream.
 * Names are camelCase; units end a name; times are ms since 1970; money is whole nano-dollars (1e-9 US
 * dollars), and null if a price is unknown. `undefined` is "omitted"; null is "none".
 *
 * Every failure is a problem (RFC 9457, `application/problem+json`), as in the admin API; members and kinds
 * are in `problem-details.ts`. `field` has the name of this API. What the page does by `status` and `kind`:
 *
 * | status | kind                | what the page does                                              |
 * | -----: | ------------------- | --------------------------------------------------------------- |
 * |    400 | invalid_field, unknown_field | show the detail at `field` (`email`, `limits.concurrent`) |
 * |    401 | unauthenticated     | no session or an expired one, or wrong e-mail or password       |
 * |    403 | forbidden           | not allowed, or the token below is missing or old: call `GET /session` |
 * |    403 | plan_limit          | the plan's keys are used up; show the detail                    |
 * |    404 | not_found           | unknown, or of another account                                  |
 * |    409 | name_taken, has_children | show the detail at `field`                                  |
 * |    429 | rate_limited        | wait; the header `retry-after` has seconds                       |
 * |    503 | store_unavailable   | try again; `retry-after`                                        |
 *
 * Sessions. Sign-in sets a cookie that scripts cannot read. Every request except GET has the header
 * `x-sluice-csrf` with the token of `GET /session`; requests marked "open" below need no session. The
 * browser's `origin` must be the page's own. GET never changes anything.
 *
 * A session ends after 30 minutes without user activity, and after 12 hours in any case. Polling (`GET
 * /live`, and any GET with the header `x-sluice-passive: 1`) is not activity.
 *
 * Every route of an account takes the query parameter `account`, a name or an id; administrators and auditors
 * may read `all`. Without it, the route is about the user's account, or the first by name.
 */
export * from './accounts.js'
export * from './audit.js'
export * from './batches.js'
export * from './budgets.js'
export * from './checklist.js'
export * from './operations.js'
export * from './configuration.js'
export * from './device.js'
export * from './own-usage.js'
export * from './incidents.js'
export * from './keys.js'
export * from './members.js'
export * from './models.js'
export * from './providers.js'
export * from './recordings.js'
export * from './runs.js'
export * from './search.js'
export * from './shared-types.js'
export * from './sign-in.js'
export * from './statements.js'
export * from './usage.js'
export * from './users.js'
