/** The name of a value of a dimension in notifications, which otherwise have digests of keys. */
import { hash } from 'node:crypto'
import type { ValueName } from './dimension-values.js'

/** Lower-case hex, as the digest of a key, of which there is none with this text. */
export function valueDigest({ accountId, dimension, value }: ValueName): string {
  return hash('sha256', `value\0${accountId}\0${dimension}\0${value}`, 'hex')
}
