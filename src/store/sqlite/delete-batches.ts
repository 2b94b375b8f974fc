/**
 * Deletes rows a batch at a time, so that other writes run in between.
 */

/** Rows deleted in one transaction. */
export const BATCH = 256

/** Repeats `deleteBatch`, which resolves with the number of rows deleted, until a batch is not full; the total. */
export async function inBatches(deleteBatch: () => Promise<number>): Promise<number> {
  for (let count = 0; ;) {
    const deleted = await deleteBatch()
    count += deleted
    if (deleted < BATCH) return count
  }
}
