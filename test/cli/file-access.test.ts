/**
 * Goal: a file or folder that the user may not use is named with its owner and what to do.
 * Method: the built program as another user, with files of root; only as root. Each day has one option of
 * each kind.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { isToday } from '../helpers/long-suite.js'
import { configFolder } from './session.js'

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url))
/** Any user id but root's. */
const OTHER = 65_534
const skip = process.getuid?.() === 0 ? false : 'files of another user need root'

/** Runs the program as another user, who may reach the folder of the configuration. */
function asOther(config: string, args: readonly string[]) {
  const env = { ...process.env, SLUICE_CONFIG: config }
  const options = { cwd: dirname(config), env, uid: OTHER, gid: OTHER, encoding: 'utf8' as const }
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], options)
  return { status, stdout, stderr }
}

/** A configuration that other users may read, in a folder of root's that they may search. */
function openFolder(t: Test): { config: string; folder: string } {
  const { good } = configFolder(t)
  for (let folder = dirname(good); folder.includes('.tap'); folder = dirname(folder)) chmodSync(folder, 0o755)
  chmodSync(good, 0o644)
  return { config: good, folder: dirname(good) }
}

const LIST = ['accounts', 'list']
const CREATE = ['accounts', 'create', '--email', 'ada@example.com', '--plan', 'pro']

void t.test('a store in a folder that may not be written, searched or read', { skip }, (t) => {
  const { config, folder } = openFolder(t)
  const advice =
    /\(mode \d{3}\) and this process runs as \S+( \d+)?: run it as root, or change the owner with chown/
  const parent = asOther(config, CREATE)
  t.match(parent, { status: 1, stderr: advice })
  t.ok(parent.stderr.includes(`'${folder}' belongs to root`), parent.stderr)
  const data = join(folder, 'data')
  mkdirSync(data, { mode: 0o700 })
  for (const args of [LIST, CREATE]) {
    const hidden = asOther(config, args)
    t.match(hidden, { status: 1, stderr: advice })
    t.ok(hidden.stderr.includes(`'${data}' belongs to root (mode 700)`), hidden.stderr)
    t.notMatch(hidden.stderr, /does not exist/)
  }
  chmodSync(data, 0o755)
  writeFileSync(join(data, 'sluice.db'), '', { mode: 0o600 })
  const unreadable = asOther(config, LIST)
  t.ok(
    unreadable.stderr.includes(`'${join(data, 'sluice.db')}' belongs to root (mode 600)`),
    unreadable.stderr,
  )
  t.end()
})

void t.test('a file of its own user that has the wrong mode', { skip }, (t) => {
  const { config, folder } = openFolder(t)
  const data = join(folder, 'data')
  mkdirSync(data, { mode: 0o500 })
  chownSync(data, OTHER, OTHER)
  t.match(asOther(config, CREATE), { status: 1, stderr: /data' has mode 500: change it with chmod/ })
  t.end()
})

void t.test('files that options name', { skip }, (t) => {
  const { config, folder } = openFolder(t)
  writeFileSync(join(folder, 'private.yaml'), 'kind: Account\n', { mode: 0o600 })
  for (const args of [
    ['apply', '-f', 'private.yaml'],
    ['apply', '-f', config, '--server', 'http://127.0.0.1:1', '--token-file', 'private.yaml'],
    ['emulate', '--cassette', 'private.yaml'],
    ['demo', '--folder', join(folder, 'kept')],
  ].filter((_, at) => isToday(at, 4))) {
    const { status, stderr } = asOther(config, args)
    t.ok(status === 1 || status === 2, `${args.join(' ')}: ${String(status)}`)
    t.match(stderr, /EACCES.* belongs to root \(mode \d{3}\) and this process runs as/, args.join(' '))
  }
  for (const args of [
    ['plan', 'private.yaml'],
    ['models', 'update', '--from', 'private.yaml', '--catalogue', 'own.yaml'],
    ['check', '--config', 'private.yaml'],
  ].filter((_, at) => isToday(at, 3))) {
    const { status, stdout, stderr } = asOther(config, args)
    t.equal(status, 1, args.join(' '))
    t.match(
      stdout + stderr,
      /not readable: .* belongs to root \(mode \d{3}\) and this process runs as/,
      args.join(' '),
    )
  }
  const { status, stdout } = asOther(config, ['explain', 'gpt-5.4', '--body', 'private.yaml'])
  t.match({ status, stdout }, { status: 1, stdout: /EACCES.* belongs to root \(mode 600\) and this process/ })
  t.end()
})
