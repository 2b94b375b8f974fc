/** The rows of users, inside transactions: of users alone, and of those that are made with an account. */
import { comparableEmail, type User } from '../../../accounts/account.js'
import { writeUser } from '../../records/account-and-key-records.js'
import type { UserOutcome } from '../../store.js'
import type { Statements } from '../driver.js'
import { isName } from '../read-records.js'

/** Why the user cannot be made; null if it can. */
export function refusalOfUser(
  statements: Statements,
  { id, email }: User,
): Exclude<UserOutcome, 'created'> | null {
  if (!isName(id) || !isName(email)) return 'bad_name'
  const found = (column: string, value: string): boolean => {
    return statements.prepare(`SELECT 1 FROM users WHERE ${column} = ?`).get(value) !== undefined
  }
  if (found('email', comparableEmail(email))) return 'email_taken'
  return found('id', id) ? 'id_taken' : null
}

export function insertUser(statements: Statements, user: User): void {
  statements
    .prepare('INSERT INTO users (id, email, record) VALUES (?, ?, ?)')
    .run(user.id, comparableEmail(user.email), writeUser(user))
}

/** Writes a user unchanged. */
export function rewriteUser(statements: Statements, id: string): void {
  statements.prepare('UPDATE users SET record = record WHERE id = ?').run(id)
}
