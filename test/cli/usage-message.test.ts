/**
 * Goal: wrong usage of the command line exits with 2 and suggests the command or option that was probably meant.
 * Method: the errors of `parseArgs` through the function; the built program for the whole output and the status.
 */
import { parseArgs, type ParseArgsConfig } from 'node:util'
import t from 'tap'
import { UsageError } from '../../src/cli/command.js'
import { usageMessage } from '../../src/cli/usage-message.js'
import { sluice } from './session.js'

const HELP = 'Usage: sluice check --config FILE [--strict] [--format csv|jsonl]'

const OPTIONS: ParseArgsConfig['options'] = {
  config: { type: 'string' },
  strict: { type: 'boolean' },
}

function messageFor(...args: string[]): string | null {
  try {
    parseArgs({ args, options: OPTIONS })
  } catch (error) {
    return usageMessage(error, HELP)
  }
  return 'no error'
}

void t.test('a misspelt option is answered with the nearest option of the help', (t) => {
  t.equal(messageFor('--confg', 'x'), 'Unknown option --confg (did you mean "--config"?)')
  t.equal(messageFor('--Strict'), 'Unknown option --Strict (did you mean "--strict"?)')
  t.equal(messageFor('--hlp'), 'Unknown option --hlp (did you mean "--help"?)')
  t.equal(messageFor('--colour'), 'Unknown option --colour', 'no option is near')
  t.equal(messageFor('-x'), 'Unknown option -x')
  t.end()
})

void t.test('values and arguments in the wrong place are named', (t) => {
  t.equal(messageFor('--config'), 'Option --config needs a value: --config FILE')
  t.equal(messageFor('--strict=yes'), 'Option --strict accepts no value')
  t.equal(messageFor('a.yaml'), 'Unexpected argument "a.yaml": this command accepts only options')
  t.end()
})

void t.test('a usage error keeps its message, and other errors have none', (t) => {
  t.equal(usageMessage(new UsageError('Missing MODEL'), HELP), 'Missing MODEL')
  t.equal(usageMessage(new TypeError('x is not a function'), HELP), null)
  t.equal(usageMessage('text', HELP), null)
  t.end()
})

void t.test('the program exits with 2 and prints the suggestion on standard error', async (t) => {
  const usages: [args: string[], err: string][] = [
    [
      ['serv'],
      `sluice: Unknown command "serv" (did you mean "serve"?): 'sluice --help' lists the commands\n`,
    ],
    [
      ['--verson'],
      `sluice: Unknown command "--verson" (did you mean "--version"?): 'sluice --help' lists the commands\n`,
    ],
    [['unrelated'], `sluice: Unknown command "unrelated": 'sluice --help' lists the commands\n`],
    [
      ['check', '--confg', 'gateway.yaml'],
      `sluice: Unknown option --confg (did you mean "--config"?)\n'sluice check --help' describes it\n`,
    ],
    [
      ['check', '--unrelated'],
      `sluice: Unknown option --unrelated\n'sluice check --help' describes it\n`,
    ],
    [
      ['usage', 'summary', '--sinc', '24h'],
      `sluice: Unknown option --sinc (did you mean "--since"?)\n'sluice usage --help' describes it\n`,
    ],
  ]
  for (const [args, err] of usages) {
    t.same(await sluice(args), { status: 2, out: '', err }, args.join(' '))
  }
})
