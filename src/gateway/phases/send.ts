/** Sends a request to its upstreams, in order, until one has something to give the client. */
import { Candidates, type Means, type Outbound } from '../attempts/candidates.js'

/**
 * Starts the candidate loop. Its `reply` resolves at the first content; the loop stays in charge until the reply ends,
 * and calls `ending` before the client gets the end.
 */
export function send(
  outbound: Outbound,
  ending: () => Promise<void> | null,
  means: Means,
): Candidates {
  const candidates = new Candidates(outbound, ending, means)
  candidates.start()
  return candidates
}
