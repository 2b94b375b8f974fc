/** The interface of commands. */

/**
 * A command of the `sluice` program. A command is thin: it parses its arguments (`node:util` parseArgs),
 * calls the code that does the work, and prints the result.
 */
export interface Command {
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** The whole text of `--help`: usage line, options with defaults and units, an example. */
  readonly help: string
  /** Resolves to the exit status: 0 success, 1 failure, 2 wrong usage. */
  run(argv: readonly string[]): Promise<number>
}
