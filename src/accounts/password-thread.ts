/** The thread of a `PasswordQueue`: hashes and compares passwords in sequence, at the lowest priority. */
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { hashPassword, isPassword } from './password.js'

/** A job for the thread. Its result is the hash, or whether the password matches. */
export type PasswordJob =
  | { readonly kind: 'hash'; readonly password: string }
  | { readonly kind: 'compare'; readonly password: string; readonly passwordHash: string }

/** The lowest priority: the kernel prefers the threads that serve requests. */
const LOWEST = 19

// Linux has a priority per thread; elsewhere this would slow the whole process down.
if (process.platform === 'linux') setPriority(LOWEST)

parentPort?.on('message', (job: PasswordJob) => {
  const { password } = job
  parentPort?.postMessage(
    job.kind === 'hash' ? hashPassword(password) : isPassword(job.passwordHash, password),
  )
})
