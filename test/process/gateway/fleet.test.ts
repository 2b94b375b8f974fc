/**
 * Goal: gateways on one Redis publish their configuration; readiness details and a metric show when they
 * disagree, and when they agree again; the record of a gateway that has ended expires. Entries, log lines and
 * rollbacks name the gateway and the hash of its configuration.
 * Method: real programs with a real Redis, with and without workers; their files are edited apart and
 * together. Commands run in this process.
 */
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { sluiceHere } from '../../cli/session.js'
import { ofToday } from '../../helpers/long-suite.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { fileText, get, run, startServe, until, type Served } from '../program.js'

t.setTimeout(180_000)

const ALONE = 'workers: 1, drain_ms: 1000'
const WORKERS = 'workers: 2, drain_ms: 1000'
const TOKEN = 'c29tZSByYW5kb20gYnl0ZXM'

void t.test('each gateway reports other configurations in the fleet', { skip: redisMissing() }, async (t) => {
  const redis = await startRedis(t)
  const [server = WORKERS] = ofToday([WORKERS, ALONE], 2)
  const settings = { server, store: `${redis.url()}?timeout_ms=2000` }
  const first = await startServe(t, settings)
  const same = fileText(first.emulator, settings)
  const second = await startAnother(t, first, same)
  for (const gateway of [first, second]) {
    await until(async () => (await members(gateway)) === 2)
    await until(async () => (await level(gateway, 'disagreement')) === 0)
    t.notMatch((await gateway.ops('/readyz')).text, 'have another configuration')
  }

  second.write(`${same}on_loss: reject\n`)
  for (const gateway of [first, second]) {
    await until(async () => (await level(gateway, 'disagreement')) === 1)
    const ready = await gateway.ops('/readyz')
    t.equal(ready.status, 200, 'the gateway still serves')
    await until(async () =>
      /1 of 2 gateways have another configuration: \S+ \([0-9a-f]{12}\)/.test(
        (await gateway.ops('/readyz')).text,
      ),
    )
  }

  first.write(`${same}on_loss: reject\n`)
  for (const gateway of [first, second]) {
    await until(async () => (await level(gateway, 'disagreement')) === 0)
  }
  second.program.child.kill('SIGTERM')
  t.equal(await second.program.ended, 0)
  await until(async () => (await members(first)) === 1)

  await t.test('the record of a killed gateway expires', async (t) => {
    const text = fileText(first.emulator, { ...settings, server: ALONE })
    const third = await startAnother(t, first, text)
    await until(async () => (await members(first)) === 2)
    third.program.child.kill('SIGKILL')
    await until(async () => (await members(first)) === 1, 40_000)
    t.pass('it is gone')
  })
})

void t.test('without Redis no fleet is reported', async (t) => {
  const served = await startServe(t, { server: ALONE })
  t.equal(await members(served), 0)
  t.match(JSON.parse((await served.ops('/readyz')).text), { checks: { fleet: 'ok' } })
})

const STORES = [
  ['SQLite', false],
  ['Redis', redisMissing()],
] as const
for (const [name, skip] of ofToday(STORES, STORES.length)) {
  void t.test(`${name}: entries, log lines and rollbacks name the gateway`, { skip }, async (t) => {
    const redis = name === 'Redis' ? { store: `${(await startRedis(t)).url()}?timeout_ms=2000` } : {}
    const server = `${WORKERS}, name: "\${GATEWAY_NAME}", admin_token: ${TOKEN}`
    const settings = { server, ...redis }
    const first = await startServe(t, settings, { GATEWAY_NAME: 'gateway-a' })
    await first.chat()
    first.write(
      `${fileText(first.emulator, { ...settings, opsPort: first.opsPort, port: first.port })}on_loss: reject\n`,
    )
    await until(() => first.program.lines().some(({ msg }) => msg === 'configuration in force'))
    await first.chat()
    if (name === 'Redis') {
      const second = await startAnother(t, first, fileText(first.emulator, settings), {
        GATEWAY_NAME: 'gateway-b',
      })
      await until(async () => (await first.ops('/readyz')).text.includes('gateway-b ('))
      await until(async () => (await second.ops('/readyz')).text.includes('gateway-a ('))
    }
    const listed = await command(first, 'generations', 'list')
    const hashes = new Map(
      [...listed.out.matchAll(/^(\d+)\*? .* ([0-9a-f]{12})\b/gm)].map(([, number, hash]) => [
        Number(number),
        hash,
      ]),
    )
    t.equal(new Set(hashes.values()).size, 2, listed.out)

    const entries = await command(first, 'usage', 'export', '--format', 'jsonl')
    const rows = entries.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
    const lines = first.program.lines().filter(({ msg }) => msg === 'exchange')
    for (const each of [...rows, ...lines]) {
      t.match(each, {
        gateway: 'gateway-a',
        generation_hash: hashes.get(Number(each['generation'])),
      })
    }
    t.equal(rows.length, 2)
    const inForce = first.program.lines().find(({ msg }) => msg === 'configuration in force')
    t.match(inForce, { gateway: 'gateway-a', generation: 2, generation_hash: hashes.get(2) })

    const { status, err } = await command(first, 'generations', 'rollback', '1')
    t.equal(status, 0, err)
    t.match(err, /only the gateway 'gateway-a' has rolled back/)
    if (name === 'Redis') t.match(err, /other gateways of the store keep their configuration/)
    const reply = await fetch(`http://127.0.0.1:${first.opsPort}/generations/2/rollback`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}` },
    })
    t.match(await reply.json(), {
      scope: 'gateway',
      gateway: 'gateway-a',
      message: /^only the gateway/,
    })
  })
}

type Line = Record<string, unknown>

function command({ file }: Served, ...args: string[]) {
  return sluiceHere([...args, '--config', file], { env: { GATEWAY_NAME: 'cli' } })
}

type Gateway = Pick<Served, 'program' | 'write' | 'ops'>

/** A gateway in a separate folder with the emulator of the first one. */
async function startAnother(
  t: Test,
  first: Served,
  text: string,
  env: NodeJS.ProcessEnv = {},
): Promise<Gateway> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-fleet-'))
  const file = join(folder, 'gateway.yaml')
  copyFileSync(join(dirname(first.file), 'models.yaml'), join(folder, 'models.yaml'))
  writeFileSync(file, text)
  const program = run(t, ['serve', '--config', file], env)
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  await until(() => program.out().includes('"sluice serves"'))
  const serves = program.lines().find(({ msg }) => msg === 'sluice serves')
  return {
    program,
    write: (next) => writeFileSync(file, next),
    ops: (path) => get(`http://127.0.0.1:${Number(serves?.['ops_port'])}${path}`),
  }
}

function members(gateway: Gateway): Promise<number> {
  return level(gateway, 'members')
}

async function level(gateway: Gateway, name: string): Promise<number> {
  const { text } = await gateway.ops('/metrics')
  return Number(new RegExp(`^sluice_config_fleet_${name} (\\d+)$`, 'm').exec(text)?.[1])
}
