/**
 * Goal: the image builds from the repository, holds no secret and nothing that a gateway does not need, and
 * serves as documented: read-only root, user `node`, documented commands, drain on SIGTERM; also
 * with the settings of the Compose file and a real Redis.
 * Method: buildah without an engine; containers as processes in their own namespaces.
 */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import * as z from 'zod'
import { Images, imagesMissing, Network, ownedFolder, type Running } from './containers.js'
import { debianMissing, needing, packagesMissing } from './missing-parts.js'
import { eventually, shell, show, succeeds } from './shell.js'

const MAX_BYTES_ABOVE_BASE = 100e6
const SECRET = 'sk-secret-of-the-operator'
const REPLY =
  "fetch('URL',{method:'POST',headers:{authorization:'Bearer KEY','content-type':'application/json'},body:JSON.stringify({model:'gpt-5.4',messages:[{role:'user',content:'Hi'}]})}).then(async(r)=>console.log(r.status,await r.text()))"
const GET = "fetch('URL').then(async(r)=>console.log(r.status,(await r.text()).slice(0,80)))"

const skip = needing(await imagesMissing(), await debianMissing(), await packagesMissing())

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
}

function bytesIn(folder: string): number {
  return filesIn(folder).reduce((sum, name) => {
    const stat = lstatSync(join(folder, name))
    return sum + (stat.isFile() ? stat.size : 0)
  }, 0)
}

/** A digest of names, modes, links and contents. */
function digestOf(folder: string): string {
  const hash = createHash('sha256')
  for (const name of filesIn(folder)) {
    const path = join(folder, name)
    const stat = lstatSync(path)
    hash.update(`${name} ${stat.mode.toString(8)}\n`)
    if (stat.isFile()) hash.update(readFileSync(path))
    if (stat.isSymbolicLink()) hash.update(readlinkSync(path))
  }
  return hash.digest('hex')
}

/** A clone with a secret in the documented place, as an operator has it. */
async function clone(t: Test): Promise<string> {
  const folder = mkdtempSync('/var/tmp/sluice-clone-')
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const repository = join(folder, 'sluice')
  await succeeds(t, ['git', 'clone', '--quiet', '--depth', '1', `file://${process.cwd()}`, repository])
  writeFileSync(join(repository, 'config', '.env'), `OPENAI_API_KEY=${SECRET}\n`)
  writeFileSync(join(repository, 'config', 'tls.key'), SECRET)
  writeFileSync(join(repository, 'src', '.env'), `GEMINI_API_KEY=${SECRET}\n`)
  // As after `umask 077`.
  chmodSync(join(repository, 'config', 'gateway.yaml'), 0o600)
  writeFileSync(join(repository, '.env'), `REDIS_PASSWORD=${SECRET}\n`)
  return repository
}

/** A copy of the configuration with all providers emulated. */
function emulatedConfig(folder: string): string {
  cpSync('config', folder, { recursive: true })
  for (const name of ['gateway.yaml', 'gateway.redis.yaml']) {
    const path = join(folder, name)
    const text = readFileSync(path, 'utf8').replaceAll(
      /base_url: https:\/\/\S+?(\/v1\w*)$/gm,
      'base_url: http://127.0.0.1:9999$1',
    )
    writeFileSync(path, text)
  }
  return folder
}

interface Scene {
  readonly network: Network
  readonly root: string
  readonly volumes: Readonly<Record<string, readonly [string, boolean]>>
  readonly env: Readonly<Record<string, string>>
}

/** The journey of an operator: start, account, key, request, page, readiness, drain. */
async function operate(t: Test, { network, root, volumes, env }: Scene): Promise<Running> {
  const container = (command: readonly string[]): readonly string[] =>
    network.inside(network.container(root, { env, volumes }, command))
  const emulator = network.start([
    process.execPath,
    'dist/main.js',
    'emulate',
    '--port',
    '9999',
    '--any-model',
  ])
  const gateway = network.start(network.container(root, { env, volumes }, ['node', 'dist/main.js', 'serve']))
  const curl = async (script: string, url: string, key = ''): Promise<string> => {
    const code = script.replace('URL', url).replace('KEY', key)
    const command = network.inside([process.execPath, '-e', code])
    return (await shell(command, { secret: true })).out
  }
  await eventually('the gateway is ready', 60_000, async () =>
    (await curl(GET, 'http://127.0.0.1:9464/readyz')).startsWith('200') ? true : null,
  )
  const [first = '{}'] = gateway
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
  show(first.slice(0, 150))
  t.notMatch(first, /chmod|error/, 'the folder of the store needs no advice')
  t.match(await succeeds(t, container(['sluice', '--version'])), /^sluice \d+\.\d+\.\d+/m, 'as in the pages')
  await succeeds(
    t,
    container([
      'node',
      'dist/main.js',
      'accounts',
      'create',
      '--email',
      'you@example.com',
      '--plan',
      'starter',
    ]),
    { secret: true },
  )
  const key = await succeeds(
    t,
    container(['node', 'dist/main.js', 'keys', 'create', '--account', 'you@example.com', '--name', 'my-app']),
    { secret: true },
  )
  t.match(key, /^sk_\w+\s*$/, 'the key alone on standard output')
  t.match(await curl(REPLY, 'http://127.0.0.1:8080/v1/chat/completions', key.trim()), /^200 .*emulated/s)
  t.match(await curl(GET, 'http://127.0.0.1:8080/dashboard/'), /^200 <!doctype html>/)
  t.match(await curl(GET, 'http://127.0.0.1:9464/healthz'), /^200/)
  gateway.child.kill('SIGTERM')
  t.equal(await gateway.ended, 0, 'SIGTERM drains')
  t.match(gateway.output(), /"msg":"drained"/)
  t.notMatch(gateway.output(), SECRET)
  emulator.child.kill()
  await emulator.ended
  return gateway
}

