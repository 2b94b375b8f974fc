/**
 * How long the head of a stream, its status and headers, waits for the first content: before the head, a
 * failure is a real status, and another attempt may serve the request.
 */

/** Proxies need a head soon. */
const HEAD_WAIT_MS = 1_000
/** The same if another attempt could follow, which is possible only before the head. Proxies wait 60 s. */
const LONG_HEAD_WAIT_MS = 30_000

/** In ms from the upstream's head. `isOnly`: no other attempt can follow. */
export function headWaitMs({ isOnly }: { readonly isOnly: boolean }): number {
  return isOnly ? HEAD_WAIT_MS : LONG_HEAD_WAIT_MS
}
