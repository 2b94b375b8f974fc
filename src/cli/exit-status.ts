/** The exit status of a command that fails: 1, or 2 for wrong usage; and the message on standard error. */
import { GatewayError } from '../errors.js'
import { hideSecrets } from '../secrets/redact-secrets.js'
import { escapeControls } from '../wire/request-fields.js'
import { UsageError } from './usage-error.js'

/** Prints the error of the command with that name, and returns the exit status. */
export function printFailure(error: unknown, name: string): 1 | 2 {
  const isUsage = error instanceof UsageError
  const message = error instanceof Error ? error.message : String(error)
  const shown = message.split('\n').map(escapeControls).join('\n')
  process.stderr.write(`sluice: ${hideSecrets(shown)}\n`)
  if (isUsage && !String(error).includes('--help')) {
    process.stderr.write(`'sluice ${name} --help' describes it\n`)
  }
  return isUsage ? 2 : 1
}

/** The work's status, or 1 with a line on standard error if it threw a `GatewayError`. */
export async function reporting(
  terminal: { err(line: string): void },
  work: () => Promise<number>,
): Promise<number> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    // Clients must not see the cause; the operator at this terminal needs it.
    const cause = error.cause instanceof Error ? ` (${error.cause.message})` : ''
    terminal.err(hideSecrets(`sluice: ${error.message}${cause}`))
    return 1
  }
}
