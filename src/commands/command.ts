/**
 * What every command of the `sluice` program is. `main.ts` picks one by name.
 * A command is thin: it parses its arguments (`node:util` parseArgs), calls the code that does the
 * work, and turns the answer into lines and an exit status.
 */
export interface Command {
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** The whole text of `--help`: usage line, options with defaults and units, an example. */
  readonly help: string
  /** Resolves to the exit status: 0 done, 1 the answer is no, 2 wrong use. */
  run(argv: readonly string[]): Promise<number>
}

/** Wrong use of a command: the message names the option; the program exits with 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}
