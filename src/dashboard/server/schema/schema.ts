/**
 * The dashboard's API, as its server and its page see it: every request, every reply.
 * Imports nothing of Node, so that the page can have it; the page should import types only
 * (`import type`), or the checker becomes part of what a browser loads.
 *
 * All paths below are under `/dashboard/api`. A request's body is JSON with `content-type:
 * application/json`; a key that a schema does not name is refused with 400. A reply is JSON, save the
 * CSV file and the playground's stream. Names are camelCase; units end a name; times are ms since 1970;
 * money is whole nano-dollars (1e-9 US dollars), and null where a price is not known. `undefined` is
 * "left out"; null is "none".
 *
 * Every failure is `errorReply`, with the status of its `code`. Those that a page has to know:
 *
 * | status | kind                | what the page does                                              |
 * | -----: | ------------------- | --------------------------------------------------------------- |
 * |    400 | malformed_request   | show the message at the field `param` (`email`, `limits.concurrent`) |
 * |    401 | unauthenticated     | there is no session (any more), or wrong e-mail or password     |
 * |    403 | forbidden           | not allowed, or the token below is missing or old: ask `GET /session` again |
 * |    403 | plan_limit          | the plan's keys are used up; the message says what to do         |
 * |    404 | not_found           | no such thing, or somebody else's                                |
 * |    429 | rate_limited        | wait; the header `retry-after` has seconds                       |
 * |    503 | store_unavailable, overloaded | try again; `retry-after`                               |
 *
 * Who asks. Sign-in sets a cookie that no script can read. Every request that is not a GET carries the
 * header `x-sluice-csrf` with the token of `GET /session`, save the few that need no session (marked
 * "open" below). The browser's `origin` must be the page's own. GET never changes anything.
 *
 * Ages. A session ends after 30 minutes without a request that somebody made, and after 12 hours. What a
 * page asks by itself (`GET /live`, and any GET with the header `x-sluice-passive: 1`) does not count.
 *
 * Reads that take `account`: an administrator may name another account, or `all`; anybody else only
 * their own.
 */
export * from './account.js'
export * from './admin.js'
export * from './basics.js'
export * from './configuration.js'
export * from './keys.js'
export * from './limits.js'
export * from './models.js'
export * from './providers.js'
export * from './session.js'
export * from './usage.js'
