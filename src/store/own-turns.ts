/** Runs long work in several turns of the event loop, between which a gateway serves requests. */
import type { Steps } from '../formats/wire/steps.js'

/** Steps run in one turn until they have taken this long together. */
const TURN_MS = 4

/** Ends the turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Runs the steps in as many turns as they need, the first one in the next turn. */
export async function inOwnTurns<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    await nextTurn()
    const untilMs = performance.now() + TURN_MS
    do {
      const { done, value } = steps.next()
      if (done === true) return value
    } while (performance.now() < untilMs)
  }
}
