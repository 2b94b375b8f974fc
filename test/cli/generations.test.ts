/**
 * Goal: `sluice generations` reads the history from disk if no gateway runs, prints a note about it, and
 * refuses wrong usage.
 * Method: a history written by a real configuration source; the built program for `list` and `rollback`, and
 * the command in this process.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { openConfig } from '../../src/config/generations/config-at-start.js'
import { opsAddressIn } from '../../src/config/generations/history.js'
import { objectOf } from '../../src/base/json.js'
import { changed, GOOD, MODELS } from '../config/sample.js'
import { sluice, sluiceHere } from './session.js'

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
  const generations = (...args: string[]) => sluiceHere(['generations', ...args, '--config', file])
  t.match(await sluice(['generations', 'list', '--config', file]), {
    status: 0,
    out: /^2 .*gateway\.yaml changed\n1 .*start$/m,
    err: /no gateway runs with this file/,
  })
  const json = await generations('list', '--json')
  t.match(JSON.parse(json.out), {
    generation: null,
    generations: [{ generation: 2, in_force: false }, { generation: 1 }],
  })
  t.match(await generations('show', '2'), {
    status: 0,
    out: /changes from generation 1: 2\n {2}routes\[gpt-\*\].*\n {2}routes\[o1-\*\]/,
  })
  t.match(await generations('show', '1', '--from', '2'), {
    out: /changes from generation 2/,
  })
  t.match(await generations('show', '9'), { status: 1, err: /no generation 9/ })
  writeFileSync(file, 'broken: [')
  t.match(
    await generations('list'),
    { status: 0, out: /^2 /m },
    'the history is found although the file is invalid',
  )
})

void t.test('an invalid file with names in quotes leads to the history and the ops port', async (t) => {
  const values: unknown = parse(GOOD)
  const named = {
    note: 'keys # not a comment',
    cache: { store: true },
    store: 'sqlite:./elsewhere/sluice.db',
    server: { ops_host: '127.0.0.2', ops_port: 9555 },
  }
  const yaml = stringify(named, { defaultStringType: 'QUOTE_SINGLE', defaultKeyType: 'QUOTE_DOUBLE' })
  const texts = [JSON.stringify(named), JSON.stringify(named, null, 2), yaml]
  for (const text of texts) {
    const folder = t.testdir({ 'models.yaml': MODELS })
    const path = join(folder, 'gateway.yaml')
    const { store } = named
    writeFileSync(path, JSON.stringify({ ...objectOf(values), store }))
    await (await openConfig(path, { KEY: 'k-1' }, { keepsHistory: true })).close()
    const broken = `# store: 'sqlite:./wrong/sluice.db', ops_port: 1\n${text}`
    t.same(opsAddressIn({ path, text: broken }, {}), { opsHost: '127.0.0.2', opsPort: 9555 }, text)
    writeFileSync(path, broken)
    t.match(await sluiceHere(['generations', 'list', '--config', path]), { status: 0, out: /^1 /m }, text)
  }
})

void t.test('rollback fails without a gateway', async (t) => {
  const file = await prepare(t)
  t.match(await sluice(['generations', 'rollback', '1', '--config', file]), {
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
    const { status } = await sluiceHere(['generations', ...args, '--config', 'x.yaml'])
    t.equal(status, 2, args.join(' '))
  }
})
