/**
 * Accounts, keys and entries of the trail for the tests of stores, each as unlike the others as real ones
 * are.
 */
import { digestOf, newSecret, shownParts } from '../../../src/accounts/key-secret.js'
import type { Account, ApiKey, User } from '../../../src/accounts/account.js'
import { newRequestId } from '../../../src/http/request-id.js'
import type { AuditEntry } from '../../../src/store/audit-trail.js'

let made = 0

/** An account with an e-mail address. */
type SampleAccount = Account & { email: string }

export function anAccount(over: Partial<SampleAccount> = {}): SampleAccount {
  made += 1
  return {
    id: `acc_${process.pid}_${made}`,
    name: `user${made}-${process.pid}`,
    email: `user${made}.${process.pid}@example.com`,
    plan: 'starter',
    disabled: false,
    createdAtMs: 1_700_000_000_000 + made,
    ...over,
  }
}

/** The user that is made with the account. */
export function aLogin({ id, email }: SampleAccount, over: Partial<User> = {}): User {
  return { ...aUser({ email: email.toLowerCase() }), id, ...over }
}

export function aUser(over: Partial<User> = {}): User {
  made += 1
  return {
    id: `usr_${process.pid}_${made}`,
    email: `person${made}.${process.pid}@example.com`,
    role: null,
    passwordHash: '$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA',
    disabled: false,
    createdAtMs: 1_700_000_000_000 + made,
    ...over,
  }
}

export function aKey(accountId: string, over: Partial<ApiKey> = {}): ApiKey {
  made += 1
  const secret = newSecret()
  return {
    id: `key_${process.pid}_${made}`,
    accountId,
    name: `key ${process.pid} ${made}`,
    digest: digestOf(secret),
    ...shownParts(secret),
    createdAtMs: 1_700_000_000_000 + made,
    ...over,
  }
}

/** An audit entry for an action on a record of an account, later than earlier samples. */
export function anEntry(
  accountId: string,
  action: Pick<AuditEntry, 'action' | 'target'> & Partial<AuditEntry>,
): AuditEntry {
  made += 1
  const atMs = 1_700_000_000_000 + made
  return {
    id: newRequestId(atMs),
    atMs,
    accountId,
    actor: 'ada@example.com',
    detail: 'ünïcode "quoted"',
    address: '127.0.0.1',
    ...action,
  }
}
