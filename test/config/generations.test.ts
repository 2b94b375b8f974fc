/**
 * Goal: generations are numbered, stored and restored. A rollback stays in force until the files change,
 * also across a restart. A restart with an invalid file runs the last valid generation. Secrets are read
 * again and never stored.
 * Method: real files in a temporary folder; a restart is a second source with the same folder.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { historyFolder, MAX_GENERATIONS, recordsIn } from '../../src/config/generations/history.js'
import { ConfigRefused, openConfig } from '../../src/config/generations/config-at-start.js'
import type { ConfigSource } from '../../src/config/generations/config-source.js'
import type { Env } from '../../src/config/load-config.js'
import { stopwatch } from '../helpers/stopwatch.js'
import { changed, GOOD, MODELS } from './sample.js'

const BY = { author: 'ada@example.com', reason: 'errors doubled' }
const OTHER = changed('prefix: gpt-', 'prefix: o1-')
const THIRD = changed('prefix: gpt-', 'prefix: o3-')

interface Scene {
  readonly folder: string
  readonly file: string
  readonly history: string
  readonly open: (env?: Env) => Promise<ConfigSource>
}

function scene(t: Test, files: Record<string, string> = {}): Scene {
  // Not `t.testdir`: tap removes it while the last generation is still being written.
  const folder = mkdtempSync(join(tmpdir(), 'sluice-generations-'))
  for (const [name, text] of Object.entries({
    'gateway.yaml': GOOD,
    'models.yaml': MODELS,
    ...files,
  })) {
    writeFileSync(join(folder, name), text)
  }
  const file = join(folder, 'gateway.yaml')
  const sources: ConfigSource[] = []
  const warnings: string[] = []
  t.teardown(async () => {
    await Promise.all(sources.map((source) => source.close()))
    rmSync(folder, { recursive: true, force: true })
    if (warnings.length > 0) throw new Error(warnings.join('\n'))
  })
  return {
    folder,
    file,
    history: historyFolder(join(folder, 'data'), file),
    async open(env = { KEY: 'k-0123456789' }) {
      const source = await openConfig(file, env, {
        keepsHistory: true,
        warn: (reason) => warnings.push(reason),
      })
      sources.push(source)
      return source
    },
  }
}

/** The prefix of the first route, which identifies the contents. */
function prefixOf(source: ConfigSource): unknown {
  return Object.values(source.current().config.routes[0]?.match ?? {})[0]
}

void t.test('generations are listed with number, hash, time, author and reason', async (t) => {
  const { file, open } = scene(t)
  const source = await open()
  writeFileSync(file, OTHER)
  t.match(await source.reload(), { result: 'applied' })
  const { username } = await import('node:os').then(({ userInfo }) => userInfo())
  t.match(source.history.list(), [
    { generation: 2, author: username, reason: 'gateway.yaml changed', origin: 'change' },
    { generation: 1, author: username, reason: 'start', origin: 'start' },
  ])
  writeFileSync(file, `# author:  ada@example.com\n${THIRD}`)
  await source.reload()
  t.match(source.history.list(), [{ author: 'ada@example.com', reason: 'gateway.yaml changed' }], 'as named')
  const [newest] = source.history.list()
  t.equal(newest?.hash, source.current().fileHash)
  t.ok(Math.abs((newest?.atMs ?? 0) - Date.now()) < 60_000)
})

void t.test('a rollback is a new generation with the old contents', async (t) => {
  const { file, open } = scene(t)
  const source = await open()
  writeFileSync(file, OTHER)
  await source.reload()
  t.match(await source.rollBack(1, BY), { result: 'applied', snapshot: { generation: 3 } })
  t.equal(prefixOf(source), 'gpt-')
  t.equal(source.override, 'rollback')
  const record = { generation: 3, ...BY, origin: 'rollback', contentOf: 1 }
  t.match(source.history.list()[0], record)
  const paths = source.current().changes.map(({ path }) => path)
  t.same(paths, ['routes[o1-*]', 'routes[gpt-*]'])
  t.same(await source.rollBack(3, BY), { result: 'current' })
  t.same(await source.rollBack(99, BY), { result: 'unknown' })
})

