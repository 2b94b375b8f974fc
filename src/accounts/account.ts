/** The data types of accounts, API keys and identities, and which models a key may use. */
import { GatewayError } from '../errors.js'
import type { Labels } from './labels.js'

/** The plan of an account, by its name in the configuration, which defines its limits. */
export type PlanName = string

/** A user who may create keys. */
export interface Account {
  id: string
  email: string
  plan: PlanName
  role: 'owner' | 'admin'
  /** Argon2id in PHC form; empty if the account signs in only with an identity provider. */
  passwordHash: string
  disabled: boolean
  createdAtMs: number
}

/** Limits of one key, in addition to those of its plan; absent means no limit. */
export interface KeyLimits {
  requestsPerMinute?: number
  tokensPerMinute?: number
  /** Concurrent requests. */
  concurrent?: number
  nanoUsdPerDay?: number
  nanoUsdPerWeek?: number
  nanoUsdPerMonth?: number
}

/** Names a key of an account; an id alone does not select another account's key. */
export interface KeyReference {
  readonly accountId: string
  /** The key's id. */
  readonly id: string
}

/** A key in the store: its digest without the secret. */
export interface ApiKey {
  id: string
  accountId: string
  name: string
  /** SHA-256 of the whole secret, lower-case hex. */
  digest: string
  /** The first and last characters of the secret, to identify the key. */
  prefix: string
  lastFour: string
  createdAtMs: number
  revokedAtMs?: number
  /**
   * The time from which the key is refused, in ms since 1970; absent: never. An expired key counts for the
   * plan until it is revoked.
   */
  expiresAtMs?: number
  /** The model ids that the key may use; `*` at the end of one matches any suffix. Absent: all. */
  models?: readonly string[]
  /**
   * The tools and options of providers that the key may use, instead of the lists of the upstreams; `*` is
   * all. Absent: the lists of the upstreams.
   */
  allowTools?: readonly string[]
  limits?: KeyLimits
  /** Sorted by name. */
  labels?: Labels
  /** The key that this one replaces. */
  replaces?: string
  /** The key that replaces this one. */
  replacedBy?: string
}

/** The account and key of an authenticated request. */
export interface Identity {
  keyId: string
  accountId: string
  /** The account's e-mail address, in lower case; absent for requests of no account. */
  email?: string
  plan: PlanName
  /** The digest of the key, which identifies the running requests of a key. Null without a key. */
  digest: string | null
  /** As in `ApiKey`; null: never, all, the lists of the upstreams, none. */
  expiresAtMs: number | null
  models: readonly string[] | null
  allowTools: readonly string[] | null
  limits: KeyLimits | null
  labels: Labels
}

/** Throws `forbidden` if the key's list of models does not include the model, which is at `param`. */
export function assertModelAllowed(
  { models }: Pick<Identity, 'models'>,
  model: string,
  param = 'model',
): void {
  if (models === null || namesModel(models, model)) return
  throw new GatewayError(
    'forbidden',
    `This API key is not allowed to use the model '${shortModelName(model)}'.`,
    { param, code: 'model_not_found' },
  )
}

/** Whether one of the patterns (`ApiKey.models`) matches the model. */
export function namesModel(patterns: readonly string[], model: string): boolean {
  for (const pattern of patterns) {
    if (pattern === model) return true
    if (pattern.endsWith('*') && model.startsWith(pattern.slice(0, -1))) return true
  }
  return false
}

/**
 * The rule as a function for many models: its time does not depend on the number of patterns. Null allows all
 * models.
 */
export function allowedModelsFilter(
  patterns: readonly string[] | null,
): (model: string) => boolean {
  if (patterns === null) return () => true
  const exact = new Set(patterns)
  const prefixes = new Set(
    patterns.filter((pattern) => pattern.endsWith('*')).map((pattern) => pattern.slice(0, -1)),
  )
  return (model) => {
    if (exact.has(model)) return true
    for (let length = 0; length <= model.length; length += 1) {
      if (prefixes.has(model.slice(0, length))) return true
    }
    return false
  }
}

/** The name in an error message: its first 100 characters. */
export function shortModelName(model: string): string {
  return model.length > 100 ? `${model.slice(0, 100)}…` : model
}
