/**
 * Goal: a gateway is upgraded from the last release while apps use it, and there is a way back: no request
 * is refused in a fleet, and each one is in the ledger once.
 * Method: the program of the last release, built from its commit, and this one, with the documented steps:
 * in sequence on one Redis; on SQLite a stop, a backup, a start, and the backup restored for the way
 * back.
 */
import { spawn, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { thisTree, treeOf, type Tree } from '../../bench/processes/builds.js'
import { startEmulator } from '../../src/emulator/server.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { chat, configText, EMAIL, ENGINES, type Engine } from '../store/upgrade/scene.js'
import { eventually, show } from './shell.js'

/** The last commit with the schema of 0.1.0. */
const LAST_RELEASE = '4c6601e88ae58d3c2ae37e1e22f4da92265a3f4e'
const IN_FLIGHT = 4

const isKnown = spawnSync('git', ['cat-file', '-e', `${LAST_RELEASE}^{commit}`]).status === 0
const skip = isKnown ? {} : { skip: 'the history of this clone does not reach the last release' }

/** A gateway of one of the two versions. */
interface Gateway {
  readonly port: number
  /** Drains it. */
  stop(): Promise<void>
}

async function serve(t: Test, { main, name }: Tree, file: string): Promise<Gateway> {
  const child = spawn(process.execPath, [main, 'serve', '--config', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  await eventually(`${name} serves`, 60_000, () => {
    if (child.exitCode !== null) throw new Error(`${name} exited: ${out.slice(-300)}${err.slice(-300)}`)
    return Promise.resolve(out.includes('"sluice serves"') ? true : null)
  })
  show(`${name} serves`)
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    t.equal(await ended, 0, `${name} drains`)
  }
  return { port: Number(/"port":(\d+)/.exec(out)?.[1]), stop }
}

/** A command of one of the versions; returns what it prints. */
function command({ main }: Tree, file: string, ...args: readonly string[]): string {
  const argv = [main, ...args, '--config', file]
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${args.slice(0, 2).join(' ')}: ${stderr.slice(-500)}`)
  return stdout.trim()
}

/** Apps that send one request after the other to the gateway in service, until they are stopped. */
class Apps {
  private readonly secret: string
  private isEnding = false
  private inFlight = 0
  private readonly running: Promise<void>[]
  readonly statuses = new Map<number | string, number>()
  /** Null: no gateway is in service, and the apps wait. */
  gateway: Gateway | null = null

  constructor(t: Test, secret: string) {
    this.secret = secret
    t.teardown(() => this.end())
    this.running = Array.from({ length: IN_FLIGHT }, () => this.send())
  }

  /** The number of requests with a status. */
  count(status: number): number {
    return this.statuses.get(status) ?? 0
  }

  /** Waits until some more requests have been answered. */
  async more(requests = 20): Promise<void> {
    const goal = this.count(200) + requests
    await eventually('requests are answered', 60_000, () =>
      Promise.resolve(this.count(200) >= goal ? true : null),
    )
  }

  /** Waits until the running requests have ended; the apps send no new ones. */
  async pause(): Promise<void> {
    this.gateway = null
    await eventually('requests end', 30_000, () => Promise.resolve(this.inFlight === 0 ? true : null))
  }

  async end(): Promise<void> {
    this.isEnding = true
    await Promise.all(this.running)
  }

  private async send(): Promise<void> {
    while (!this.isEnding) {
      if (this.gateway === null) {
        await new Promise((resolve) => setTimeout(resolve, 20))
        continue
      }
      this.inFlight++
      const result = await this.once(this.gateway.port)
      this.inFlight--
      this.statuses.set(result, (this.statuses.get(result) ?? 0) + 1)
    }
  }

  private async once(port: number): Promise<number | string> {
    try {
      const reply = await chat(port, this.secret, { stream: true })
      const text = await reply.text()
      return reply.status === 200 && !text.includes('[DONE]') ? 'cut' : reply.status
    } catch (error) {
      return String(error)
    }
  }
}

interface UpgradeScene {
  readonly file: string
  readonly secret: string
  readonly entries: () => number
}

async function scene(t: Test, engine: Engine, old: Tree): Promise<UpgradeScene> {
  const folder = t.testdir({})
  const emulator = await startEmulator()
  t.teardown(() => emulator.close())
  const store = engine === 'redis' ? (await startRedis(t)).url() : 'sqlite:./data/sluice.db'
  const file = join(folder, 'gateway.yaml')
  copyFileSync(old.models, join(folder, 'models.yaml'))
  writeFileSync(file, configText(store, emulator.baseUrls.openai))
  command(old, file, 'accounts', 'create', '--email', EMAIL, '--plan', 'pro')
  const secret = command(old, file, 'keys', 'create', '--account', EMAIL, '--name', 'web')
  const now = thisTree()
  const entries = (): number => command(now, file, 'usage', 'export', '--format', 'jsonl').split('\n').length
  return { file, secret, entries }
}

/** One gateway after the other, on one Redis. */
async function fleet(t: Test, old: Tree): Promise<void> {
  const { file, secret, entries } = await scene(t, 'redis', old)
  const apps = new Apps(t, secret)
  const first = await serve(t, old, file)
  apps.gateway = first
  await apps.more()
  const second = await serve(t, thisTree(), file)
  apps.gateway = second
  await apps.more()
  await first.stop()
  await apps.more()
  // The way back.
  const third = await serve(t, old, file)
  apps.gateway = third
  await apps.more()
  await second.stop()
  await apps.more()
  await apps.end()
  await third.stop()
  t.same([...apps.statuses.keys()], [200], 'no request was refused')
  t.equal(entries(), apps.count(200), 'each request is in the ledger once')
}

/** One machine: stop, back up, start; and the backup for the way back. */
async function machine(t: Test, old: Tree): Promise<void> {
  const { file, secret, entries } = await scene(t, 'sqlite', old)
  const data = join(file, '..', 'data')
  const apps = new Apps(t, secret)
  let gateway = await serve(t, old, file)
  apps.gateway = gateway
  await apps.more()
  await apps.pause()
  await gateway.stop()
  const before = apps.count(200)
  const copy = join(file, '..', 'backup', 'sluice.db')
  mkdirSync(join(copy, '..'))
  command(old, file, 'backup', copy)
  gateway = await serve(t, thisTree(), file)
  apps.gateway = gateway
  await apps.more()
  await apps.pause()
  await gateway.stop()
  t.equal(entries(), apps.count(200), 'the new version has all requests of both')
  t.throws(
    () => command(old, file, 'keys', 'list', '--account', EMAIL),
    /newer version/,
    'the old one refuses',
  )
  // The way back.
  for (const name of ['sluice.db', 'sluice.db-wal', 'sluice.db-shm'])
    rmSync(join(data, name), { force: true })
  copyFileSync(copy, join(data, 'sluice.db'))
  const after = apps.count(200)
  gateway = await serve(t, old, file)
  apps.gateway = gateway
  await apps.more()
  await apps.pause()
  await gateway.stop()
  await apps.end()
  t.same([...apps.statuses.keys()], [200], 'no request was refused')
  const kept = command(old, file, 'usage', 'export', '--format', 'jsonl').split('\n').length
  t.equal(kept, before + apps.count(200) - after, 'the backup has all requests up to the upgrade')
}

void t.test('an upgrade from the last release under load, and the way back', skip, async (t) => {
  const old = treeOf(LAST_RELEASE)
  for (const engine of ENGINES) {
    const missing = engine === 'redis' && redisMissing()
    await t.test(engine, { skip: missing }, (t) => (engine === 'redis' ? fleet(t, old) : machine(t, old)))
  }
})
