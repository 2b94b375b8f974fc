/**
 * Users whom an identity provider signs in. They have no password: with one they could sign in after the
 * provider has refused them. Without `dashboard.oidc` there is no other sign-in, so that passwords work then.
 */
import type { User } from '../../accounts/account.js'
import type { DashboardConfig, Snapshot } from '../../config/config.js'
import { GatewayError } from '../../errors.js'

/** The name of the provider that signs the user in; null for a user who may have a password. */
export function providerOf({ subject }: Pick<User, 'subject'>, { oidc }: DashboardConfig): string | null {
  return subject === undefined ? null : (oidc?.name ?? null)
}

/** Throws `forbidden` if an identity provider signs the user in. */
export function assertMayHavePassword(
  { snapshot }: { readonly snapshot: () => Snapshot },
  user: Pick<User, 'subject'>,
): void {
  const provider = providerOf(user, snapshot().config.dashboard)
  if (provider === null) return
  const message = `This user signs in with ${provider} and has no password. Sign in with ${provider}.`
  throw new GatewayError('forbidden', message, { param: 'password' })
}
