/**
 * Accounts and keys as values. Knows no engine and no HTTP.
 */

import type { Labels } from './labels.js'

/** A plan's name; what it allows stands in the configuration (`plans`). */

/** What an account pays for; the configuration says what each plan allows. */
export type PlanName = 'starter' | 'pro' | 'max'

/** Someone who may make keys. */
export interface Account {
  id: string
  email: string
  plan: PlanName
  role: 'owner' | 'admin'
  /** Argon2id in PHC form; empty for one that signs in with an identity provider only. */
  passwordHash: string
  disabled: boolean
  createdAtMs: number
}

/** Limits of one key, each on top of those of its plan; what is left out the key does not limit. */
export interface KeyLimits {
  requestsPerMinute?: number
  tokensPerMinute?: number
  /** Requests at the same time. */
  concurrent?: number
  nanoUsdPerDay?: number
  nanoUsdPerMonth?: number
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
  /** From when on it is refused; absent: never. It counts for the plan until it is revoked. */
  expiresAtMs?: number
  /** The model ids that it may ask for; one that ends in `*` allows all that begin so. Absent: all. */
  models?: readonly string[]
  limits?: KeyLimits
  /** Given when it was made, in the order of their names. */
  labels?: Labels
  /** The key that this one was made to replace. */
  replaces?: string
  /** The key that was made to replace this one. */
  replacedBy?: string
}

/** What a request runs as, once its key has been found good. */
export interface Identity {
  keyId: string
  accountId: string
  plan: PlanName
  /** Of the key, as in `ApiKey`; tells running requests apart by key. Null: there is no key. */
  digest: string | null
  /** As in `ApiKey`; null: never, all, none. */
  expiresAtMs: number | null
  models: readonly string[] | null
  limits: KeyLimits | null
  labels: Labels
}

/** Whether one of the patterns (`ApiKey.models`) names the model. */
export function namesModel(patterns: readonly string[], model: string): boolean {
  for (const pattern of patterns) {
    if (pattern === model) return true
    if (pattern.endsWith('*') && model.startsWith(pattern.slice(0, -1))) return true
  }
  return false
}
