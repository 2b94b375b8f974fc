/**
 * Shared parts of the tests of the vendors' clients: prompts, and checks of the upstream's side.
 */
import type { Test } from 'tap'
import type { Fault } from '../../src/emulator/faults/fault-table.js'
import type { Emulator } from '../../src/emulator/server.js'
import { until } from '../helpers/upstream.js'

/** A PNG of one pixel, as base64. */
export const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** A prompt with a reply that is long and slow enough to be cancelled or interrupted. */
export const LONG = 'talk [[words: 400]] [[pace: 5]]'

/** Runs `act` while every request has `fault`. */
export async function failing<T>(emulator: Emulator, fault: Fault, act: () => Promise<T>): Promise<T> {
  const restore = emulator.script({ fault })
  try {
    return await act()
  } finally {
    restore()
  }
}

/** The error that `act` throws. Throws if it succeeds. */
export async function thrownBy(act: () => Promise<unknown>): Promise<unknown> {
  try {
    await act()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

/** The upstream's connection closes before the end of its reply. */
export async function upstreamIsLeft(t: Test, emulator: Emulator): Promise<void> {
  await until(() => emulator.open() === 0)
  t.equal(emulator.ledger.at(-1)?.outcome, 'client_closed', 'the upstream was left')
}
