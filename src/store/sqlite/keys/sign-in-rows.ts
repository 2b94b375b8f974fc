/** The rows of sign-in tokens, inside transactions: of tokens alone, and those of changes of accounts. */
import { writeSignInToken } from '../../records/account-and-key-records.js'
import { SIGN_IN_TOKENS_PER_ACCOUNT, type SignInToken } from '../../sign-in-tokens.js'
import type { Statements } from '../driver.js'

const INSERT = `INSERT INTO passes (id, kind, account_id, expires_at_ms, record)
  VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
/** Removes the tokens of the account and kind beyond the maximum, those first that expire first. */
const TRIM = `DELETE FROM passes WHERE id IN (
  SELECT id FROM passes WHERE account_id = ?1 AND kind = ?2 AND id <> ?3 ORDER BY expires_at_ms
  LIMIT max(0, (SELECT count(*) FROM passes WHERE account_id = ?1 AND kind = ?2)
    - ${SIGN_IN_TOKENS_PER_ACCOUNT}))`

/** False if its id is in use; nothing is changed then. */
export function insertSignInToken(
  statements: Statements,
  token: SignInToken,
  replaces: readonly SignInToken[],
): boolean {
  const { id, kind, accountId, expiresAtMs } = token
  const record = writeSignInToken(token)
  const { changes } = statements.prepare(INSERT).run(id, kind, accountId, expiresAtMs, record)
  if (Number(changes) === 0) return false
  for (const former of replaces) {
    statements.prepare('DELETE FROM passes WHERE id = ? AND kind = ?').run(former.id, kind)
  }
  if (accountId !== '') statements.prepare(TRIM).run(accountId, kind, id)
  return true
}

/** Ends the sessions of a user. */
export function deleteSessions(statements: Statements, userId: string): void {
  statements.prepare(`DELETE FROM passes WHERE account_id = ? AND kind = 'session'`).run(userId)
}
