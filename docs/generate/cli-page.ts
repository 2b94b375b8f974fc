/** Generates `docs/reference/cli.md` from the help texts of the commands. */
import { helpText } from '../../src/cli/command.js'
import { COMMANDS } from '../../src/cli/commands.js'

/** The page: every command with its `--help`. */
export async function cliPage(): Promise<string> {
  const commands = await Promise.all(Object.values(COMMANDS).map((load) => load()))
  return [
    '<!-- Generated from the commands in src/cli by `npm run generate`; do not edit. -->',
    '',
    '# Commands',
    '',
    '`sluice` is `node dist/main.js`. `SLUICE_CONFIG` names the configuration for every command; `--config FILE` comes before it. `--help` explains a',
    'command, and `--json` prints JSON if a program reads the output. Exit status: 0 success, 1 failure, 2 wrong usage.',
    '',
    ...commands.flatMap((command) => [
      `## \`sluice ${command.name()}\``,
      '',
      `${command.summary().charAt(0).toUpperCase()}${command.summary().slice(1)}.`,
      '',
      '```text',
      helpText(command).trim(),
      '```',
      '',
    ]),
  ].join('\n')
}
