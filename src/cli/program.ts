/**
 * The program `sluice`: the first argument picks the command. Files and folders that it creates are private to
 * its user, whatever the umask was: stores and spools hold hashes of keys, e-mail addresses and costs.
 */
import { basename } from 'node:path'
import { UsageError } from './command.js'
import { COMMANDS } from './commands.js'
import { packageVersion } from '../files/package-file.js'
import { hideSecrets } from '../secrets/redact-secrets.js'

async function main(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv
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
    throw new UsageError(`unknown command '${name}'; 'sluice --help' lists the commands`)
  }
  const command = await load()
  if (rest.includes('--help') || rest.includes('-h')) {
    process.stdout.write(`${command.help.trim()}\n${callHint()}`)
    return 0
  }
  return command.run(rest)
}

/** Without an installed `sluice`, what to type in its place. */
function callHint(): string {
  return basename(process.argv[1] ?? '') === 'main.js'
    ? "\nIn the folder of the program, 'sluice' is 'node dist/main.js'.\n"
    : ''
}

async function printOverview(): Promise<void> {
  const lines = ['Usage: sluice COMMAND [OPTIONS]', '', 'Commands:']
  for (const load of Object.values(COMMANDS)) {
    const { name, summary } = await load()
    lines.push(`  ${name.padEnd(10)} ${summary}`)
  }
  lines.push(
    '',
    "'sluice COMMAND --help' explains one command; 'sluice --version' names the version.",
  )
  process.stdout.write(`${lines.join('\n')}\n${callHint()}`)
}

process.umask(0o077)
try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  const usage =
    error instanceof UsageError ||
    (error instanceof TypeError &&
      'code' in error &&
      String(error.code).startsWith('ERR_PARSE_ARGS'))
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`sluice: ${hideSecrets(message)}\n`)
  if (usage && !String(error).includes('--help')) {
    const [name = ''] = process.argv.slice(2)
    process.stderr.write(`'sluice ${name} --help' explains it\n`)
  }
  process.exitCode = usage ? 2 : 1
  // A store's connections may still be open after a start that failed.
  setTimeout(() => process.exit(), 500).unref()
}
