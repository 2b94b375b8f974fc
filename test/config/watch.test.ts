/**
 * Goal: a good change is in force within a second and is the next generation; a bad one leaves the old
 * in force and says why; every way of replacing a file is seen; a storm of reloads is few looks.
 * Method: real files in a temporary folder; waiting is for the change itself, never for a time.
 */
import { once } from 'node:events'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { ConfigRefused, openConfig } from '../../src/config/generations/open-config.js'
import type { ConfigChange } from '../../src/config/generations/outcome-types.js'
import type { ConfigSource } from '../../src/config/generations/reload-config.js'
import { stopwatch } from '../helpers/stopwatch.js'
import { changed, GOOD, MODELS } from './sample.js'

const OTHER = changed('prefix: gpt-', 'prefix: o1-')
const BAD = changed('upstream: openai', 'upstream: opnai')

interface Opened {
  folder: string
  file: string
  source: ConfigSource
}

async function open(t: Test, files: Record<string, string> = {}): Promise<Opened> {
  const folder = t.testdir({ 'gateway.yaml': GOOD, 'models.yaml': MODELS, ...files })
  const file = join(folder, 'gateway.yaml')
  const source = await openConfig(file, { KEY: 'k' })
  t.teardown(() => source.close())
  return { folder, file, source }
}

/** The next change and the time that it took, begun by an action. */
async function changeAfter(source: ConfigSource, act: () => void): Promise<[ConfigChange, number]> {
  const heard = new Promise<ConfigChange>((resolve, reject) => {
    // Watching alone does not keep a process; this does, and ends a wait for what never comes.
    const deadline = setTimeout(() => reject(new Error('no change was told')), 20_000)
    const stop = source.subscribe((change) => {
      clearTimeout(deadline)
      stop()
      resolve(change)
    })
  })
  const watch = stopwatch()
  act()
  const change = await heard
  return [change, watch()]
}

function prefixOf(source: ConfigSource): unknown {
  return source.current().config.routes[0]?.match
}

void t.test('an edit in place is in force within a second', async (t) => {
  const { file, source } = await open(t)
  const first = source.current()
  t.equal(first.generation, 1)
  const [change, tookMs] = await changeAfter(source, () => writeFileSync(file, OTHER))
  t.ok(tookMs < 1_000, `${tookMs} ms`)
  t.match(change, { result: 'applied', snapshot: { generation: 2 } })
  t.same(prefixOf(source), { prefix: 'o1-' })
  t.equal(source.lastError, null)
  t.not(source.current().fileHash, first.fileHash)
  t.same(first.config.routes[0]?.match, { prefix: 'gpt-' }, 'who holds the old one keeps it')
})

void t.test('a bad edit leaves the old generation in force and is told once', async (t) => {
  const { file, source } = await open(t)
  const [change, tookMs] = await changeAfter(source, () => writeFileSync(file, BAD))
  t.ok(tookMs < 1_000, `${tookMs} ms`)
  t.match(change, { result: 'refused', errors: [{ file, line: 7, column: 31 }] })
  t.equal(source.current().generation, 1)
  t.match(source.lastError, [{ path: 'routes[0].upstream', suggestion: 'openai' }])
  let told = 0
  source.subscribe(() => (told += 1))
  t.match(await source.reload(), { result: 'refused', errors: [{ line: 7 }] })
  t.equal(told, 0, 'nothing new')
})

void t.test('taking a bad edit back clears the error without a new generation', async (t) => {
  const { file, source } = await open(t)
  await changeAfter(source, () => writeFileSync(file, BAD))
  writeFileSync(file, GOOD)
  t.match(await source.reload(), { result: 'unchanged', snapshot: { generation: 1 } })
  t.equal(source.lastError, null)
})

void t.test('a file that is put in place by renaming is seen, again and again', async (t) => {
  const { folder, file, source } = await open(t)
  for (const [index, text] of [OTHER, GOOD, OTHER].entries()) {
    const draft = join(folder, '.draft')
    writeFileSync(draft, text)
    const [change, tookMs] = await changeAfter(source, () => renameSync(draft, file))
    t.match(change, { result: 'applied', snapshot: { generation: index + 2 } })
    t.ok(tookMs < 1_000, `${tookMs} ms`)
  }
})

