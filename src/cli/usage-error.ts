/** The error of wrong usage of a command, and its messages with suggestions for misspelt words. */
import { didYouMean, suggestionText } from '../config/problem.js'

/** Wrong usage of a command: the message names the option; the program exits with 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}

/**
 * The message of a `UsageError` or of an error of `parseArgs` for a command with this help; null for other
 * errors.
 */
export function usageMessage(error: unknown, help: string): string | null {
  if (error instanceof UsageError) return error.message
  if (!(error instanceof TypeError) || !('code' in error)) return null
  const [, word = ''] = /'(-{0,2}[^'\s]*)/.exec(error.message) ?? []
  switch (error.code) {
    case 'ERR_PARSE_ARGS_UNKNOWN_OPTION':
      return optionsIn(help).has(word)
        ? `Option ${word} is for another action of this command`
        : `Unknown option ${word}${didYouMean(word, optionsIn(help)) || longForm(word, help)}`
    case 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL':
      return `Unexpected argument "${word}": ${argumentAdvice(word, help)}`
    case 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE':
      return valueMessage(
        optionIn(error.message) ?? word,
        help,
        error.message.includes('ambiguous'),
      )
    default:
      return null
  }
}

function optionsIn(help: string): Set<string> {
  return new Set([...(help.match(/--[a-z][a-z0-9-]*/g) ?? []), '--help'])
}

/** The only option of the help that starts with the letter of a short option, as a suggestion; else empty. */
function longForm(word: string, help: string): string {
  const [one, other] = [...optionsIn(help)].filter((option) => option.startsWith(`-${word}`))
  return /^-[a-z]$/.test(word) && one !== undefined && other === undefined
    ? suggestionText(one)
    : ''
}

function optionIn(message: string): string | null {
  return /--[a-z][a-z0-9-]*/.exec(message)?.[0] ?? null
}

function argumentAdvice(argument: string, help: string): string {
  const options = optionsIn(help)
  if (/\.ya?ml$/i.test(argument) && options.has('--config')) return `write --config ${argument}`
  return options.has('--upstream')
    ? `write --upstream ${argument} if it is an upstream`
    : 'this command accepts only options'
}

/** The message for a missing value, or for a value of an option that has none. */
function valueMessage(option: string, help: string, isAmbiguous: boolean): string {
  const [, after = ''] = help.split(`${option} `)
  const placeholder = /^[A-Z][A-Z…|]*/.exec(after)?.[0]
  if (placeholder === undefined) return `Option ${option} accepts no value`
  return isAmbiguous
    ? `Option ${option} needs a value: write ${option}=${placeholder} for a value that starts with -`
    : `Option ${option} needs a value: ${option} ${placeholder}`
}
