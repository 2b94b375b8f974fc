/**
 * Deletes rows a batch at a time, so that other writes run in between.
 */
import type { Engine } from './engine.js'

/** Rows deleted in one transaction. */
export const BATCH = 256

/** Repeats `deleteBatch`, which returns the number of rows deleted, until a batch is not full; the total. */
export async function inBatches(
  engine: Engine,
  what: string,
  deleteBatch: () => number,
): Promise<number> {
  for (let count = 0; ;) {
    const deleted = await engine.write(what, deleteBatch)
    count += deleted
    if (deleted < BATCH) return count
  }
}
