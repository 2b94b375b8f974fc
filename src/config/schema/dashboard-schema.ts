/** The `dashboard` section of the file: keys, rules and resolved values. */
import * as z from 'zod'
import { ACCOUNT_ROLES } from '../../accounts/account.js'
import { isLoopback } from '../../http/private-addresses.js'
import { section } from './section.js'

const address = z.string().min(1).max(2_048)

/** An account's name, or the beginning of names and `*`. */
const ACCOUNT_PATTERN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?|[a-z0-9][a-z0-9-]{0,62}\*|\*)$/

const groups = z.array(z.string().min(1).max(256)).default([])

/** Groups of the identity provider that give roles at each sign-in. */
const roles = z.strictObject({
  claim: z
    .string()
    .min(1)
    .max(256)
    .default('groups')
    .describe('The claim with the groups of a user: a text or a list of texts.'),
  admin: groups.describe('The groups whose users administer the gateway.'),
  auditor: groups.describe('The groups whose users read everything and change nothing.'),
  accounts: z
    .record(z.string(), z.enum(ACCOUNT_ROLES))
    .default({})
    .describe(
      'Roles by the name of an account, with `*` at its end at most: a user of the group with this name has the role in the account with this name, if it exists. `*` selects no account with `--` in its name, which users and tokens of accounts may have made.',
    ),
})

const oidc = z.strictObject({
  issuer: address.describe("The provider's address, such as `https://accounts.example.com`."),
  client_id: z.string().min(1).max(1_024).describe('The client id that is registered there.'),
  client_secret: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe('The client secret, as `${NAME}` or `${file:PATH}`; without one, a public client.'),
  name: z.string().min(1).max(64).default('single sign-on').describe('The label of the button.'),
  create_accounts: z
    .boolean()
    .default(false)
    .describe(
      'Whether the first sign-in with a verified e-mail address creates an account with the plan `starter` (or the first one of `plans`); otherwise an administrator creates the account first.',
    ),
  roles: roles
    .optional()
    .describe(
      'Roles from the groups of the identity provider, set at each sign-in: leaving a group takes the role away. Roles that were given by hand stay; the highest role counts.',
    ),
})

/** `dashboard:` */
export const dashboardSchema = z.strictObject({
  enabled: z.boolean().default(true).describe('Whether `/dashboard/` is served.'),
  public_url: address
    .optional()
    .describe(
      'The public URL of this gateway, such as `https://llm.example.com`: for links, snippets and single sign-on. Default: the origin that a page was loaded from.',
    ),
  self_sign_up: z
    .boolean()
    .default(false)
    .describe(
      'Whether users may create their own accounts, with the plan `starter` (or the first one of `plans`); not together with `oidc`. With `smtp` the address gets a link that proves it.',
    ),
  grafana_url: address.optional().describe('A link for administrators.'),
  group_session_hours: z
    .number()
    .positive()
    .max(12)
    .default(12)
    .describe(
      'The maximum age of a session whose role comes from a group of the identity provider, in hours; the user then signs in with the provider again.',
    ),
  oidc: oidc
    .optional()
    .describe(
      'Sign-in with an OpenID Connect provider, in addition to passwords. Requires `public_url`; register `PUBLIC_URL/dashboard/oidc` as redirect URL.',
    ),
})

/** The checked values of the section. */
type DashboardValues = z.output<typeof dashboardSchema>

/** Reports problems to `fault`, with their path below the section. */
export function checkDashboard(
  values: DashboardValues,
  fault: (path: string[], message: string) => void,
): void {
  const { public_url: publicUrl, grafana_url: grafanaUrl, oidc } = values
  if (publicUrl !== undefined) {
    const url = webAddress(publicUrl)
    if (url === null) fault(['public_url'], 'must be a URL that starts with https:// or http://')
    else if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
      fault(['public_url'], 'must have no path: the dashboard is at /dashboard/')
    }
  }
  if (grafanaUrl !== undefined && webAddress(grafanaUrl) === null) {
    fault(['grafana_url'], 'must be a URL that starts with https:// or http://')
  }
  if (oidc === undefined) return
  if (publicUrl === undefined) fault(['public_url'], 'is required with oidc')
  // A sign-up proves no e-mail address: an attacker could create an account with a password for the address
  // of a later user.
  if (values.self_sign_up) {
    fault(['self_sign_up'], 'must be false with oidc: set oidc.create_accounts instead')
  }
  for (const name of Object.keys(oidc.roles?.accounts ?? {})) {
    if (ACCOUNT_PATTERN.test(name)) continue
    fault(['oidc', 'roles', 'accounts', name], "must be an account's name, with * at its end at most")
  }
  const issuer = webAddress(oidc.issuer)
  if (issuer === null) fault(['oidc', 'issuer'], 'must be a URL that starts with https:// or http://')
  else if (issuer.protocol === 'http:' && !isLoopback(issuer.hostname)) {
    fault(['oidc', 'issuer'], 'must start with https:// (http:// is allowed for localhost only)')
  }
}

/** The resolved section; only for values without findings of `checkDashboard`. */
export function dashboardOf(values: DashboardValues) {
  const { public_url: publicUrl, oidc: provider } = values
  return {
    ...section(dashboardSchema, values),
    /** An origin such as `https://llm.example.com`; null for the origin that the page was loaded from. */
    publicUrl: publicUrl === undefined ? null : new URL(publicUrl).origin,
    oidc: provider === undefined ? null : section(oidc, provider),
  }
}

function webAddress(text: string): URL | null {
  if (!URL.canParse(text)) return null
  const url = new URL(text)
  const isWeb = url.protocol === 'http:' || url.protocol === 'https:'
  return isWeb && url.username === '' && url.password === '' ? url : null
}
