/**
 * Denied workload identities: a token with a denied `sub` or `jti` is refused by every gateway of the store.
 */
import { hash } from 'node:crypto'

/** One denial. Exactly one of `sub` and `jti` is set. */
export interface Denial {
  /** 1 to 100 characters without spaces. */
  readonly id: string
  /** The name of an entry of `identity`. */
  readonly identity: string
  readonly sub: string | null
  readonly jti: string | null
  /** Empty for none. */
  readonly reason: string
  /** Null: for ever. */
  readonly expiresAtMs: number | null
  readonly createdAtMs: number
}

/** What a denial or a token is about. */
export type DenialSubject = Pick<Denial, 'identity' | 'sub' | 'jti'>

/** The names under which the denials of a token are found: a digest for each of its `sub` and `jti`. */
export function subjectsOf({ identity, sub, jti }: DenialSubject): string[] {
  const subjects: string[] = []
  if (sub !== null) subjects.push(subjectOf('sub', identity, sub))
  if (jti !== null) subjects.push(subjectOf('jti', identity, jti))
  return subjects
}

function subjectOf(kind: 'sub' | 'jti', identity: string, value: string): string {
  return hash('sha256', `${kind}\0${identity}\0${value}`, 'hex')
}

/** The expiry of a denial in an index; those without one sort last. */
export function denialEndOf({ expiresAtMs }: Pick<Denial, 'expiresAtMs'>): number {
  return expiresAtMs ?? Number.MAX_SAFE_INTEGER
}
