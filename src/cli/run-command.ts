/**
 * The program `sluice`: the first argument is the command. The files and folders that it creates are private
 * to its user, regardless of the umask: stores and spools contain hashes of keys, e-mail addresses and costs.
 */
import { basename } from 'node:path'
import { COMMANDS } from './commands.js'
import { didYouMean } from '../config/config-problem.js'
import { packageVersion } from '../config/package-file.js'
import { printFailure, outputFailure, OutputFailed } from './exit-status.js'
import { runCommand, UsageError } from './command.js'

async function main(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv
  const [subject = ''] = rest
  if (name === 'help' && subject !== '') return main([subject, '--help'])
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    await printOverview()
    return name === undefined ? 2 : 0
  }
  if (name === '--version' || name === '-v') {
    process.stdout.write(`sluice ${packageVersion()}\n`)
    return 0
  }
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (load === undefined) {
    throw new UsageError(unknownCommandText(name, rest))
  }
  const command = await load()
  await runCommand(command.addHelpText('afterAll', callHint()), rest)
  return Number(process.exitCode ?? 0)
}

function unknownCommandText(name: string, rest: readonly string[]): string {
  const hint = didYouMean(name, [...Object.keys(COMMANDS), '--help', '--version'])
  const command = rest.find((word) => Object.hasOwn(COMMANDS, word))
  if (hint === '' && name.startsWith('-') && command !== undefined) {
    return `Option ${name} must follow the command: 'sluice ${command} --help' describes it`
  }
  return `Unknown command "${name}"${hint}: 'sluice --help' lists the commands`
}

/** What to type if `sluice` is not installed. */
function callHint(): string {
  return basename(process.argv[1] ?? '') === 'main.js'
    ? "\nIn the folder of the program, 'sluice' is 'node dist/main.js'."
    : ''
}

async function printOverview(): Promise<void> {
  const lines = ['Usage: sluice COMMAND [OPTIONS]', '', 'Commands:']
  for (const load of Object.values(COMMANDS)) {
    const command = await load()
    lines.push(`  ${command.name().padEnd(12)} ${command.summary()}`)
  }
  lines.push('', "'sluice COMMAND --help' describes a command; 'sluice --version' prints the version.")
  process.stdout.write(`${lines.join('\n')}\n${callHint() === '' ? '' : `${callHint()}\n`}`)
}

process.umask(0o077)
// An empty variable is as none.
if (process.env['SLUICE_CONFIG'] === '') delete process.env['SLUICE_CONFIG']
try {
  const status = await main(process.argv.slice(2))
  process.exitCode = outputFailure()?.exitStatus ?? status
} catch (error) {
  process.exitCode =
    error instanceof OutputFailed ? error.exitStatus : printFailure(error, process.argv[2] ?? '')
  // A store's connections may still be open after a start that failed.
  setTimeout(() => process.exit(), 500).unref()
}
