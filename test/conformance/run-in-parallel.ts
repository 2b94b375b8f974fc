/**
 * Runs many short tasks, a few at a time, and counts their results.
 *
 */

/** Calls `run` for every item, `width` at once, and resolves when all are done. */
export async function together<T>(
  items: readonly T[],
  run: (item: T, at: number) => Promise<void>,
  width = 8,
): Promise<void> {
  const left = items.entries()
  const lane = async (): Promise<void> => {
    for (const [at, item] of left) await run(item, at)
  }
  await Promise.all(Array.from({ length: width }, lane))
}

/** Counts by a name, printed as one line. */
export class Tally {
  readonly #counts = new Map<string, number>()

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0
  }

  toString(): string {
    const names = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1))
    return names.map(([name, count]) => `${name} ${count}`).join(', ')
  }
}
