/** The names of accounts and keys: their form, and how a name that is taken gets a number. */
/** The form of an account's name: 1 to 63 of `a-z`, `0-9` and `-`, which is neither first nor last. */
export const ACCOUNT_NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/**
 * In the names of accounts that users make for themselves, and that tokens of accounts make: `self--ada`,
 * `acme--search`. Others have no reason to use it, so a name that an administrator chooses is not taken.
 */
const OWN_MARK = '--'
const SELF_START = `self${OWN_MARK}`
/** The longest part of an account's name in the names of those that its tokens make. */
const MAX_OWN_START = 40

/** Whether an account with this name may have been made by a user for herself, or by an account's token. */
export function isOwnName(name: string): boolean {
  return name.includes(OWN_MARK)
}

/** The start of the names of accounts that the tokens of an account make. */
export function ownNameStart(account: string): string {
  return account.slice(0, MAX_OWN_START) + OWN_MARK
}

/** Whether a user made the account with this name for herself. */
export function isSelfMade(name: string): boolean {
  return name.startsWith(SELF_START)
}

/** The name of an account that a user makes for herself, before it is compared with other names. */
export function selfMadeName(email: string): string {
  return `${SELF_START}${accountNameOf(email).slice(0, MAX_MADE - 6)}`.replace(/-$/, '')
}

/** The longest name that is made from an e-mail address: a number still fits behind it. */
const MAX_MADE = 55

/** The name of an account that is made for an e-mail address, before it is compared with other names. */
export function accountNameOf(email: string): string {
  const local = email.slice(0, Math.max(0, email.lastIndexOf('@')))
  const name = local
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_MADE + 1)
  return trimmed(trimmed(name).slice(0, MAX_MADE)) || 'account'
}

function trimmed(name: string): string {
  return name.replace(/^-/, '').replace(/-$/, '')
}

/** The names to try, in order: the name, then with `-2`, `-3`, …. */
export function* numberedNames(name: string): Generator<string> {
  yield name
  for (let number = 2; ; number += 1) yield `${name}-${number}`
}

/** The longest name of a key, in characters. */
export const MAX_KEY_NAME = 100

/** The names of a key to try, in order: the name, then with ` (2)`, ` (3)`, …, cut to fit. */
export function* numberedKeyNames(name: string): Generator<string> {
  yield name
  for (let number = 2; ; number += 1) {
    const suffix = ` (${number})`
    yield `${Array.from(name)
      .slice(0, MAX_KEY_NAME - suffix.length)
      .join('')}${suffix}`
  }
}

/** The name that people see. */
export function displayNameOf(account: { readonly name: string; readonly displayName?: string }): string {
  return account.displayName ?? account.name
}
