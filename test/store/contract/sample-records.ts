/**
 * Accounts, keys and entries of the trail for the tests of stores, each as unlike the others as real ones
 * are.
 */
import { digestOf, newSecret, shownParts } from '../../../src/accounts/key-secret.js'
import type { Account, ApiKey } from '../../../src/accounts/account.js'
import { newRequestId } from '../../../src/http/request-id.js'
import type { AuditEntry } from '../../../src/store/audit-trail.js'

let made = 0

export function anAccount(over: Partial<Account> = {}): Account {
  made += 1
  return {
    id: `acc_${process.pid}_${made}`,
    email: `user${made}.${process.pid}@example.com`,
    plan: 'starter',
    role: 'owner',
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
    name: `key ${made}`,
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
