/**
 * Goal: every command reads its configuration path from `--config` or SLUICE_CONFIG; without either, the
 * error names both.
 * Method: the commands in this process with and without the variable; the built program for `serve`, and for
 * `check`, also with an empty variable.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { configFolder, sluiceHere } from './session.js'

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url))

const COMMANDS = [
  ['serve'],
  ['check'],
  ['explain', 'gpt-4o'],
  ['accounts', 'list'],
  ['keys', 'list', '--account', 'a'],
  ['usage', 'summary'],
  ['store', 'accept'],
  ['backup', 'copy.db'],
]

void t.test('each command accepts SLUICE_CONFIG; the error without both names them', async (t) => {
  const { good, bad } = configFolder(t)
  const spawned = (args: readonly string[], config: string) => {
    const env = { ...process.env, SLUICE_CONFIG: config }
    const ran = spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8', env })
    return { status: ran.status, out: ran.stdout, err: ran.stderr }
  }
  const here = (args: readonly string[], config: string) =>
    sluiceHere(args, { env: config === '' ? {} : { SLUICE_CONFIG: config } })
  for (const args of COMMANDS) {
    const run = ['serve', 'check'].includes(args[0] ?? '') ? spawned : here
    const without = await run(args, '')
    t.equal(without.status, 2, args.join(' '))
    t.match(without.err, /needs a configuration file: pass --config FILE or set SLUICE_CONFIG/)
    const broken = await run(args, bad)
    t.equal(broken.status, 1, args.join(' '))
    t.match(broken.out + broken.err, /bad\.yaml:\d+:\d+/)
  }
  t.match(spawned(['check'], good), { status: 0, out: /good\.yaml: valid/ })
  t.match(spawned(['check', '--config', good], bad), { status: 0 })
})
