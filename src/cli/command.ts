/**
 * What commands share: how they are declared (with Commander), how their arguments are parsed, and the texts
 * of their help and of wrong usage. A command with actions has one subcommand for each.
 */
import { Refusal } from '../accounts/changes/refusal.js'
import { isOptionValue, optionOf } from './option-names.js'
import {
  Command,
  CommanderError,
  Option,
  type CommandUnknownOpts,
  type HelpConfiguration,
} from '@commander-js/extra-typings'
import { didYouMean, suggestionText } from '../config/config-problem.js'

/** Wrong usage of a command: the message names the option; the program exits with 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}

interface Declaration {
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** The text between the usage lines and the options. */
  readonly description: string
  readonly exitStatus?: string
  /** Command lines. */
  readonly example: string
}

/** A command without arguments and options yet. */
export function declare({
  name,
  summary,
  description,
  exitStatus = '0 success, 1 failure, 2 wrong usage.',
  example,
}: Declaration): Command {
  const lines = example.trim().replaceAll(/^/gm, '  ')
  return new Command(name)
    .summary(summary)
    .description(description.trim())
    .helpCommand(false)
    .configureHelp(HELP)
    .addHelpText('after', `\nExit status: ${exitStatus.trim()}\n\nExample:\n${lines}`)
}

/** `--config FILE`, or else the variable SLUICE_CONFIG. */
export function configOption(description = 'the configuration file') {
  return new Option('--config <FILE>', description).env('SLUICE_CONFIG').makeOptionMandatory()
}

/** The value of a `--config` that not every use of the command needs. Throws `UsageError`. */
export function requiredConfig(name: string, config: string | undefined): string {
  if (config !== undefined && config !== '') return config
  throw new UsageError(needsConfig(name))
}

/** The format of exported lines. */
export function formatOption() {
  const description = 'jsonl (one JSON object a line) or csv (with a line of names first)'
  return new Option('--format <FORMAT>', description).choices(['jsonl', 'csv'] as const).makeOptionMandatory()
}

/** Adds a value to those of an option that may be repeated. */
export function repeated(value: string, former: string[] | undefined): string[] {
  return [...(former ?? []), value]
}

/**
 * Parses the arguments and runs the action, which sets `process.exitCode`; or prints the help. Rejects with
 * `UsageError`, or with what the action throws.
 */
export async function runCommand(command: CommandUnknownOpts, argv: readonly string[]): Promise<void> {
  const words = actionFirst(command, argv)
  const action = command.commands.find((each) => each.name() === words[0]) ?? command
  let help = ''
  for (const each of [command, ...command.commands]) {
    each.configureOutput({ writeErr: () => undefined, writeOut: (part) => (help += part) })
    each.exitOverride((error) => {
      throw error.exitCode === 0 ? error : new UsageError(messageFor(error, each))
    })
  }
  checkWords(action, words)
  action.hook('preAction', () => checkNotEmpty(action))
  try {
    await command.parseAsync(words, { from: 'user' })
  } catch (error) {
    if (error instanceof Refusal) throw commandError(error)
    if (!(error instanceof CommanderError) || error.exitCode !== 0) throw error
    process.stdout.write(help)
  }
}

/** A refused change with the names of the options; a wrong value of one is wrong usage. */
export function commandError(refusal: Refusal): Refusal | UsageError {
  const own = refusal.named(optionOf)
  const isOfForm = refusal.refusal === 'invalid_field' || refusal.refusal === 'unknown_field'
  const isUsage = isOfForm && isOptionValue(refusal.field ?? '')
  return isUsage ? new UsageError(own.message) : own
}

/** Options may come before the action: `sluice keys --config FILE list`. */
function actionFirst(command: CommandUnknownOpts, argv: readonly string[]): string[] {
  const names = command.commands.map((each) => each.name())
  const at = argv[0]?.startsWith('-') === true ? argv.findIndex((word) => names.includes(word)) : 0
  return at > 0 ? [...argv.slice(at, at + 1), ...argv.slice(0, at), ...argv.slice(at + 1)] : [...argv]
}

/** Throws `UsageError` for a value that looks like an option. */
function checkWords(command: CommandUnknownOpts, words: readonly string[]): void {
  const unclear = command.options.find(({ long, short, required }) =>
    words.some((word, at) => {
      return required && (word === long || word === short) && /^-./.test(words[at + 1] ?? '')
    }),
  )
  if (unclear !== undefined) {
    const [flag, placeholder] = [unclear.long ?? '', placeholderOf(unclear)]
    throw new UsageError(
      `Option ${flag} needs a value: write ${flag}=${placeholder} for a value that starts with -`,
    )
  }
}

/** Throws `UsageError` for an empty value, as of a variable of the shell that is not set. */
function checkNotEmpty(command: CommandUnknownOpts): void {
  const values: Readonly<Record<string, unknown>> = command.opts()
  const empty = command.options.find((option) => {
    return option.mandatory && values[option.attributeName()] === ''
  })
  if (empty !== undefined) throw new UsageError(needsOption(command, empty))
  if (command.args.some((word, at) => word === '' && command.registeredArguments[at]?.required)) {
    throw new UsageError(needsArguments(command))
  }
}

/** The whole text of `--help`. */
export function helpText(command: CommandUnknownOpts): string {
  let text = ''
  command.configureOutput({ writeOut: (part) => (text += part) }).outputHelp()
  return text
}

/** The help of a command with actions describes all of them. */
const HELP: HelpConfiguration = {
  helpWidth: 112,
  commandUsage: (command) => actionsOf(command).map(usageOf).join('\n       '),
  optionTerm: ({ flags }) => shownFlags(flags),
  visibleOptions: (command) => {
    const options = actionsOf(command).flatMap((action) => action.options)
    return options.filter(({ flags }, at) => options.findIndex((o) => o.flags === flags) === at)
  },
  visibleCommands: () => [],
}

