/**
 * The scripts of accounts and API keys.
 */
import { loadScript } from '../connection/script.js'

/** The last file of each script describes its keys, arguments and reply. */
export const KEY_SCRIPTS = {
  createPointer: loadScript('keys/create-pointer'),
  deletePointer: loadScript('keys/delete-pointer'),
  putAccount: loadScript('keys/leave-audit-entries', 'keys/put-account'),
  listAccount: loadScript('keys/list-account'),
  replaceAccount: loadScript('keys/leave-audit-entries', 'keys/replace-account'),
  putKey: loadScript('keys/leave-audit-entries', 'keys/key-order', 'keys/put-key'),
  listKeys: loadScript('keys/key-order', 'keys/list-keys'),
  replaceKey: loadScript('keys/leave-audit-entries', 'keys/replace-key'),
  revokeKey: loadScript('keys/leave-audit-entries', 'keys/revoke-key'),
  endKeys: loadScript('keys/end-keys'),
  removeKeys: loadScript('keys/key-order', 'keys/remove-keys'),
}
