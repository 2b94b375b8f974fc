/**
 * A scripted upstream for one test: an emulator that ends with it.
 * Knows no format; see `src/emulator/server.ts` for what can be scripted.
 */
import { startEmulator } from '../../src/emulator/server.js'
import type { EmulatorOptions } from '../../src/emulator/handler.js'
import type { Emulator } from '../../src/emulator/server.js'

/** Starts an emulator on a free port and closes it when the test `t` is over. */
export async function startUpstream(
  t: { teardown: (end: () => Promise<void>) => void },
  options: EmulatorOptions = {},
): Promise<Emulator> {
  const emulator = await startEmulator(options)
  t.teardown(() => emulator.close())
  return emulator
}

/** Resolves once `done` holds, looked at after every turn of the event loop; rejects after `ms`. */
export async function until(done: () => boolean, ms = 20_000): Promise<void> {
  const end = Date.now() + ms
  while (!done()) {
    if (Date.now() > end) {
      throw new Error(`still not so after ${ms} ms: ${done.toString()}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