void t.test('a rollback stays in force until the files change', async (t) => {
  const { folder, file, open } = scene(t)
  const source = await open()
  writeFileSync(file, OTHER)
  await source.reload()
  await source.rollBack(1, BY)
  writeFileSync(file, OTHER)
  writeFileSync(join(folder, 'notes.txt'), 'x')
  t.match(await source.reload(), { result: 'unchanged', snapshot: { generation: 3 } })
  writeFileSync(file, 'upstreams: [')
  t.match(await source.reload(), { result: 'refused' })
  t.equal(prefixOf(source), 'gpt-', 'an invalid file does not end it')
  writeFileSync(file, OTHER)
  t.match(await source.reload(), { result: 'unchanged' }, 'the file of the rollback is back')
  t.equal(source.override, 'rollback')
  writeFileSync(file, THIRD)
  t.match(await source.reload(), { result: 'applied', snapshot: { generation: 4 } })
  t.equal(prefixOf(source), 'o3-')
  t.equal(source.override, null)
})

void t.test('SIGHUP ends a rollback and loads the files', async (t) => {
  const { file, open } = scene(t)
  const source = await open()
  writeFileSync(file, OTHER)
  await source.reload()
  await source.rollBack(1, BY)
  t.match(await source.reload(), { result: 'unchanged' })
  t.match(await source.reload({ takeFiles: true }), { result: 'applied' })
  t.equal(prefixOf(source), 'o1-')
  t.equal(source.override, null)
  t.match(await source.reload({ takeFiles: true }), { result: 'unchanged' })
})

void t.test('a rollback stays in force across a restart and ends with the next edit', async (t) => {
  const { file, open } = scene(t)
  const first = await open()
  writeFileSync(file, OTHER)
  await first.reload()
  await first.rollBack(1, BY)
  await first.close()
  const second = await open()
  t.equal(second.override, 'rollback')
  t.equal(second.current().generation, 3)
  t.equal(prefixOf(second), 'gpt-')
  writeFileSync(file, THIRD)
  t.match(await second.reload(), { result: 'applied', snapshot: { generation: 4 } })
  await second.close()
  const third = await open()
  t.equal(third.override, null)
  t.equal(third.current().generation, 4, 'the same files are the same generation')
})

void t.test('a restart with a changed file creates the next generation', async (t) => {
  const { file, open } = scene(t)
  await (await open()).close()
  writeFileSync(file, OTHER)
  const source = await open()
  const numbers = source.history.list().map(({ generation, reason }) => [generation, reason])
  t.same(numbers, [
    [2, 'start'],
    [1, 'start'],
  ])
  t.equal(source.current().generation, 2)
})

void t.test('a restart with an invalid file runs the last valid generation', async (t) => {
  for (const broken of ['', 'upstreams: [', changed('upstream: openai', 'upstream: opnai')]) {
    await t.test(JSON.stringify(broken.slice(0, 20)), async (t) => {
      const { file, open } = scene(t)
      const first = await open()
      writeFileSync(file, OTHER)
      await first.reload()
      await first.close()
      writeFileSync(file, broken)
      const second = await open()
      t.equal(second.override, 'last_good')
      t.equal(second.current().generation, 2)
      t.equal(prefixOf(second), 'o1-')
      t.ok((second.lastError ?? []).length > 0, 'the problem is reported')
      t.match(await second.reload({ takeFiles: true }), { result: 'refused' })
      t.equal(prefixOf(second), 'o1-', 'SIGHUP does not load an invalid file')
      writeFileSync(file, THIRD)
      t.match(await second.reload(), { result: 'applied', snapshot: { generation: 3 } })
      t.equal(second.override, null)
      t.equal(second.lastError, null)
    })
  }
})

void t.test('a missing file or catalogue counts as an invalid file', async (t) => {
  for (const missing of ['gateway.yaml', 'models.yaml']) {
    await t.test(missing, async (t) => {
      const { folder, open } = scene(t, { 'gateway.yaml': `${GOOD}models: models.yaml\n` })
      await (await open()).close()
      rmSync(join(folder, missing))
      const source = await open()
      t.equal(source.override, 'last_good')
      t.equal(prefixOf(source), 'gpt-')
    })
  }
})

