/**
 * The file `gateway.json` in the history folder: commands use it to find the gateway that runs with a
 * configuration file, even if that file is broken or has been changed to another port.
 */
import { readFileSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { createFolder } from '../../base/private-files.js'

const NAME = 'gateway.json'

const runningSchema = z.object({
  pid: z.int(),
  /** As in `server.ops_host`. */
  opsHost: z.string(),
  opsPort: z.int(),
  /** The generation of its port, workers and store. */
  startedGeneration: z.int(),
})

/** A gateway that runs, or was killed. */
export type RunningGateway = z.output<typeof runningSchema>

/** Writes the file and replaces an earlier one. */
async function writeRunning(folder: string, running: RunningGateway): Promise<void> {
  const path = join(folder, NAME)
  createFolder(folder)
  await writeFile(`${path}.draft`, JSON.stringify(running), { mode: 0o600 })
  await rename(`${path}.draft`, path)
}

/**
 * The same if there is a history folder. Does not reject: without it, commands try the port of the
 * configuration.
 */
export async function announceRunning(folder: string | null, running: RunningGateway): Promise<void> {
  // The history has reported that the folder cannot be written.
  if (folder !== null) await writeRunning(folder, running).catch(() => undefined)
}

/** Removes the file if this process wrote it. */
export async function removeRunning(folder: string): Promise<void> {
  if (readRunning(folder)?.pid === process.pid) await rm(join(folder, NAME), { force: true })
}

/** The content of the file; null if there is none. The process may have exited. */
export function readRunning(folder: string): RunningGateway | null {
  try {
    return runningSchema.parse(JSON.parse(readFileSync(join(folder, NAME), 'utf8')))
  } catch {
    return null
  }
}
