/**
 * The file's `dashboard` section: its keys, its rules, and what the code reads of it.
 */
import { z } from 'zod'
import type { DashboardConfig } from '../config.js'

const address = z.string().min(1).max(2_048)

const oidc = z.strictObject({
  issuer: address.describe('The provider’s address, such as `https://accounts.example.com`.'),
  client_id: z.string().min(1).max(1_024).describe('The client that is registered there.'),
  client_secret: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe('Its secret, as `${VARIABLE}` or `${file:/path}`; left out: a public client.'),
  name: z.string().min(1).max(64).default('single sign-on').describe('What the button says.'),
  create_accounts: z
    .boolean()
    .default(false)
    .describe(
      'Whether somebody whose verified e-mail has no account gets one, with the plan `starter`; otherwise an administrator makes it first.',
    ),
})

/** The section. */
export const dashboardSchema = z.strictObject({
  enabled: z.boolean().default(true).describe('Whether `/dashboard/` is served.'),
  public_url: address
    .optional()
    .describe(
      'Where people reach this gateway, such as `https://llm.example.com`: for links, snippets and the sign-in elsewhere. Left out: the address that a page was loaded from.',
    ),
  self_sign_up: z
    .boolean()
    .default(false)
    .describe(
      'Whether people may make accounts for themselves, with the plan `starter`; not beside `oidc`.',
    ),
  grafana_url: address.optional().describe('A link for administrators.'),
  oidc: oidc
    .optional()
    .describe(
      'Sign-in with an OpenID Connect provider, beside passwords. Needs `public_url`; the redirect address to register is that and `/dashboard/oidc`.',
    ),
})

/** The section after checking. */
export type DashboardValues = z.output<typeof dashboardSchema>

/** Tells `fault` of each breach, with its path below the section. */
export function checkDashboard(
  values: DashboardValues,
  fault: (path: string[], message: string) => void,
): void {
  const { public_url: publicUrl, grafana_url: grafanaUrl, oidc } = values
  if (publicUrl !== undefined) {
    const url = webAddress(publicUrl)
    if (url === null) fault(['public_url'], 'must be an http or https address')
    else if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
      fault(['public_url'], 'must have no path: the dashboard is at /dashboard/')
    }
  }
  if (grafanaUrl !== undefined && webAddress(grafanaUrl) === null) {
    fault(['grafana_url'], 'must be an http or https address')
  }
  if (oidc === undefined) return
  if (publicUrl === undefined) fault(['public_url'], 'is required for oidc')
  // Who signs up proves no e-mail: an account could wait, with a password, for the one whose e-mail it is.
  if (values.self_sign_up) {
    fault(
      ['self_sign_up'],
      'must be off beside oidc, which proves e-mails; use create_accounts there',
    )
  }
  const issuer = webAddress(oidc.issuer)
  if (issuer === null) fault(['oidc', 'issuer'], 'must be an http or https address')
  else if (issuer.protocol === 'http:' && !isLoopback(issuer.hostname)) {
    fault(['oidc', 'issuer'], 'must begin with https://, save on this machine')
  }
}

/** What the code reads; only of values that `checkDashboard` has nothing against. */
export function dashboardOf(values: DashboardValues): DashboardConfig {
  const { public_url: publicUrl, grafana_url: grafanaUrl, oidc } = values
  return {
    enabled: values.enabled,
    publicUrl: publicUrl === undefined ? null : new URL(publicUrl).origin,
    selfSignUp: values.self_sign_up,
    grafanaUrl: grafanaUrl ?? null,
    oidc:
      oidc === undefined
        ? null
        : {
            issuer: oidc.issuer,
            clientId: oidc.client_id,
            clientSecret: oidc.client_secret ?? null,
            name: oidc.name,
            createAccounts: oidc.create_accounts,
          },
  }
}

/** True for the names and addresses of this machine, to which browsers also give cookies over plain http. */
export function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (host === 'localhost' || host.endsWith('.localhost') || host === '::1') return true
  return /^127(?:\.\d{1,3}){3}$/.test(host)
}

function webAddress(text: string): URL | null {
  if (!URL.canParse(text)) return null
  const url = new URL(text)
  const isWeb = url.protocol === 'http:' || url.protocol === 'https:'
  return isWeb && url.username === '' && url.password === '' ? url : null
}
