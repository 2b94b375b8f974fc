/**
 * Goal: a valid change is in force within a second as the next generation; an invalid one is reported and
 * leaves the old generation in force. Every way of replacing a file is detected, and concurrent reloads
 * share loads.
 * Method: real files in a temporary folder; the tests wait for changes, never for a fixed time.
 */
import { once } from 'node:events'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadConfig } from '../../src/config/load-config.js'
import { ConfigRefused, openConfig } from '../../src/config/generations/config-at-start.js'
import type { ConfigChange, ConfigSource } from '../../src/config/generations/config-source.js'
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

/** Runs an action. Returns the next change and the time until it, in ms. */
async function changeAfter(source: ConfigSource, act: () => void): Promise<[ConfigChange, number]> {
  const nextChange = new Promise<ConfigChange>((resolve, reject) => {
    // The watcher does not keep the process running. The timer does, and it limits the wait.
    const deadline = setTimeout(() => reject(new Error('no change within 20 s')), 20_000)
    const stop = source.subscribe((change) => {
      clearTimeout(deadline)
      stop()
      resolve(change)
    })
  })
  const watch = stopwatch()
  act()
  const change = await nextChange
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
  t.same(first.config.routes[0]?.match, { prefix: 'gpt-' }, 'the old snapshot is unchanged')
})

void t.test('an invalid edit is reported once and leaves the old generation in force', async (t) => {
  const { file, source } = await open(t)
  const [change, tookMs] = await changeAfter(source, () => writeFileSync(file, BAD))
  t.ok(tookMs < 1_000, `${tookMs} ms`)
  t.match(change, { result: 'refused', errors: [{ file, line: 7, column: 31 }] })
  t.equal(source.current().generation, 1)
  t.match(source.lastError, [{ path: 'routes[0].upstream', suggestion: 'openai' }])
  let changes = 0
  source.subscribe(() => (changes += 1))
  t.match(await source.reload(), { result: 'refused', errors: [{ line: 7 }] })
  t.equal(changes, 0, 'no second notification')
})

void t.test('reverting an invalid edit clears the error without a new generation', async (t) => {
  const { file, source } = await open(t)
  await changeAfter(source, () => writeFileSync(file, BAD))
  writeFileSync(file, GOOD)
  t.match(await source.reload(), { result: 'unchanged', snapshot: { generation: 1 } })
  t.equal(source.lastError, null)
})

void t.test('each replacement of the file by renaming is detected', async (t) => {
  const { folder, file, source } = await open(t)
  for (const [index, text] of [OTHER, GOOD, OTHER].entries()) {
    const draft = join(folder, '.draft')
    writeFileSync(draft, text)
    const [change, tookMs] = await changeAfter(source, () => renameSync(draft, file))
    t.match(change, { result: 'applied', snapshot: { generation: index + 2 } })
    t.ok(tookMs < 1_000, `${tookMs} ms`)
  }
})

void t.test('a deleted file is reported, and its return is loaded', async (t) => {
  const { file, source } = await open(t)
  const [deletion] = await changeAfter(source, () => rmSync(file))
  t.match(deletion, { result: 'refused', errors: [{ message: /does not exist/ }] })
  let changes = 0
  const stop = source.subscribe(() => (changes += 1))
  t.match(await source.reload(), { result: 'refused' })
  t.equal(changes, 0, 'no second notification')
  stop()
  t.equal(source.current().generation, 1)
  const [back] = await changeAfter(source, () => writeFileSync(file, OTHER))
  t.match(back, { result: 'applied', snapshot: { generation: 2 } })
})