void t.test('a file that goes away is a refusal, and its return is taken', async (t) => {
  const { file, source } = await open(t)
  const [gone] = await changeAfter(source, () => rmSync(file))
  t.match(gone, { result: 'refused', errors: [{ message: /does not exist/ }] })
  let told = 0
  const stop = source.subscribe(() => (told += 1))
  t.match(await source.reload(), { result: 'refused' })
  t.equal(told, 0, 'told once')
  stop()
  t.equal(source.current().generation, 1)
  const [back] = await changeAfter(source, () => writeFileSync(file, OTHER))
  t.match(back, { result: 'applied', snapshot: { generation: 2 } })
})

void t.test('a swap of the folder behind a link is seen, as Kubernetes does it', async (t) => {
  const folder = t.testdir({
    '..1': { 'gateway.yaml': GOOD, 'models.yaml': MODELS },
    '..2': { 'gateway.yaml': OTHER, 'models.yaml': MODELS },
    mount: {},
  })
  const mount = join(folder, 'mount')
  symlinkSync('../..1', join(mount, '..data'))
  symlinkSync('..data/gateway.yaml', join(mount, 'gateway.yaml'))
  symlinkSync('..data/models.yaml', join(mount, 'models.yaml'))
  const source = await openConfig(join(mount, 'gateway.yaml'), {})
  t.teardown(() => source.close())
  const [change, tookMs] = await changeAfter(source, () => {
    symlinkSync('../..2', join(mount, '..new'))
    renameSync(join(mount, '..new'), join(mount, '..data'))
  })
  t.match(change, { result: 'applied', snapshot: { generation: 2 } })
  t.ok(tookMs < 1_000, `${tookMs} ms`)
  t.same(prefixOf(source), { prefix: 'o1-' })
})

void t.test('an edit of the file that a link leads to is seen', async (t) => {
  const folder = t.testdir({
    real: { 'gateway.yaml': GOOD, 'models.yaml': MODELS },
    etc: { 'models.yaml': MODELS },
  })
  symlinkSync('../real/gateway.yaml', join(folder, 'etc/gateway.yaml'))
  const source = await openConfig(join(folder, 'etc/gateway.yaml'), {})
  t.teardown(() => source.close())
  const [change] = await changeAfter(source, () =>
    writeFileSync(join(folder, 'real/gateway.yaml'), OTHER),
  )
  t.match(change, { result: 'applied', snapshot: { generation: 2 } })
})

void t.test('a folder that is replaced as a whole is seen', async (t) => {
  const folder = t.testdir({
    live: { 'gateway.yaml': GOOD, 'models.yaml': MODELS },
    next: { 'gateway.yaml': OTHER, 'models.yaml': MODELS },
  })
  const source = await openConfig(join(folder, 'live/gateway.yaml'), {})
  t.teardown(() => source.close())
  const [change] = await changeAfter(source, () => {
    renameSync(join(folder, 'live'), join(folder, 'old'))
    renameSync(join(folder, 'next'), join(folder, 'live'))
  })
  t.match(change, { result: 'applied', snapshot: { generation: 2 } })
})

void t.test('the catalogue and a secret’s file count too', async (t) => {
  const { folder, source } = await open(t, {
    'gateway.yaml': changed('${KEY}', '${file:keys/openai}'),
    keys: { openai: 'k-1' },
  } as unknown as Record<string, string>)
  const [models] = await changeAfter(source, () =>
    writeFileSync(join(folder, 'models.yaml'), MODELS.replaceAll('gpt-5.5', 'gpt-6')),
  )
  t.match(models, { result: 'applied', snapshot: { generation: 2 } })
  t.equal(source.current().catalogue.models[0]?.id, 'gpt-6')
  const hash = source.current().fileHash
  const [rotated] = await changeAfter(source, () =>
    writeFileSync(join(folder, 'keys/openai'), 'k-2'),
  )
  t.match(rotated, { result: 'applied', snapshot: { generation: 3 } })
  t.equal(source.current().config.upstreams['openai']?.apiKeys[0], 'k-2')
  t.equal(source.current().fileHash, hash, 'the hash is of the two files only')
  const [missing] = await changeAfter(source, () => rmSync(join(folder, 'keys/openai')))
  t.match(missing, { result: 'refused', errors: [{ path: 'upstreams.openai.api_key' }] })
  t.equal(source.current().config.upstreams['openai']?.apiKeys[0], 'k-2')
})