void t.test('a generation with a missing secret does not start', async (t) => {
  const headers = changed('api_key: ${KEY}', 'headers: { x-token: "${KEY}" }')
  const { open } = scene(t, { 'gateway.yaml': headers })
  await (await open()).close()
  await t.rejects(open({}), ConfigRefused)
})

void t.test('damaged records are skipped', async (t) => {
  const { file, history, open } = scene(t)
  const first = await open()
  writeFileSync(file, OTHER)
  await first.reload()
  await first.close()
  writeFileSync(join(history, 'generation-2.json'), '{"generation":')
  writeFileSync(join(history, 'generation-3.json'), '{}')
  writeFileSync(file, '')
  const second = await open()
  t.equal(second.current().generation, 1)
  t.equal(prefixOf(second), 'gpt-')
})

void t.test('the store folder that the invalid file names is searched', async (t) => {
  const text = `store: sqlite:./elsewhere/deep/sluice.db\n${GOOD}`
  const { file, folder, open } = scene(t, { 'gateway.yaml': text })
  await (await open()).close()
  t.ok(existsSync(join(folder, 'elsewhere/deep/generations')))
  writeFileSync(file, `${text}unheard_of: 1\n`)
  t.equal((await open()).override, 'last_good')
})

void t.test('files are private and contain references instead of secrets', async (t) => {
  const { folder, history, open } = scene(t, {
    'gateway.yaml': changed('${KEY}', '${file:key}'),
    key: 'sk-canary-0123456789',
  })
  const source = await open()
  await source.close()
  t.equal(statSync(history).mode & 0o777, 0o700)
  const names = readdirSync(history)
  t.ok(names.length >= 4)
  for (const name of names) {
    t.equal(statSync(join(history, name)).mode & 0o777, 0o600, name)
    t.notMatch(readFileSync(join(history, name), 'utf8'), 'sk-canary', name)
  }
  t.match(readFileSync(join(history, 'generation-1.yaml'), 'utf8'), '${file:key}')
  t.notOk(existsSync(join(folder, 'data', 'sluice.db')), 'the store is not touched')
})

void t.test('the last 20 generations and the one of the start are stored', async (t) => {
  const { file, history, open } = scene(t)
  const source = await open()
  for (let index = 2; index <= MAX_GENERATIONS + 5; index += 1) {
    writeFileSync(file, `${index % 2 === 0 ? OTHER : THIRD}# ${String(index)}\n`)
    t.match(await source.reload(), { result: 'applied', snapshot: { generation: index } })
  }
  await source.close()
  const stored = recordsIn(history).map(({ generation }) => generation)
  t.same(
    stored,
    source.history.list().map(({ generation }) => generation),
  )
  t.equal(stored.length, MAX_GENERATIONS + 1)
  t.equal(stored.at(-1), 1, 'its port and store are those in force')
  const files = readdirSync(history)
  t.equal(files.length, 3 * (MAX_GENERATIONS + 1) + 1, 'one catalogue for all')
})

void t.test('each reload reads .env, and the environment takes precedence', async (t) => {
  const { folder, open } = scene(t, { '.env': '# keys\nKEY="from-the-file"\n' })
  const source = await open({})
  const keys = (): unknown => source.current().config.upstreams['openai']?.apiKeys
  t.same(keys(), ['from-the-file'])
  writeFileSync(join(folder, '.env'), 'KEY=another\n')
  t.match(await source.reload(), { result: 'applied' })
  t.same(keys(), ['another'])
  t.match(source.history.list()[0], { reason: '.env changed' })
  rmSync(join(folder, '.env'))
  t.match(await source.reload(), { result: 'applied' })
  t.same(keys(), [], 'unconfigured')
  writeFileSync(join(folder, '.env'), 'KEY=added-later\n')
  await source.reload()
  t.same(keys(), ['added-later'], 'without a restart')
  await source.close()
  const { current } = await open({ KEY: 'of-the-process' }).then((other) => ({
    current: other.current(),
  }))
  t.same(current.config.upstreams['openai']?.apiKeys, ['of-the-process'])
})

