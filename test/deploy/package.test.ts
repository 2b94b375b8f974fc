/**
 * Goal: the package installs without a warning on every supported Node release, is complete, and runs
 * without the repository.
 * Method: the lock file's engines; then the packed tarball, every tenth day (the journey of the package
 * does it always) installed with blocked install scripts into an empty project, whose `npx sluice demo`
 * answers a request.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { satisfies, subset } from 'semver'
import t, { type Test } from 'tap'
import * as z from 'zod'
import { anotherDay } from '../helpers/long-suite.js'
import { until } from '../process/program.js'

/** The oldest release of each supported line; in 22 and 24 the first with long-term support. */
const RELEASES = ['20.18.1', '20.20.2', '22.11.0', '24.11.0', '26.0.0']

const Manifest = z.looseObject({
  name: z.string(),
  version: z.string(),
  private: z.undefined().optional(),
  license: z.literal('MIT'),
  engines: z.object({ node: z.string() }),
  publishConfig: z.strictObject({ access: z.literal('public'), provenance: z.literal(true) }),
})

const Lock = z.object({
  packages: z.record(
    z.string(),
    z.looseObject({
      engines: z.object({ node: z.string().optional() }).or(z.array(z.string())).optional(),
      /** Npm installs or omits an optional package without a warning. */
      optional: z.boolean().optional(),
      resolved: z.string().optional(),
    }),
  ),
})

const Packed = z.tuple([z.object({ filename: z.string(), files: z.array(z.object({ path: z.string() })) })])

function parsed<T>(schema: z.ZodType<T>, text: string): T {
  return schema.parse(JSON.parse(text))
}

void t.test('the manifest is ready to publish', (t) => {
  const { engines } = parsed(Manifest, readFileSync('package.json', 'utf8'))
  for (const release of RELEASES) t.ok(satisfies(release, engines.node), release)
  t.ok(subset(engines.node, '>=20.18.1'), 'no older release is promised')
  t.match(readFileSync('LICENSE', 'utf8'), /^MIT License/)
  t.end()
})

void t.test('npm ci prints no engine warning on a supported Node release', (t) => {
  const { packages } = parsed(Lock, readFileSync('package-lock.json', 'utf8'))
  const refused = Object.entries(packages).flatMap(([path, { engines, optional }]) => {
    if (optional === true || engines === undefined || Array.isArray(engines)) return []
    const { node = '*' } = engines
    return RELEASES.filter((release) => !satisfies(release, node)).map(
      (release) => `${path} needs ${node}, not ${release}`,
    )
  })
  t.same(refused, [])
  const resolved = Object.entries(packages).filter(([, each]) => each.resolved !== undefined)
  t.same(resolved, [], 'the lock file names no registry')
  t.end()
})

void t.test('the packed tarball, and npx sluice demo from it', { timeout: 170_000 }, async (t) => {
  const folder = t.testdir({ home: {}, project: { 'package.json': '{"private":true}' } })
  const packArgs = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const pack = spawnSync('npm', packArgs, { encoding: 'utf8' })
  t.equal(pack.status, 0, pack.stderr)
  const [{ filename, files }] = parsed(Packed, pack.stdout)
  const paths = files.map(({ path }) => path)
  for (const path of [
    ...['LICENSE', 'README.md', 'CHANGELOG.md', 'package.json', 'dist/main.js'],
    ...['config/models.yaml', 'config/schema.json', 'dist/formats/codecs.d.ts'],
    ...['dist/store/sqlite/schema.sql', 'dist/dashboard/web/index.html'],
    ...readdirSync('src/store/sqlite/migrations').map((n) => `dist/store/sqlite/migrations/${n}`),
  ]) {
    t.ok(paths.includes(path), path)
  }
  const others = /^(?:LICENSE|README\.md|CHANGELOG\.md|package\.json|(?:config|dist)\/.+)$/
  t.same(
    paths.filter((path) => !others.test(path) || /\.(?:map|tsbuildinfo|test\.js)$/.test(path)),
    [],
    'nothing else',
  )
  await t.test('installed', { skip: anotherDay(1, 10) }, (t) => startInstalled(t, folder, filename))
})

/** The tarball in an empty project, without the repository. */
async function startInstalled(t: Test, folder: string, filename: string): Promise<void> {
  const project = join(folder, 'project')
  const installArgs = ['install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']
  const install = spawnSync('npm', [...installArgs, join(folder, filename)], {
    cwd: project,
    encoding: 'utf8',
  })
  t.equal(install.status, 0, install.stderr)
  t.notMatch(install.stderr, 'EBADENGINE')

  const tmp = join(folder, 'tmp')
  mkdirSync(tmp)
  writeFileSync(join(folder, 'home/.npmrc'), 'ignore-scripts=true\n')
  const demo = spawn('npx', ['--no-install', 'sluice', 'demo', '--port', '0', '--ops-port', '0'], {
    cwd: project,
    env: { PATH: process.env['PATH'], HOME: join(folder, 'home'), TMPDIR: tmp },
    // A group of its own, which gets the signal as from a terminal.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(demo, 'close')
  const signal = (name: NodeJS.Signals): void => {
    const isRunning = demo.exitCode === null && demo.signalCode === null
    if (isRunning && demo.pid !== undefined) process.kill(-demo.pid, name)
  }
  t.teardown(() => signal('SIGKILL'))
  let [out, err] = ['', '']
  demo.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  demo.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  await until(() => {
    if (demo.exitCode !== null) throw new Error(`it exited: ${err}`)
    return out.includes('Ctrl-C')
  }, 60_000)
  t.match(out, /EMULATED[^]*SAMPLE DATA/)
  const base = /Sluice is up at (\S+)\. /.exec(out)?.[1] ?? ''
  const key = /\bkey +(sk_\w+)/.exec(out)?.[1] ?? ''
  const messages = [{ role: 'user', content: 'Name three rivers.' }]
  const reply = await fetch(`${base}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'claude-sonnet-5-5', messages }),
  })
  t.equal(reply.status, 200)
  t.match(await reply.json(), { choices: [{ finish_reason: 'stop' }] })
  const page = await fetch(new URL('/dashboard/', base))
  t.match(await page.text(), /<!doctype html>[^]*<script/)
  signal('SIGINT')
  await ended
  t.same(readdirSync(tmp), [], 'its files are removed')
}
