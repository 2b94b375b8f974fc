/** How a key is shown without its secret. */
import type { Key } from '../../../server/schema/schema.js'

/** `sk_9fQ2x…a7Lm`: enough to know a key by, and no use to anybody. */
export function maskOf({ prefix, lastFour }: Pick<Key, 'prefix' | 'lastFour'>): string {
  return `${prefix}…${lastFour}`
}
