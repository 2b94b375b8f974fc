/**
 * Goal: HAProxy and nginx with the files of the documentation pass each chunk of a stream at once, and lose
 * no request when a gateway drains, when it is killed between requests, and while Redis is away.
 * Method: the real programs read their files; in front of two gateways on one Redis, each on one day of four
 * and in the long suite.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { balancerCommand, balancerFile, type BalancerName } from '../../bench/processes/load-balancer.js'
import { startEmulator } from '../../src/emulator/server.js'
import { freePort } from '../helpers/free-port.js'
import { anotherDay } from '../helpers/long-suite.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { Load, type Answer } from '../outage/load.js'
import { fileText, get, hasAllWorkers, makeKey, run, until, type Program } from '../process/program.js'

t.setTimeout(170_000)
t.jobs = 2

const PACE_MS = 60
const WORDS = 12
/** Requests a second of the load. */
const PER_SECOND = 20
/** The checks of HAProxy and `fail_timeout` of nginx have noticed a change after this time. */
const NOTICED_MS = 3_000

function programMissing(name: BalancerName): string | false {
  const found = spawnSync(name, ['-v']).error === undefined
  if (found) return false
  const message = `${name} is missing: apt-get install -y ${name}`
  if (process.env['CI'] === 'true') throw new Error(message)
  process.stderr.write(`\nSKIPPED, NOT PASSED: ${message}\n\n`)
  return message
}

interface Gateway {
  readonly port: number
  readonly opsPort: number
  start(): Promise<Program>
}

/** Writes the file of a load balancer, which must accept it without a warning; returns what starts it. */
function checkFile(t: Test, name: BalancerName, place: Parameters<typeof balancerFile>[1]) {
  const file = join(place.folder, `${name}.conf`)
  writeFileSync(file, balancerFile(name, place))
  const [program = '', ...args] = balancerCommand(name, file)
  const check = name === 'haproxy' ? ['-c', ...args] : ['-t', ...args]
  const checked = spawnSync(program, check, { encoding: 'utf8' })
  t.equal(checked.status, 0, checked.stderr)
  t.notMatch(checked.stderr, /warn/i)
  return { program, args }
}

/** Two gateways on one Redis behind the load balancer. */
async function startFleet(t: Test, name: BalancerName) {
  const folder = t.testdir({})
  const redis = await startRedis(t)
  const emulator = await startEmulator({ models: 'any' })
  t.teardown(() => emulator.close())
  const secret = await makeKey(redis.url())
  const gateways: Gateway[] = []
  for (const id of ['a', 'b']) {
    const [port, opsPort] = [await freePort(), await freePort()]
    const server = 'workers: 1, drain_ms: 20000, trusted_proxies: [127.0.0.1/32]'
    mkdirSync(join(folder, id))
    const file = join(folder, id, 'gateway.yaml')
    copyFileSync('config/models.yaml', join(folder, id, 'models.yaml'))
    writeFileSync(file, fileText(emulator, { server, port, opsPort, store: redis.url() }))
    const start = async (): Promise<Program> => {
      const program = run(t, ['serve', '--config', file])
      const ready = () => get(`http://127.0.0.1:${opsPort}/readyz`).then(hasAllWorkers, () => false)
      await until(ready, 60_000, 50)
      return program
    }
    gateways.push({ port, opsPort, start })
  }
  const programs = await Promise.all(gateways.map((gateway) => gateway.start()))
  const port = await freePort()
  const { program, args } = checkFile(t, name, { port, folder, gateways })
  const balancer = spawn(program, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  t.teardown(async () => {
    const ended = once(balancer, 'exit')
    if (balancer.kill('SIGTERM')) await ended
  })
  await until(() => accepts(port), 20_000, 20)
  return { redis, secret, gateways, programs, port, folder }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('close', () => socket.destroy()).once('connect', () => socket.destroy())
  })
}

function stream(port: number, secret: string, content: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'gpt-5.4-mini',
      stream: true,
      messages: [{ role: 'user', content }],
    }),
  })
}

/** Sends a request from an address of this machine. */
function askFrom(localAddress: string, port: number, secret: string): Promise<void> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const messages = [{ role: 'user', content: 'Hi.' }]
  return new Promise((resolve, reject) => {
    const place = { host: '127.0.0.1', port, localAddress, path: '/v1/chat/completions' }
    const req = request({ ...place, method: 'POST', headers }, (res) => {
      res.resume().once('end', resolve)
    })
    req.once('error', reject).end(JSON.stringify({ model: 'gpt-5.4-mini', messages }))
  })
}