void t.test('a replaced link to the folder is detected, as in Kubernetes mounts', async (t) => {
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

void t.test('an edit of the target of a link is detected', async (t) => {
  const folder = t.testdir({
    real: { 'gateway.yaml': GOOD, 'models.yaml': MODELS },
    etc: { 'models.yaml': MODELS },
  })
  symlinkSync('../real/gateway.yaml', join(folder, 'etc/gateway.yaml'))
  const source = await openConfig(join(folder, 'etc/gateway.yaml'), {})
  t.teardown(() => source.close())
  const [change] = await changeAfter(source, () => writeFileSync(join(folder, 'real/gateway.yaml'), OTHER))
  t.match(change, { result: 'applied', snapshot: { generation: 2 } })
})

void t.test('a replaced folder is detected', async (t) => {
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

void t.test("changes of the catalogue and of a secret's file are detected", async (t) => {
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
  const [rotated] = await changeAfter(source, () => writeFileSync(join(folder, 'keys/openai'), 'k-2'))
  t.match(rotated, { result: 'applied', snapshot: { generation: 3 } })
  t.equal(source.current().config.upstreams['openai']?.apiKeys[0], 'k-2')
  t.equal(source.current().fileHash, hash, 'the hash covers only the two files')
  const [missing] = await changeAfter(source, () => rmSync(join(folder, 'keys/openai')))
  t.match(missing, { result: 'refused', errors: [{ path: 'upstreams.openai.api_key' }] })
  t.equal(source.current().config.upstreams['openai']?.apiKeys[0], 'k-2')
})

void t.test('a touched file and changes of other files create no generation', async (t) => {
  const { folder, file, source } = await open(t)
  let changes = 0
  source.subscribe(() => (changes += 1))
  writeFileSync(file, GOOD)
  writeFileSync(join(folder, 'notes.txt'), 'x')
  mkdirSync(join(folder, 'data'))
  t.match(await source.reload(), { result: 'unchanged', snapshot: { generation: 1 } })
  const [change] = await changeAfter(source, () => writeFileSync(file, OTHER))
  t.match(change, { result: 'applied', snapshot: { generation: 2 } })
  t.equal(changes, 1)
})

void t.test('1,000 reloads during edits create few generations, and the last edit wins', async (t) => {
  const { file, source } = await open(t)
  let changes = 0
  source.subscribe(() => (changes += 1))
  const reloads: Promise<unknown>[] = []
  for (let index = 0; index < 1_000; index++) {
    if (index % 10 === 0) writeFileSync(file, index % 30 === 0 ? BAD : `${OTHER}# ${index}\n`)
    reloads.push(source.reload())
    if (index % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  writeFileSync(file, `${OTHER}# last\n`)
  await Promise.all(reloads)
  await source.reload()
  t.ok(changes <= 20, `${changes} notifications`)
  t.ok(source.current().generation <= 20)
  const last = loadConfig(file, process.env)
  t.equal(last.ok && last.fileHash, source.current().fileHash, 'the last edit is in force')
  t.equal(source.lastError, null)
})

void t.test('concurrent reloads share one load', async (t) => {
  const { file, source } = await open(t)
  let changes = 0
  source.subscribe(() => (changes += 1))
  writeFileSync(file, OTHER)
  const outcomes = await Promise.all(Array.from({ length: 1_000 }, () => source.reload()))
  t.equal(new Set(outcomes).size, 1)
  t.equal(changes, 1)
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

void t.test('opening an invalid file throws with its errors', async (t) => {
  const folder = t.testdir({ 'gateway.yaml': BAD, 'models.yaml': MODELS })
  const file = join(folder, 'gateway.yaml')
  const refused: unknown = await openConfig(file, {}).catch((error: unknown) => error)
  t.ok(refused instanceof ConfigRefused)
  t.match(refused, { problems: [{ line: 7 }], message: /gateway\.yaml:7:31: routes\[0\]/ })
})

void t.test('close ends notifications, and a watcher lets the process exit', async (t) => {
  const { file, source } = await open(t)
  let changes = 0
  source.subscribe(() => (changes += 1))
  await source.close()
  writeFileSync(file, OTHER)
  t.match(await source.reload(), { result: 'unchanged', snapshot: { generation: 1 } })
  t.equal(changes, 0)
  const { spawn } = await import('node:child_process')
  const script = `
    import { openConfig } from ${JSON.stringify(join(process.cwd(), 'build/src/config/generations/config-at-start.js'))}
    await openConfig(process.argv[1], {})`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, file])
  const [status] = (await once(child, 'exit')) as [number | null]
  t.equal(status, 0, 'a process with only a watcher exits')
})
