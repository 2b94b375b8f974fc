/**
 * What became of a transaction that failed, as the store's callers are told.
 * Knows no table.
 */
export { damaged, unavailable } from './failure.js'

/**
 * A commit that fails rejects the promise of every put in it. The transaction's own promise, which
 * is awaited, says the same; unhandled, these would end the process when a disk is full.
 */
export function quietly(commit: Promise<unknown>): void {
  commit.then(undefined, () => undefined)
}

/** What the system said when a commit failed; the engine's first error only promises to tell. */
export async function reasonOf(error: unknown): Promise<unknown> {
  if (!(error instanceof Error && 'commitError' in error)) return error
  const told = Promise.resolve(error.commitError).catch((reason: unknown) => reason)
  // It is told in the same turn of the loop; were it ever not, the first error has to do.
  const late = new Promise((resolve) => setImmediate(resolve, error))
  return Promise.race([told, late])
}
