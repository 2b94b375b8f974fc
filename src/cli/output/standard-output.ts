/**
 * Standard output of a command. If its reader leaves, as `head` does, the command ends without a message and
 * with the exit status that shells report after a broken pipe.
 */
import { once } from 'node:events'

const BROKEN_PIPE = 141

/** Standard output cannot be written; the reason has been printed, except for a broken pipe. */
export class OutputFailed extends Error {
  /** The exit status of the program. */
  readonly exitStatus: number

  constructor(cause: NodeJS.ErrnoException) {
    super(`standard output cannot be written: ${cause.message}`, { cause })
    this.exitStatus = cause.code === 'EPIPE' ? BROKEN_PIPE : 1
  }
}

let failure: OutputFailed | null = null
let isWatched = false

/** Writes a line, unless standard output has failed. */
export function printLine(line: string): void {
  if (!isWatched) process.stdout.on('error', fail)
  isWatched = true
  if (failure === null) process.stdout.write(`${line}\n`)
}

/** Waits while a slow reader has more to read than a buffer. Rejects with `OutputFailed`. */
export async function outputReady(): Promise<void> {
  if (failure === null && process.stdout.writableNeedDrain) {
    await once(process.stdout, 'drain').catch(fail)
  }
  if (failure !== null) throw failure
}

/** The failure of standard output, if it has failed. */
export function outputFailure(): OutputFailed | null {
  return failure
}

function fail(cause: NodeJS.ErrnoException): void {
  if (failure !== null) return
  failure = new OutputFailed(cause)
  if (failure.exitStatus !== BROKEN_PIPE) process.stderr.write(`sluice: ${failure.message}\n`)
  process.exitCode = failure.exitStatus
}
