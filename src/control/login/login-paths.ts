/** The paths that programs use to sign in, and those of Claude Code's gateway protocol. */

/** The page on which a person approves a program. */
export const DEVICE_PAGE = '/auth/device'

const PATHS: ReadonlySet<string> = new Set([
  DEVICE_PAGE,
  '/auth/device/code',
  '/auth/device/token',
  '/auth/device/revoke',
  '/.well-known/oauth-authorization-server',
  // Claude Code uses these two if it does not accept the addresses of the discovery document.
  '/oauth/device_authorization',
  '/oauth/token',
  '/protocol',
  '/managed/settings',
  // What the programs of a person used, for `sluice whoami` and for Claude Code.
  '/auth/usage',
  '/api/oauth/usage',
  '/v1/metrics',
  '/v1/logs',
  '/v1/traces',
])

/** Whether the path, without a query, is one of these. */
export function isLoginPath(path: string): boolean {
  return PATHS.has(path)
}
