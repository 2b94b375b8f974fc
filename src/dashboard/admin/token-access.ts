/**
 * Which accounts an admin token sees: all, or with an account of its own this one and those below it. The
 * others do not exist for it.
 */
import type { Account } from '../../accounts/account.js'
import type { AdminToken } from '../../store/admin-tokens.js'
import { notFound } from './problem-details.js'
import type { AdminServices } from './services.js'

/** Whether the token sees the account. */
export async function sees(
  { store }: Pick<AdminServices, 'store'>,
  token: AdminToken,
  account: Account,
): Promise<boolean> {
  const { accountId } = token
  if (accountId === null || accountId === account.id) return true
  const above = await store.ancestorsOf(account)
  return above.some(({ id }) => id === accountId)
}

/** The account with the name, if the token sees it. Throws `not_found`. */
export async function accountNamed(
  services: Pick<AdminServices, 'store'>,
  token: AdminToken,
  name: string,
): Promise<Account> {
  const account = await services.store.accountByName(name)
  if (account === null || !(await sees(services, token, account))) throw notFound()
  return account
}
