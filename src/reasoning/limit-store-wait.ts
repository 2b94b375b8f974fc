/** Limits the time that the end of a reply waits for the store. */

/** Maximum waiting time; the store operation continues after it. */
const WAIT_MS = 500

/** Resolves when `work` does, or after 500 ms. `work` must not reject. */
export function withinTime(work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, WAIT_MS)
    void work.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}