const Compose = z.object({
  services: z.object({
    sluice: z.looseObject({
      environment: z.record(z.string(), z.string().nullable()),
      healthcheck: z.object({ test: z.array(z.string()) }),
      read_only: z.literal(true),
    }),
    redis: z.looseObject({ command: z.array(z.string()) }),
  }),
})

void t.test('the image', skip, async (t) => {
  const images = new Images(t)
  const repository = await clone(t)
  await images.makeBase()
  await images.build(repository, 'sluice:one')
  const root = await images.mount('sluice:one')
  const app = join(root, 'app')

  await t.test('holds what a gateway needs and nothing else', async (t) => {
    const bytes = bytesIn(app)
    show(`/app: ${(bytes / 1e6).toFixed(1)} MB`)
    t.ok(bytes <= MAX_BYTES_ABOVE_BASE, `${String(bytes)} bytes above the base`)
    const { status } = await shell(['grep', '-rlF', SECRET, app])
    t.equal(status, 1, 'no secret')
    const files = filesIn(app)
    t.notOk(files.find((name) => /\.(?:map|ts)$|(?:^|\/)\.env$|\.key$/.test(name)))
    const tests = /[.-](?:test|spec)\.[cm]?js$|\/(?:tests?|specs?|system-test|\.github)\/|\/test\.js$/
    t.notOk(
      files.find((name) => tests.test(name)),
      'no tests of packages',
    )
    t.equal(statSync(join(app, 'config', 'gateway.yaml')).mode & 0o777, 0o644, 'other users may read it')
    t.notOk(
      files.find((name) => /prebuilds\/(?!linux-x64)[^/]+$|\.musl\.node$/.test(name)),
      'no files for other systems',
    )
    t.equal(statSync(join(app, 'data')).mode & 0o777, 0o700, 'the folder of the store is private')
  })

  await t.test('serves with the embedded store and a read-only root', async (t) => {
    const network = new Network(t)
    await network.open()
    const folder = mkdtempSync('/var/tmp/sluice-volumes-')
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const data = await ownedFolder(t, join(folder, 'data'))
    const config = emulatedConfig(join(folder, 'config'))
    const env = {
      NODE_ENV: 'production',
      SLUICE_CONFIG: 'config/gateway.yaml',
      OPENAI_API_KEY: 'k',
      ANTHROPIC_API_KEY: 'k',
      GEMINI_API_KEY: 'k',
    }
    const volumes = { '/app/data': [data, false], '/app/config': [config, true] } as const
    await operate(t, { network, root, volumes, env })
  })

  await t.test('serves with the settings of the Compose file and Redis', async (t) => {
    const { services } = Compose.parse(parse(readFileSync('compose.yaml', 'utf8')))
    const { sluice, redis } = services
    const network = new Network(t)
    await network.open()
    const folder = mkdtempSync('/var/tmp/sluice-volumes-')
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const data = await ownedFolder(t, join(folder, 'data'))
    const config = emulatedConfig(join(folder, 'config'))
    mkdirSync(join(folder, 'redis'))
    writeFileSync(join(folder, 'hosts'), '127.0.0.1 localhost redis\n')
    const password = 'journey'
    const file = join(folder, 'redis.conf')
    const command = redis.command.map((word) =>
      word.replaceAll('$$', '$').replaceAll('/tmp/redis.conf', file),
    )
    const server = network.start(['env', '-C', join(folder, 'redis'), ...command], {
      ...process.env,
      REDISCLI_AUTH: password,
    })
    const keys = { OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k', GEMINI_API_KEY: 'k' }
    const { SLUICE_CONFIG } = sluice.environment
    const env = {
      NODE_ENV: 'production',
      SLUICE_CONFIG: String(SLUICE_CONFIG),
      REDIS_PASSWORD: password,
      ...keys,
    }
    const volumes = {
      '/app/data': [data, false],
      '/app/config': [config, true],
      '/etc/hosts': [join(folder, 'hosts'), true],
    } as const
    await operate(t, { network, root, volumes, env })
    const [, ...check] = sluice.healthcheck.test
    t.match(check.join(' '), /^node -e .*healthz/, 'Compose checks the health itself')
    server.child.kill()
    await server.ended
  })

  await t.test('is the same when it is built again', async (t) => {
    chmodSync(join(repository, 'config', 'gateway.yaml'), 0o644)
    await images.build(repository, 'sluice:two')
    const again = await images.mount('sluice:two')
    const digest = digestOf(app)
    show(`/app: sha256 ${digest}`)
    t.equal(digestOf(join(again, 'app')), digest)
  })
})
