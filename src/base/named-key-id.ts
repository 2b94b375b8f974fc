/** The ids, in the ledger and in limits, of what authenticates without a key: workloads and programs. */
import { hash } from 'node:crypto'

/** The limit of the ledger's column. */
const MAX_KEY_ID = 200
const HASH_CHARS = 16
/** Characters that names in the store and subjects of limits must not have, and the one that escapes them. */
const UNSAFE = /[\p{Cc}\p{Z}\p{Cf}\p{Cs};%]/gu

/** `KIND/NAME`. Two names that differ only beyond the limit have different ids. */
export function namedKeyId(kind: string, name: string): string {
  const id = `${kind}/${name.replace(UNSAFE, escaped)}`
  if (id.length <= MAX_KEY_ID) return id
  const digest = hash('sha256', id, 'hex').slice(0, HASH_CHARS)
  return `${id.slice(0, MAX_KEY_ID - HASH_CHARS - 1)}~${digest}`
}

/** Half of a surrogate pair has no bytes of its own. */
function escaped(character: string): string {
  return /\p{Cs}/u.test(character) ? '%EF%BF%BD' : encodeURIComponent(character)
}
