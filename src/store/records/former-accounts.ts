/**
 * The names of accounts and keys of a store from a version in which they were not unique. The migrations of
 * both engines use them.
 */
import { hasName, type ApiKey } from '../../accounts/account.js'
import { accountNameOf, numberedKeyNames, numberedNames } from '../../accounts/names.js'

/** The first free name for the account of an e-mail address. */
export function freeAccountName(email: string, isTaken: (name: string) => boolean): string {
  for (const name of numberedNames(accountNameOf(email))) if (!isTaken(name)) return name
  throw new Error('there is always a free number')
}

/**
 * The keys whose names must change so that each name is unique; `keys` are all of an account, the oldest
 * first. The newest key that works keeps the name, the next gets ` (2)` and so on.
 */
export function renamedKeys(keys: readonly ApiKey[], nowMs: number): ApiKey[] {
  const named = keys.filter(hasName)
  const works = ({ expiresAtMs = Infinity }: ApiKey) => (expiresAtMs > nowMs ? 0 : 1)
  const inOrder = named.toReversed().sort((a, b) => works(a) - works(b))
  const kept = new Map<string, ApiKey>()
  const others = inOrder.filter((key) => {
    if (kept.has(key.name)) return true
    kept.set(key.name, key)
    return false
  })
  return others.map((key) => {
    for (const name of numberedKeyNames(key.name)) {
      if (kept.has(name)) continue
      const renamed = { ...key, name }
      kept.set(name, renamed)
      return renamed
    }
    throw new Error('there is always a free number')
  })
}
