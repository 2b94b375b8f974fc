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

/**
 * The word after a command's name, one of those in `allowed`, each with the options that it takes. Throws
 * `UsageError` where it is none of them, something follows it, or an option is another's.
 */
export function actionOf<Action extends string>(
  command: string,
  { positionals, values }: { positionals: readonly string[]; values: object },
  allowed: Readonly<Record<Action, readonly string[]>>,
): Action {
  const [action, ...surplus] = positionals
  if (!isOf(action, allowed)) {
    throw new UsageError(`'sluice ${command}' needs one of: ${Object.keys(allowed).join(', ')}`)
  }
  if (surplus.length > 0) throw new UsageError(`'sluice ${command} ${action}' takes options only`)
  const options: readonly string[] = allowed[action]
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || options.includes(name)) continue
    throw new UsageError(
      `'sluice ${command} ${action}' takes no --${name}; see 'sluice ${command} ${action} --help'`,
    )
  }
  return action
}

function isOf<Action extends string>(
  word: string | undefined,
  allowed: Readonly<Record<Action, readonly string[]>>,
): word is Action {
  return word !== undefined && Object.hasOwn(allowed, word)
}