void t.test('a file that is touched, or a neighbour that changes, is no generation', async (t) => {
  const { folder, file, source } = await open(t)
  let told = 0
  source.subscribe(() => (told += 1))
  writeFileSync(file, GOOD)
  writeFileSync(join(folder, 'notes.txt'), 'x')
  mkdirSync(join(folder, 'data'))
  t.match(await source.reload(), { result: 'unchanged', snapshot: { generation: 1 } })
  const [change] = await changeAfter(source, () => writeFileSync(file, OTHER))
  t.match(change, { result: 'applied', snapshot: { generation: 2 } })
  t.equal(told, 1)
})

void t.test(
  'a storm of 1,000 reloads among edits: few generations, the last edit wins',
  async (t) => {
    const { file, source } = await open(t)
    let told = 0
    source.subscribe(() => (told += 1))
    const reloads: Promise<unknown>[] = []
    for (let index = 0; index < 1_000; index++) {
      if (index % 10 === 0) writeFileSync(file, index % 30 === 0 ? BAD : `${OTHER}# ${index}\n`)
      reloads.push(source.reload())
      if (index % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    writeFileSync(file, `${OTHER}# last\n`)
    await Promise.all(reloads)
    await source.reload()
    t.ok(told <= 20, `${told} changes told`)
    t.ok(source.current().generation <= 20)
    const last = loadConfig(file, process.env)
    t.equal(last.ok && last.fileHash, source.current().fileHash, 'the last text is in force')
    t.equal(source.lastError, null)
  },
)

void t.test('reloads at the same time share one look', async (t) => {
  const { file, source } = await open(t)
  let told = 0
  source.subscribe(() => (told += 1))
  writeFileSync(file, OTHER)
  const outcomes = await Promise.all(Array.from({ length: 1_000 }, () => source.reload()))
  t.equal(new Set(outcomes).size, 1)
  t.equal(told, 1)
  t.equal(source.current().generation, 2)
})

void t.test('a snapshot cannot be changed', async (t) => {
  const { source } = await open(t)
  const snapshot = source.current()
  const frozen = (value: unknown): boolean =>
    typeof value !== 'object' ||
    value === null ||
    (Object.isFrozen(value) && Object.values(value).every(frozen))
  t.ok(frozen(snapshot))
})

void t.test('without a first good load there is nothing to run', async (t) => {
  const folder = t.testdir({ 'gateway.yaml': BAD, 'models.yaml': MODELS })
  const file = join(folder, 'gateway.yaml')
  const refused: unknown = await openConfig(file, {}).catch((error: unknown) => error)
  t.ok(refused instanceof ConfigRefused)
  t.match(refused, { problems: [{ line: 7 }], message: /gateway\.yaml:7:31: routes\[0\]/ })
})

void t.test('after close nothing is told, and nothing keeps the process', async (t) => {
  const { file, source } = await open(t)
  let told = 0
  source.subscribe(() => (told += 1))
  await source.close()
  writeFileSync(file, OTHER)
  t.match(await source.reload(), { result: 'unchanged', snapshot: { generation: 1 } })
  t.equal(told, 0)
  const { spawn } = await import('node:child_process')
  const script = `
    import { openConfig } from ${JSON.stringify(join(process.cwd(), 'build/src/config/generations/open-config.js'))}
    await openConfig(process.argv[1], {})`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, file])
  const [status] = (await once(child, 'exit')) as [number | null]
  t.equal(status, 0, 'a process that only watches ends by itself')
})
