/** Creates a key of the test's account in a store that other processes may have open. */
import { createAccount, findAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from '../helpers/keys.js'
import type { Store } from '../../src/store/store.js'
import { EMAIL } from '../process/program.js'

export async function newKey(store: Store): Promise<{ secret: string; accountId: string; keyId: string }> {
  const existing = await findAccount(store, EMAIL)
  const newAccount = {
    email: EMAIL,
    plan: 'max',
    password: 'correct horse battery staple',
  } as const
  const account = existing ?? (await createAccount(store, newAccount)).account
  const plan = { priceUsd: 0, maxKeys: null }
  const plans = { starter: plan, pro: plan, max: plan }
  const { secret, key } = await createKey(store, { plans, account, name: 'test' })
  return { secret, accountId: account.id, keyId: key.id }
}