/** The times at which the chunks of a stream arrive. */
async function arrivals(reply: Response): Promise<{ times: number[]; text: string }> {
  const times: number[] = []
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of reply.body ?? []) {
    times.push(performance.now())
    text += decoder.decode(chunk as Uint8Array, { stream: true })
  }
  return { times, text }
}

/** Checks that all requests of an interval got their reply. */
function served(t: Test, answers: readonly Answer[], name: string): void {
  const failed = answers.filter(({ status, isWhole }) => status !== 200 || !isWhole)
  t.ok(answers.length > 0, `${name}: ${answers.length} requests`)
  t.same(
    failed.map(({ status, text }) => `${status} ${text}`),
    [],
    `${name}: none failed`,
  )
}

for (const [at, name] of (['haproxy', 'nginx'] as const).entries()) {
  const missing = programMissing(name)
  void t.test(`${name} accepts its file`, { skip: missing }, async (t) => {
    const gateways = [await freePort(), await freePort()].map((port) => ({ port, opsPort: port }))
    checkFile(t, name, { port: await freePort(), folder: t.testdir({}), gateways })
  })
  const skip = missing || anotherDay(2 * at, 4) || redisMissing()
  void t.test(name, { skip }, async (t) => {
    const { redis, secret, gateways, programs, port, folder } = await startFleet(t, name)
    const slow = `[[words: ${WORDS}]] [[pace: ${PACE_MS}]]`
    const { times, text } = await arrivals(await stream(port, secret, slow))
    t.match(text, 'data: [DONE]')
    t.ok(times.length >= WORDS * 0.7, `${times.length} chunks arrive one by one`)
    const lastMs = (times.at(-1) ?? 0) - (times[0] ?? 0)
    t.ok(lastMs > WORDS * PACE_MS * 0.6, `over ${lastMs.toFixed()} ms`)
    const large = await stream(port, secret, 'x'.repeat(3_000_000))
    t.equal(large.status, 200, 'a prompt of 3 MB passes')
    await large.text()

    const load = new Load(port, [{ name: 'app', secret: () => secret, perSecond: PER_SECOND }])
    t.teardown(() => load.stop())
    let fromMs = performance.now()
    const phase = (title: string): void => {
      const nowMs = performance.now()
      served(t, load.between(fromMs, nowMs - 500, 'app'), title)
      fromMs = nowMs
    }
    await delay(1_000)
    const [first, second] = programs
    const [gateway] = gateways
    if (first === undefined || second === undefined || gateway === undefined) throw new Error('no')
    // Streams that run on both gateways outlive the drain of one.
    const long = `[[words: ${Math.ceil(NOTICED_MS / PACE_MS) + 20}]] [[pace: ${PACE_MS}]]`
    const running = await Promise.all(Array.from({ length: 4 }, () => stream(port, secret, long)))
    first.child.kill('SIGTERM')
    for (const reply of running) t.match((await arrivals(reply)).text, 'data: [DONE]')
    t.equal(await first.ended, 0)
    await delay(1_000)
    phase('a gateway drains and ends')

    const again = await gateway.start()
    // Every gateway that has served a key keeps serving it while Redis is away.
    await until(async () => (await stream(gateway.port, secret, 'Hi.')).status === 200)
    await delay(NOTICED_MS)
    phase('it returns')

    await redis.kill()
    await delay(NOTICED_MS)
    phase('Redis is away')
    await redis.start()
    await delay(NOTICED_MS)
    phase('Redis is back')

    for (const pid of [again.pid, ...again.workers()]) process.kill(pid, 'SIGKILL')
    await again.ended
    const killedMs = performance.now()
    await delay(NOTICED_MS)
    // Requests in flight at the kill may fail; the next ones use the other gateway.
    served(t, load.between(killedMs, performance.now() - 500, 'app'), 'after a kill')
    await load.stop()

    await load.stop()
    await askFrom('127.0.0.2', port, secret)
    const addresses = () => second.lines().map((line) => line['client_address'])
    await until(() => addresses().includes('127.0.0.2'))
    if (name === 'nginx') {
      t.ok(existsSync(join(folder, 'access.log')))
      t.match(readFileSync(join(folder, 'access.log'), 'utf8'), '/v1/chat/completions 200')
    }
  })
}
