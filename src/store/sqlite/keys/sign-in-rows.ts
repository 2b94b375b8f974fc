/** The rows of sign-in tokens, inside transactions: of tokens alone, and those of changes of accounts. */
import { accessDigest } from '../../../accounts/account.js'
import { writeSignInToken } from '../../records/account-and-key-records.js'
import {
  SIGN_IN_TOKENS_PER_ACCOUNT,
  type ChangedSignIns,
  type EndedTokens,
  type SignInToken,
  type SignInTokenKind,
} from '../../sign-in-tokens.js'
import { textIn, type Statements } from '../driver.js'
import type { ChangeRows } from './change-rows.js'

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

/** The sign-ins that change with another change. */
export function changeSignIns(
  statements: Statements,
  changes: Pick<ChangeRows, 'note'>,
  { ends = [], link = null }: ChangedSignIns,
): void {
  for (const ended of ends) deleteSignInTokens(statements, changes, ended)
  if (link !== null) insertSignInToken(statements, link.token, link.replaces)
}

/** Ends tokens, and notes those of access; the kind of each. */
export function deleteSignInTokens(
  statements: Statements,
  changes: Pick<ChangeRows, 'note'>,
  { kinds, accountId, except = [] }: EndedTokens,
): SignInTokenKind[] {
  const sql = `DELETE FROM passes WHERE account_id = ? AND kind = ?
    AND id NOT IN (SELECT value FROM json_each(?)) RETURNING id`
  return kinds.flatMap((kind) =>
    statements
      .prepare(sql)
      .all(accountId, kind, JSON.stringify(except))
      .map((row) => {
        if (kind === 'access') changes.note(accessDigest(textIn(row, 'id')))
        return kind
      }),
  )
}
