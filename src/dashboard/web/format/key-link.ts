/** The address of a key's drawer, and of its form. */
import type { Key } from '../../server/schema/schema.js'

/** Part of the form that the page opens with the key. */
export type KeyEdit = 'all' | 'limits'

/**
 * `/keys?account=acc_1&key=key_1`, with `&edit=limits` to open the form at its limits. The account is that of
 * the key, so that the list behind the drawer has it.
 */
export function keyLink({ accountId, id }: Pick<Key, 'accountId' | 'id'>, edit?: KeyEdit): string {
  const query = new URLSearchParams({ account: accountId, key: id })
  if (edit !== undefined) query.set('edit', edit)
  return `/keys?${query.toString()}`
}
