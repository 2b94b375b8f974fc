/**
 * Runs long work in several turns of the event loop, so that other requests are served between them. All long
 * work of the process shares one queue: each iteration of the event loop runs one turn at most, for any
 * number of large bodies.
 */
import type { Steps } from '../../formats/wire/steps.js'
import { TurnQueue } from '../../store/turn-queue.js'

/** Bytes that are copied in one step. */
const STEP_BYTES = 4 * 1024 * 1024
/** Characters that are encoded in one step. */
const STEP_CHARS = 1024 * 1024

// Bodies have a queue of their own, without rests: a client waits for each.
const queue = new TurnQueue(false)

/** Resolves in an iteration of the event loop in which no other large body is processed. */
export function turn(): Promise<void> {
  return queue.turn()
}

/** Runs the steps in as many turns as they need, the first one in the next turn. */
export function inTurns<T>(steps: Steps<T>): Promise<T> {
  return queue.run(steps)
}

/** The result of the steps; a promise of it, in as many turns as they need, if there are several. */
export function nowOrInTurns<T>(steps: Steps<T>): T | Promise<T> {
  const { done, value } = steps.next()
  return done === true ? value : inTurns(steps)
}

/** The text in UTF-8, which has `size` bytes. */
export function* encodedText(text: string, size: number): Steps<Buffer> {
  const bytes = Buffer.allocUnsafe(size)
  let written = 0
  for (let at = 0; at < text.length;) {
    let end = at + STEP_CHARS
    // The halves of a pair of surrogates stay together.
    const last = text.charCodeAt(end - 1)
    if (last >= 0xd800 && last <= 0xdbff) end -= 1
    written += bytes.write(text.slice(at, end), written)
    at = end
    yield
  }
  return bytes
}

/** All chunks as one buffer; empties the list, so that each chunk can be freed. */
export function* joinedSteps(chunks: Buffer[]): Steps<Buffer> {
  const bytes = Buffer.allocUnsafe(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
  let at = 0
  let stepEnd = STEP_BYTES
  for (let chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift()) {
    at += chunk.copy(bytes, at)
    if (at < stepEnd) continue
    stepEnd = at + STEP_BYTES
    yield
  }
  return bytes
}
