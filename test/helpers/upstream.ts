/**
 * A scripted upstream for one test: an emulator that ends with it. `src/emulator/server.ts` describes the
 * scripts.
 */
import { startEmulator, type EmulatorOptions, type Emulator } from '../../src/emulator/server.js'

/** Starts an emulator on a free port and closes it when the test `t` is over. */
export async function startUpstream(
  t: { teardown: (end: () => Promise<void>) => void },
  options: EmulatorOptions = {},
): Promise<Emulator> {
  const emulator = await startEmulator(options)
  t.teardown(() => emulator.close())
  return emulator
}

/** Resolves when `done` is true, checked after every turn of the event loop; rejects after `ms`. */
export async function until(done: () => boolean, ms = 60_000): Promise<void> {
  const end = Date.now() + ms
  while (!done()) {
    if (Date.now() > end) {
      throw new Error(`still not so after ${ms} ms: ${done.toString()}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
