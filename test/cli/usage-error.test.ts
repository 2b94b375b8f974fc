/**
 * Goal: wrong usage of the command line exits with 2 and suggests the command or option that was probably
 * meant.
 * Method: a small command and the real ones in this process; the built program for unknown commands and for
 * one wrong use of a known command.
 */
import t from 'tap'
import { configOption, declare } from '../../src/cli/command.js'
import { COMMANDS } from '../../src/cli/commands.js'
import { configFolder, exitStatus, sluice, sluiceHere } from './session.js'

function aCommand() {
  const texts = { summary: 'check', description: 'Checks.', example: 'sluice check' }
  return declare({ name: 'check', ...texts })
    .option('--strict')
    .option('--format <FORMAT>')
    .addOption(configOption())
    .action(() => undefined)
}

async function messageFor(...argv: string[]): Promise<string> {
  try {
    await exitStatus(aCommand(), argv)
    return 'no error'
  } catch (error) {
    return error instanceof Error && error.name === 'UsageError' ? error.message : String(error)
  }
}

void t.test('a misspelt option is reported with the nearest option', async (t) => {
  for (const [argv, message] of [
    [['--confg', 'x'], 'Unknown option --confg (did you mean "--config"?)'],
    [['--Strict'], 'Unknown option --Strict (did you mean "--strict"?)'],
    [['--hlp'], 'Unknown option --hlp (did you mean "--help"?)'],
    [['--colour'], 'Unknown option --colour'],
    [['-x'], 'Unknown option -x'],
    [['-c', 'a.yaml'], 'Unknown option -c (did you mean "--config"?)'],
  ] as const) {
    t.equal(await messageFor(...argv), message)
  }
})

void t.test('values and arguments in the wrong place are named', async (t) => {
  for (const [argv, message] of [
    [['--config'], 'Option --config needs a value: --config FILE'],
    [['--strict=yes'], 'Option --strict accepts no value'],
    [['--config', '-1'], 'Option --config needs a value: write --config=FILE for a value that starts with -'],
    [['--config=-1'], 'no error'],
    [['gpt-5.5'], 'Unexpected argument "gpt-5.5": this command accepts only options'],
    [['a.yaml'], 'Unexpected argument "a.yaml": write --config a.yaml'],
    [['--config', ''], NEEDS_CONFIG],
    [[], NEEDS_CONFIG],
  ] as const) {
    t.equal(await messageFor(...argv), message)
  }
})

const NEEDS_CONFIG = "'sluice check' needs a configuration file: pass --config FILE or set SLUICE_CONFIG"

void t.test('the program exits with 2 and prints the suggestion on standard error', async (t) => {
  const { good } = configFolder(t)
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
    [['check', '--unrelated'], `sluice: Unknown option --unrelated\n'sluice check --help' describes it\n`],
    [
      ['serve', 'gateway.yaml'],
      `sluice: Unexpected argument "gateway.yaml": write --config gateway.yaml\n'sluice serve --help' describes it\n`,
    ],
    [
      ['store', 'accept', '--from', 'sqlite:a'],
      `sluice: 'sluice store accept' does not accept --from: see 'sluice store accept --help'\n`,
    ],
    [
      ['emulate', '--port', 'none'],
      `sluice: --port must be a whole number from 0 to 65535, not "none"\n'sluice emulate --help' describes it\n`,
    ],
    [
      ['emulate', '--pace-ms', '-1'],
      `sluice: Option --pace-ms needs a value: write --pace-ms=MS for a value that starts with -\n'sluice emulate --help' describes it\n`,
    ],
    [
      ['plan', 'old.yaml', 'new.yaml', '--live'],
      `sluice: --live needs the running gateway: remove --offline and OLD\n'sluice plan --help' describes it\n`,
    ],
    [
      ['store', 'migrate', '--from', 'a', '--to', 'b'],
      `sluice: --from must be sqlite:PATH, redis://…, redis+sentinel://…, redis+cluster://… or env:NAME\n'sluice store --help' describes it\n`,
    ],
    [
      ['generations', 'show', 'latest'],
      `sluice: 'sluice generations show' needs a configuration file: pass --config FILE or set SLUICE_CONFIG\n'sluice generations --help' describes it\n`,
    ],
    [
      ['usage', 'summary', '--sinc', '24h'],
      `sluice: Unknown option --sinc (did you mean "--since"?)\n'sluice usage --help' describes it\n`,
    ],
    [
      ['--config', 'a.yaml', 'check'],
      `sluice: Option --config must follow the command: 'sluice check --help' describes it\n`,
    ],
    [['--config', 'a.yaml'], `sluice: Unknown command "--config": 'sluice --help' lists the commands\n`],
    [
      ['keys', 'create', '--name', 'ci', '--config', 'none.yaml'],
      `sluice: 'sluice keys create' needs --account ACCOUNT\n'sluice keys --help' describes it\n`,
    ],
    [
      ['keys', 'revoke', '--account', 'a', '--config', 'none.yaml'],
      `sluice: 'sluice keys revoke' needs --key ID\n'sluice keys --help' describes it\n`,
    ],
    [
      ['accounts', 'create', '--email', 'a@b.example', '--config', 'none.yaml'],
      `sluice: 'sluice accounts create' needs --plan PLAN\n'sluice accounts --help' describes it\n`,
    ],
    [
      ['accounts', 'create', '--email', 'a@b.example', '--plan', 'gold', '--config', good],
      `sluice: The value of "--plan" is not valid. Use starter, pro, max.\n'sluice accounts --help' describes it\n`,
    ],
    [
      ['accounts', 'set-plan', '--plan', 'pro', '--config', 'none.yaml'],
      `sluice: 'sluice accounts set-plan' needs --account ACCOUNT\n'sluice accounts --help' describes it\n`,
    ],
    [
      ['explain', '', '--config', 'none.yaml'],
      `sluice: 'sluice explain' needs one MODEL\n'sluice explain --help' describes it\n`,
    ],
    [
      ['rehearse', 'openai', '--config', 'none.yaml'],
      `sluice: Unexpected argument "openai": write --upstream openai if it is an upstream\n'sluice rehearse --help' describes it\n`,
    ],
    [
      ['demo', '--port', 'abc'],
      `sluice: --port must be a port number from 0 to 65535, not "abc"\n'sluice demo --help' describes it\n`,
    ],
    [
      ['usage', 'summary', '--by', 'colour', '--config', 'none.yaml'],
      `sluice: --by must be client_format, model, key, account, upstream, program, user, parent, root, member, month, label:NAME or dimension:NAME\n'sluice usage --help' describes it\n`,
    ],
  ]
  for (const [args, err] of usages) {
    const isSpawned = !Object.hasOwn(COMMANDS, args[0] ?? '') || args[0] === 'check'
    const ran = await (isSpawned ? sluice(args) : sluiceHere(args))
    t.same(ran, { status: 2, out: '', err }, args.join(' '))
  }
})

void t.test('help COMMAND prints the help of the command', async (t) => {
  const help = await sluice(['help', 'serve'])
  t.match(help, { status: 0, out: /^Usage: sluice serve / })
  t.same(await sluice(['serve', '--help']), help)
  t.match(await sluice(['help', 'srve']), { status: 2, err: /did you mean "serve"/ })
})
