/** What the faults of both stores have in common. */
import { objectOf } from '../../../src/base/json.js'

/** The store of a running gateway, one of whose writes fails. */
export interface Faults {
  /** Puts the first state back, and lets the next write with this number fail; null: none. */
  arm(at: number | null): Promise<void>
  /** No write fails any more. */
  disarm(): void
  /** What was written since the state was put back. */
  written(): readonly string[]
  /** The state by kind of record, without what differs between two runs. */
  state(): Promise<Record<string, string[]>>
  /** The digests of all secrets. */
  digests(): Promise<Set<string>>
  close(): void
}

/** A row as text: random ids, secrets and times are alike in every run. */
export function shape(row: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(row, (name, value: unknown) => {
    if (
      ['place', 'lastUsedAtMs', 'bytes', 'lastFour', 'last_four', 'prefix'].includes(name) ||
      value instanceof Uint8Array
    )
      return undefined
    if (typeof value === 'number' && value > 1e12) return 'time'
    if (typeof value !== 'string') return value
    if (value.startsWith('{')) return shape(objectOf(JSON.parse(value)))
    return value
      .replaceAll(/\b(?:acc|key|usr|adm|den|aud|user|tok)_\w+/g, 'ID')
      .replaceAll(/[A-Za-z0-9_-]{22,}/g, 'RANDOM')
      .replaceAll(/sk_\w+…\w+/g, 'SECRET')
      .replaceAll(/\$argon2\S+/g, 'HASH')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replaceAll(/\d{12,}(?:-\d+)?/g, 'TIME')
  })
}
