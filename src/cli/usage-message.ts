/** Messages for wrong usage of a command, with suggestions for misspelt words. */
import { didYouMean } from '../config/suggest-spelling.js'
import { UsageError } from './command.js'

/** The message of a `UsageError` or of an error of `parseArgs` for a command with this help; null for other errors. */
export function usageMessage(error: unknown, help: string): string | null {
  if (error instanceof UsageError) return error.message
  if (!(error instanceof TypeError) || !('code' in error)) return null
  const [, word = ''] = /'(-{0,2}[^'\s]*)/.exec(error.message) ?? []
  switch (error.code) {
    case 'ERR_PARSE_ARGS_UNKNOWN_OPTION':
      return `Unknown option ${word}${didYouMean(word, optionsIn(help))}`
    case 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL':
      return `Unexpected argument "${word}": this command accepts only options`
    case 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE':
      return valueMessage(optionIn(error.message) ?? word, help)
    default:
      return null
  }
}

function optionsIn(help: string): Set<string> {
  return new Set([...(help.match(/--[a-z][a-z0-9-]*/g) ?? []), '--help'])
}

function optionIn(message: string): string | null {
  return /--[a-z][a-z0-9-]*/.exec(message)?.[0] ?? null
}

/** A value is missing, or given to an option without one. */
function valueMessage(option: string, help: string): string {
  const [, after = ''] = help.split(`${option} `)
  const placeholder = /^[A-Z][A-Z…|]*/.exec(after)?.[0]
  return placeholder === undefined
    ? `Option ${option} accepts no value`
    : `Option ${option} needs a value: ${option} ${placeholder}`
}
