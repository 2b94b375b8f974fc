/**
 * What the tests of the vendors' clients have in common: what is said, and what must be true of the
 * upstream's side. Knows no client.
 */
import type { Test } from 'tap'
import type { Fault } from '../../src/emulator/faults/fault.js'
import type { Emulator } from '../../src/emulator/server.js'
import { until } from '../helpers/upstream.js'

/** A PNG of one pixel, as base64. */
export const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** A prompt whose answer is long and slow enough to be left or broken in its middle. */
export const LONG = 'talk [[words: 400]] [[pace: 5]]'

/** Runs `act` while every request meets `fault`. */
export async function failing<T>(
  emulator: Emulator,
  fault: Fault,
  act: () => Promise<T>,
): Promise<T> {
  const restore = emulator.script({ fault })
  try {
    return await act()
  } finally {
    restore()
  }
}

/** What `act` throws. Throws where it does not. */
export async function thrownBy(act: () => Promise<unknown>): Promise<unknown> {
  try {
    await act()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

/** The upstream sees the client go within a second, and its answer was not at its end. */
export async function upstreamIsLeft(t: Test, emulator: Emulator): Promise<void> {
  await until(() => emulator.open() === 0, 1000)
  t.equal(emulator.ledger.at(-1)?.outcome, 'client_closed', 'the upstream was left')
}
