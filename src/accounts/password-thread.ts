/**
 * The thread behind a password desk: hashes and compares, one after the other, when nobody else wants the
 * processor. Knows no queue.
 */
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { hashPassword, isPassword } from './password.js'

/** What the thread is given. The answer is the hash, or whether the password is the one. */
export type PasswordJob =
  | { readonly kind: 'hash'; readonly password: string }
  | { readonly kind: 'compare'; readonly password: string; readonly passwordHash: string }

/** The least that there is: the kernel then gives way to every request at once. */
const LOWEST = 19

// Linux has a priority for each thread; elsewhere this would slow the whole process down.
if (process.platform === 'linux') setPriority(LOWEST)

parentPort?.on('message', (order: PasswordJob) => {
  const { password } = order
  parentPort?.postMessage(
    order.kind === 'hash' ? hashPassword(password) : isPassword(order.passwordHash, password),
  )
})
