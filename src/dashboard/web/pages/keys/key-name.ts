/** The display name of a key, without its secret. */
import type { Key } from '../../../server/schema/schema.js'

/** `sk_9fQ2x…a7Lm`: enough to identify a key. */
export function maskOf({ prefix, lastFour }: Pick<Key, 'prefix' | 'lastFour'>): string {
  return `${prefix}…${lastFour}`
}