function actionsOf(command: CommandUnknownOpts): readonly CommandUnknownOpts[] {
  return command.commands.length === 0 ? [command] : command.commands
}

const USAGE_WIDTH = 100

/** `sluice keys list --account ACCOUNT [--json] [--config FILE]`, over as many lines as it needs. */
function usageOf(command: CommandUnknownOpts): string {
  const name = fullName(command)
  const words = [
    ...command.registeredArguments.map((each) => (each.required ? each.name() : `[${each.name()}]`)),
    ...command.options.filter(isNeeded).map(usageTerm),
    ...command.options.filter((each) => !isNeeded(each)).map((each) => `[${usageTerm(each)}]`),
  ]
  const lines = [name]
  for (const word of words) {
    const line = `${lines.at(-1) ?? ''} ${word}`
    if (line.length <= USAGE_WIDTH) lines[lines.length - 1] = line
    else lines.push(`       ${' '.repeat(name.length)} ${word}`)
  }
  return lines.join('\n')
}

function isNeeded({ mandatory, envVar }: Option): boolean {
  return mandatory && envVar === undefined
}

function usageTerm({ flags }: Option): string {
  return shownFlags(flags.replace(/^.*, /, ''))
}

function fullName(command: CommandUnknownOpts): string {
  const { parent } = command
  return parent === null ? `sluice ${command.name()}` : `${fullName(parent)} ${command.name()}`
}

function shownFlags(flags: string): string {
  return flags.replaceAll(/[<>]/g, '')
}

function placeholderOf({ flags }: { readonly flags: string }): string {
  return /<([^<>]*)>/.exec(flags)?.[1] ?? ''
}

function messageFor({ code, message }: CommanderError, command: CommandUnknownOpts): string {
  const { args, options, commands, registeredArguments } = command
  const [, named = ''] = /'(.*?)'/.exec(message) ?? []
  const option = options.find(({ flags }) => flags === named)
  switch (code) {
    case 'commander.help':
    case 'commander.unknownCommand': {
      const names = commands.map((each) => each.name())
      const hint = didYouMean(args[0] ?? '', names)
      return `'${fullName(command)}' needs one of: ${names.join(', ')}${hint}`
    }
    case 'commander.unknownOption':
      return unknownOption(named, command)
    case 'commander.missingMandatoryOptionValue': {
      const unknown = args.find((word) => /^-./.test(word))
      if (unknown !== undefined) return unknownOption(unknown, command)
      const surplus = args[registeredArguments.length]
      if (surplus !== undefined) return unexpectedArgument(surplus, command)
      return option === undefined ? message : needsOption(command, option)
    }
    case 'commander.optionMissingArgument': {
      const flag = option?.long ?? named
      return `Option ${flag} needs a value: ${flag} ${option === undefined ? '' : placeholderOf(option)}`
    }
    case 'commander.missingArgument':
      return needsArguments(command)
    case 'commander.excessArguments':
      return unexpectedArgument(args[registeredArguments.length] ?? '', command)
    case 'commander.invalidArgument':
      return option === undefined ? shownFlags(message) : needsOption(command, option)
    default:
      return shownFlags(message.replace(/^error: option/, 'Option'))
  }
}

function needsOption(command: CommandUnknownOpts, option: Option): string {
  const name = fullName(command)
  if (option.envVar !== undefined) return needsConfig(name)
  const choices = option.argChoices?.map((choice) => `${option.long ?? ''} ${choice}`)
  return `'${name}' needs ${choices?.join(' or ') ?? shownFlags(option.flags)}`
}

function needsConfig(name: string): string {
  return `'${name}' needs a configuration file: pass --config FILE or set SLUICE_CONFIG`
}

function needsArguments(command: CommandUnknownOpts): string {
  const names = command.registeredArguments.filter((each) => each.required).map((each) => each.name())
  return `'${fullName(command)}' needs ${names.length === 1 ? 'one ' : ''}${names.join(' and ')}`
}

function unknownOption(word: string, command: CommandUnknownOpts): string {
  const flag = word.replace(/=.*/s, '')
  const flags = longFlags(command)
  if (flags.includes(flag)) return `Option ${flag} accepts no value`
  if (command.parent !== null && longFlags(command.parent).includes(flag)) {
    const name = fullName(command)
    return `'${name}' does not accept ${flag}: see '${name} --help'`
  }
  const [one, other] = flags.filter((each) => /^-[a-z]$/.test(flag) && each.startsWith(`-${flag}`))
  const long = one !== undefined && other === undefined ? suggestionText(one) : ''
  return `Unknown option ${flag}${didYouMean(flag, flags) || long}`
}

function longFlags(command: CommandUnknownOpts): string[] {
  const options = actionsOf(command).flatMap((action) => action.options)
  return [...options.flatMap(({ long }) => long ?? []), '--help']
}

function unexpectedArgument(word: string, command: CommandUnknownOpts): string {
  const flags = longFlags(command)
  const names = command.registeredArguments.map((each) => each.name())
  if (/\.ya?ml$/i.test(word) && flags.includes('--config')) {
    return `Unexpected argument "${word}": write --config ${word}`
  }
  if (flags.includes('--upstream') && command.parent === null && names.length === 0) {
    return `Unexpected argument "${word}": write --upstream ${word} if it is an upstream`
  }
  const accepted = names.length === 0 ? 'only options' : `only ${names.join(' and ')}, and options`
  return `Unexpected argument "${word}": this command accepts ${accepted}`
}
