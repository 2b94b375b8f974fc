/**
 * Goal: `sluice generations` reads the history from disk if no gateway runs, prints a note about it, and
 * refuses wrong usage.
 * Method: a history written by a real configuration source; the built program.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openConfig } from '../../src/config/generations/config-at-start.js'
import { changed, GOOD, MODELS } from '../config/sample.js'
import { run } from '../process/program.js'

interface Ended {
  readonly status: number | string
  readonly out: string
  readonly err: string
}

async function sluice(t: Test, ...args: string[]): Promise<Ended> {
  const program = run(t, ['generations', ...args])
  return { status: await program.ended, out: program.out(), err: program.err() }
}

/** Writes a file with two generations that no gateway runs. Returns its path. */
async function prepare(t: Test): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-history-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, GOOD)
  writeFileSync(join(folder, 'models.yaml'), MODELS)
  const source = await openConfig(file, { KEY: 'k-1' }, { keepsHistory: true })
  writeFileSync(file, changed('prefix: gpt-', 'prefix: o1-'))
  await source.reload()
  await source.close()
  return file
}

void t.test('without a gateway, list and show read the history from disk', async (t) => {
  const file = await prepare(t)
  t.match(await sluice(t, 'list', '--config', file), {
    status: 0,
    out: /^2 .*gateway\.yaml changed\n1 .*start$/m,
    err: /no gateway runs with this file/,
  })
  const json = await sluice(t, 'list', '--config', file, '--json')
  t.match(JSON.parse(json.out), {
    generation: null,
    generations: [{ generation: 2, in_force: false }, { generation: 1 }],
  })
  t.match(await sluice(t, 'show', '2', '--config', file), {
    status: 0,
    out: /changes from generation 1: 2\n {2}routes\[gpt-\*\].*\n {2}routes\[o1-\*\]/,
  })
  t.match(await sluice(t, 'show', '1', '--from', '2', '--config', file), {
    out: /changes from generation 2/,
  })
  t.match(await sluice(t, 'show', '9', '--config', file), { status: 1, err: /no generation 9/ })
  writeFileSync(file, 'broken: [')
  t.match(
    await sluice(t, 'list', '--config', file),
    { status: 0, out: /^2 /m },
    'the history is found although the file is invalid',
  )
})

void t.test('rollback fails without a gateway', async (t) => {
  const file = await prepare(t)
  t.match(await sluice(t, 'rollback', '1', '--config', file), {
    status: 1,
    err: /no gateway runs with .*gateway\.yaml/,
  })
})

void t.test('wrong usage exits with 2', async (t) => {
  for (const args of [
    [],
    ['lists'],
    ['show'],
    ['show', 'two'],
    ['rollback'],
    ['list', '1'],
    ['list', '--reason', 'x'],
    ['rollback', '1', '--from', '2'],
    ['rollback', '1', '2'],
  ]) {
    t.equal((await sluice(t, ...args, '--config', 'x.yaml')).status, 2, args.join(' '))
  }
})
