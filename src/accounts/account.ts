/**
 * Accounts and keys as values. Knows no engine and no HTTP.
 */

/** A plan's name; what it allows stands in the configuration (`plans`). */

/** What an account pays for; the configuration says what each plan allows. */
export type PlanName = 'starter' | 'pro' | 'max'

/** Someone who may make keys. */
export interface Account {
  id: string
  email: string
  plan: PlanName
  role: 'owner' | 'admin'
  /** Argon2id in PHC form. */
  passwordHash: string
  disabled: boolean
  createdAtMs: number
}

/** A key as it is kept: never the secret, only its digest. */
export interface ApiKey {
  id: string
  accountId: string
  name: string
  /** SHA-256 of the whole secret, lower-case hex. */
  digest: string
  /** The first and last characters of the secret, enough to tell keys apart. */
  prefix: string
  lastFour: string
  createdAtMs: number
  revokedAtMs?: number
}

/** What a request runs as, once its key has been found good. */
export interface Identity {
  keyId: string
  accountId: string
  plan: PlanName
  /** Of the key, as in `ApiKey`; tells running requests apart by key. */
  digest: string
}
