/**
 * Long work as a generator. It stays synchronous, and each of its steps takes a few milliseconds at most, so
 * that the gateway can serve other requests between them (`base/turn-queue.ts`).
 */

/** Work in steps. */
export type Steps<T> = Generator<undefined, T, undefined>

/** Runs all steps at once. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
