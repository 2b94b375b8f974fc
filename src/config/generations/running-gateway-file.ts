/**
 * The file `gateway.json` in the folder of the history: how commands find the gateway that runs with a configuration
 * file, also if that file is broken by now or names another port.
 */
import { readFileSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

const NAME = 'gateway.json'

const runningSchema = z.object({
  pid: z.int(),
  /** As in `server.ops_host`. */
  opsHost: z.string(),
  opsPort: z.int(),
  /** Its port, workers and store are those of this generation. */
  startedGeneration: z.int(),
})

/** A gateway that runs, or ran until it was killed. */
export type RunningGateway = z.output<typeof runningSchema>

/** Leaves the file, in place of an earlier one. */
export async function writeRunning(folder: string, running: RunningGateway): Promise<void> {
  const path = join(folder, NAME)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await writeFile(`${path}.draft`, JSON.stringify(running), { mode: 0o600 })
  await rename(`${path}.draft`, path)
}

/** Removes the file if it is of this process. */
export async function removeRunning(folder: string): Promise<void> {
  if (readRunning(folder)?.pid === process.pid) await rm(join(folder, NAME), { force: true })
}

/** What the file has; null if there is none. The process may be gone. */
export function readRunning(folder: string): RunningGateway | null {
  try {
    return runningSchema.parse(JSON.parse(readFileSync(join(folder, NAME), 'utf8')))
  } catch {
    return null
  }
}
