/** Limits the time that the end of a reply waits for the store. */

/** The store operation continues after this time. */
const WAIT_MS = 500

/** Resolves with the work, or after 500 ms. The work must not reject. */
export function withinTime(work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, WAIT_MS)
    void work.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}
