/**
 * The interface of commands, and what they share: the option that names the configuration file, and parsing
 * the action of a command with several.
 */
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { didYouMean } from '../config/problem.js'
import { UsageError } from './usage-error.js'

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

/**
 * The path of the configuration file. `option` is the value of `--config`, which overrides SLUICE_CONFIG.
 * Throws `UsageError` that names both if neither is given.
 */
export function configPath(
  option: string | undefined,
  command: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const path = option ?? env['SLUICE_CONFIG'] ?? ''
  if (path !== '') return path
  throw new UsageError(
    `'${command}' needs a configuration file: pass --config FILE or set SLUICE_CONFIG`,
  )
}

type Options = NonNullable<ParseArgsConfig['options']>

type Parsed<O extends Options> = ReturnType<
  typeof parseArgs<{ args: string[]; allowPositionals: true; options: O }>
>['values']

/** Values of the options, as `parseArgs` returns them; a missing option may be `undefined` too. */
export type OptionValues<O extends Options> = {
  [Name in keyof Parsed<O>]: Parsed<O>[Name] | undefined
}

/** Actions with some of their options. */
type ByAction<Action extends string, Options> = Readonly<Record<Action, Options>>

/**
 * Parses the arguments of a command with actions. `allowed` lists the actions with their options, `needed`
 * the options without which an action fails, each with its placeholder: `--name NAME`. Throws `UsageError` or
 * the error of `parseArgs`.
 */
export function parseAction<O extends Options, Action extends string>(
  command: string,
  argv: readonly string[],
  {
    options,
    allowed,
    needed,
  }: {
    options: O
    allowed: ByAction<Action, readonly string[]>
    needed?: ByAction<Action, readonly string[]>
  },
): { action: Action; values: OptionValues<O> } {
  const parsed = parseArgs({ args: [...argv], allowPositionals: true, options })
  const action = actionOf(command, parsed, allowed)
  const values: Readonly<Record<string, unknown>> = parsed.values
  for (const option of needed?.[action] ?? []) {
    const [, name = ''] = /^--([a-z-]+)/.exec(option) ?? []
    if (values[name] === undefined || values[name] === '') {
      throw new UsageError(`'sluice ${command} ${action}' needs ${option}`)
    }
  }
  return { action, values: parsed.values }
}

/**
 * The action after a command's name. `allowed` lists the actions with their options. Throws `UsageError` for
 * an unknown action, further arguments, and options of other actions.
 */
function actionOf<Action extends string>(
  command: string,
  { positionals, values }: { positionals: readonly string[]; values: object },
  allowed: Readonly<Record<Action, readonly string[]>>,
): Action {
  const [action, ...surplus] = positionals
  if (!isKeyOf(action, allowed)) {
    const actions = Object.keys(allowed)
    const hint = didYouMean(action ?? '', actions)
    throw new UsageError(`'sluice ${command}' needs one of: ${actions.join(', ')}${hint}`)
  }
  if (surplus.length > 0) throw new UsageError(`'sluice ${command} ${action}' accepts only options`)
  const options: readonly string[] = allowed[action]
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || options.includes(name)) continue
    throw new UsageError(
      `'sluice ${command} ${action}' does not accept --${name}: see 'sluice ${command} ${action} --help'`,
    )
  }
  return action
}

function isKeyOf<Action extends string>(
  word: string | undefined,
  allowed: Readonly<Record<Action, readonly string[]>>,
): word is Action {
  return word !== undefined && Object.hasOwn(allowed, word)
}