void t.test('changed secrets are used during a rollback', async (t) => {
  const { folder, file, open } = scene(t, {
    'gateway.yaml': changed('${KEY}', '${file:key}'),
    key: 'k-1',
  })
  const source = await open()
  writeFileSync(file, changed('${KEY}', '${file:key}').replace('gpt-', 'o1-'))
  await source.reload()
  await source.rollBack(1, BY)
  writeFileSync(join(folder, 'key'), 'k-2')
  t.match(await source.reload(), { result: 'applied', snapshot: { generation: 4 } })
  t.equal(prefixOf(source), 'gpt-', 'the content stays')
  t.same(source.current().config.upstreams['openai']?.apiKeys, ['k-2'])
  t.equal(source.override, 'rollback')
  await source.close()
  t.equal((await open()).override, 'rollback', 'also after a restart')
})

void t.test('a generation that cannot be built is refused', async (t) => {
  const { file, open } = scene(t)
  const source = await open()
  source.validateWith(() => Promise.resolve('upstreams.openai cannot be built'))
  writeFileSync(file, OTHER)
  t.match(await source.reload(), { result: 'refused', errors: [{ message: /cannot be built/ }] })
  t.equal(source.current().generation, 1)
  t.match(source.lastError, [{ message: /cannot be built/ }])
})

void t.test('an incomplete edit in place is not loaded', async (t) => {
  const routes = ['gpt-', 'o1-', 'o3-', 'o4-'].map((each) => {
    return `  - { prefix: ${each}, upstream: openai }\n`
  })
  const head = GOOD.slice(0, GOOD.indexOf('  - {'))
  const { file, open } = scene(t, { 'gateway.yaml': head + routes.join('') })
  const source = await open()
  const counts: number[] = []
  source.subscribe((change) => {
    if (change.result === 'applied') counts.push(change.snapshot.config.routes.length)
  })
  // Valid YAML with fewer routes, until the writer continues.
  writeFileSync(file, head + routes.slice(0, 2).join(''))
  const looking = source.reload()
  await new Promise((resolve) => setTimeout(resolve, 150))
  writeFileSync(file, `${head}${routes.join('')}  - { prefix: o5-, upstream: openai }\n`)
  await looking
  t.same(counts, [5])
})

void t.test('an edit that only removes lines is loaded within a second', async (t) => {
  const more = `${GOOD}  - { prefix: o1-, upstream: openai }\n`
  const { file, open } = scene(t, { 'gateway.yaml': more })
  const source = await open()
  const watch = stopwatch()
  writeFileSync(file, GOOD)
  t.match(await source.reload(), { result: 'applied' })
  t.ok(watch() < 1_000)
})

void t.test('a history that cannot be written is reported and stays in memory', async (t) => {
  const folder = t.testdir({ 'gateway.yaml': GOOD, 'models.yaml': MODELS, data: 'no folder' })
  const file = join(folder, 'gateway.yaml')
  const warnings: string[] = []
  const warn = (reason: string): unknown => warnings.push(reason)
  const source = await openConfig(file, { KEY: 'k' }, { keepsHistory: true, warn })
  t.teardown(() => source.close())
  writeFileSync(file, OTHER)
  await source.reload()
  t.match(await source.rollBack(1, BY), { result: 'applied' })
  await source.history.flushed()
  t.match(warnings[0], /generation 1 is kept in memory only/)
})

void t.test('settings that need a restart are not in force', async (t) => {
  const { file, folder, open } = scene(t)
  mkdirSync(join(folder, 'other'))
  const source = await open()
  const { port } = source.current().config.server
  writeFileSync(file, `store: sqlite:./other/a.db\nserver: { port: 1, drain_ms: 7 }\n${GOOD}`)
  t.match(await source.reload(), { result: 'applied' })
  const { config, waitingForRestart } = source.current()
  t.same([...waitingForRestart].sort(), ['ledger.spool', 'server.port', 'store'])
  t.equal(config.server.port, port)
  t.match(config.store, /data\/sluice\.db$/)
  t.equal(config.server.drainMs, 7, 'other settings are')
  const giveBack = source.takeWaiting()
  const inForce = source.current()
  t.equal(inForce.generation, 2)
  t.equal(inForce.config.server.port, 1)
  t.same(inForce.waitingForRestart, [])
  giveBack()
  t.equal(source.current().config.server.port, port, 'the restart failed')
  t.equal(source.current().waitingForRestart.length, 3)
})
