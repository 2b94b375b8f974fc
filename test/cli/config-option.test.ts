/**
 * Goal: every command reads its configuration path from `--config` or SLUICE_CONFIG; without either, the
 * error names both.
 * Method: the built program with and without the variable.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { configFolder } from './session.js'

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

void t.test('each command accepts SLUICE_CONFIG; the error without both names them', (t) => {
  const { good, bad } = configFolder(t)
  const run = (args: readonly string[], config: string) =>
    spawnSync(process.execPath, [MAIN, ...args], {
      encoding: 'utf8',
      env: { ...process.env, SLUICE_CONFIG: config },
    })
  for (const args of COMMANDS) {
    const without = run(args, '')
    t.equal(without.status, 2, args.join(' '))
    t.match(without.stderr, /needs a configuration file: pass --config FILE or set SLUICE_CONFIG/)
    const broken = run(args, bad)
    t.equal(broken.status, 1, args.join(' '))
    t.match(broken.stdout + broken.stderr, /bad\.yaml:\d+:\d+/)
  }
  t.match(run(['check'], good), { status: 0, stdout: /good\.yaml: valid/ })
  t.match(run(['check', '--config', good], bad), { status: 0 })
  t.end()
})
