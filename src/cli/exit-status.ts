/** The exit status of a command that fails: 1, or 2 for wrong usage; and the message on standard error. */
import { once } from 'node:events'
import { GatewayError } from '../errors.js'
import { escapeControls } from '../formats/wire/request-fields.js'
import { hideSecrets } from '../hide-secrets.js'
import { messageWithAdvice } from '../base/file-access.js'
import { Refusal } from '../accounts/changes/refusal.js'
import { commandError, UsageError } from './command.js'

/**
 * Prints the error of the command with that name, and returns the exit status. 2 of `sluice apply` means
 * differences, not wrong usage.
 */
export function printFailure(error: unknown, name: string): 1 | 2 {
  const isUsage = error instanceof UsageError
  const message = error instanceof Error ? messageWithAdvice(error) : String(error)
  const shown = message.split('\n').map(escapeControls).join('\n')
  process.stderr.write(`sluice: ${hideSecrets(shown)}\n`)
  if (isUsage && !String(error).includes('--help')) {
    process.stderr.write(`'sluice ${name} --help' describes it\n`)
  }
  return isUsage && name !== 'apply' ? 2 : 1
}

/** The work's status, or 1 with a line on standard error if it threw a `GatewayError`. */
export async function reporting(
  terminal: { err(line: string): void },
  work: () => Promise<number>,
): Promise<number> {
  try {
    return await work()
  } catch (thrown) {
    const error = thrown instanceof Refusal ? commandError(thrown) : thrown
    if (!(error instanceof GatewayError)) throw error
    // Clients must not see the cause; the operator at this terminal needs it.
    const cause = error.cause instanceof Error ? ` (${error.cause.message})` : ''
    terminal.err(hideSecrets(`sluice: ${error.message}${cause}`))
    return 1
  }
}

const BROKEN_PIPE = 141

/**
 * Standard output cannot be written; the reason has been printed. If its reader left, as `head` does, nothing
 * is printed, and the exit status is the one that shells report after a broken pipe.
 */
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
