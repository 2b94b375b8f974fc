/**
 * Goal: what operators do with generations of a running gateway works on every worker: list, show, roll back,
 * edit with sed, swap a ConfigMap, restart with a broken file, and commands beside a gateway whose store
 * waits for a restart.
 * Method: the real program with two workers and alone, and its commands, beside one process in this process;
 * chats say in a header which generation served them. The checks of a gateway build on each other.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { sluiceHere } from '../cli/session.js'
import { ofToday } from '../helpers/long-suite.js'
import { fileText, get, prepare, run, startServe, until, type Served } from './program.js'

const TOKEN = 'tok-0123456789abcdef'
const WORKERS = { server: `workers: 2, drain_ms: 1000, admin_token: ${TOKEN}` }
const ALONE = { server: `workers: 1, drain_ms: 1000, admin_token: ${TOKEN}` }

void t.test('two workers', async (t) => {
  const served = await startServe(t, WORKERS)
  await t.test('on the ops port, reads need no token and a rollback the right one', async (t) => {
    const page = JSON.parse((await served.ops('/generations')).text) as Record<string, unknown>
    t.match(page, { generation: 1, generations: [{ generation: 1, in_force: true }] })
    t.match(JSON.parse((await served.ops('/generations/1')).text), {
      generation: 1,
      config: { server: { admin_token: /^\*\*\*/ } },
    })
    t.equal((await served.ops('/generations/9')).status, 404)
    t.equal((await served.ops('/generations/1/rollback')).status, 405)
    t.equal((await post(served, 'wrong-0123456789')).status, 401)
    t.match(await post(served, TOKEN), {
      status: 400,
      json: { error: { message: /in force already/ } },
    })
    t.match(await post(served, TOKEN, '{"reson":1}'), { status: 400 })
    t.match(await post(served, TOKEN, 'x'.repeat(20_000)), { status: 413 })
    t.notMatch(JSON.stringify(page), TOKEN)
  })
  await t.test('the command lists, shows and rolls back', (t) => {
    return commands(t, served, WORKERS, async (...args) => {
      const program = run(t, ['generations', ...args, '--config', served.file])
      return { status: await program.ended, out: program.out(), err: program.err() }
    })
  })
  await t.test('without server.admin_token a rollback is refused', async (t) => {
    served.write(fileText(served.emulator, { server: 'workers: 2' }))
    await until(() => allIn(served, '5'))
    t.match(await post(served, TOKEN), { status: 403 })
    t.notMatch(served.program.out(), TOKEN)
  })
  await t.test('a restart with a broken file serves the last good generation', async (t) => {
    served.write(`${fileText(served.emulator, WORKERS)}on_loss: reject\n`)
    await until(() => allIn(served, '6'))
    served.program.child.kill('SIGKILL')
    await served.program.ended
    served.write('upstreams: [')
    const again = served.again()
    await until(() => again.out().includes('"sluice serves"'))
    const serves = again.lines().find(({ msg }) => msg === 'sluice serves')
    const ops = (path: string) => get(`http://127.0.0.1:${Number(serves?.['ops_port'])}${path}`)
    t.match(JSON.parse((await ops('/config')).text), {
      generation: 6,
      on_loss: 'reject',
      held: 'last_good',
    })
    await until(async () => (await ops('/readyz')).status === 200)
    t.match(JSON.parse((await ops('/readyz')).text), {
      checks: { config: /^the last good generation is in force: .*gateway\.yaml:1/ },
    })
    t.match(
      again.lines().find(({ msg }) => msg === 'configuration refused; the last good generation is in force'),
      { level: 'warn', generation: 6 },
    )
  })
})

void t.test('one process', async (t) => {
  const served = await startServe(t, ALONE)
  await t.test('wrong tokens are throttled and logged, and so are failed rollbacks', (t) =>
    throttled(t, served),
  )
  await t.test('the command lists, shows and rolls back', (t) => {
    const here = (...args: string[]) => sluiceHere(['generations', ...args, '--config', served.file])
    return commands(t, served, ALONE, here)
  })
  await t.test('commands use its store while another store waits for a restart', async (t) => {
    served.write(fileText(served.emulator, { ...ALONE, port: 1, store: 'sqlite:./other/sluice.db' }))
    await until(async () => (await served.ops('/config')).text.includes('"generation":5'))
    t.match(JSON.parse((await served.ops('/config')).text), {
      waiting_for_restart: ['server.port', 'store', 'ledger.spool'],
      server: { port: 0 },
      store: /data\/sluice\.db$/,
    })
    t.match(JSON.parse((await served.ops('/readyz')).text), {
      waiting_for_restart: ['server.port', 'store', 'ledger.spool'],
    })
    const accounts = await sluiceHere(['accounts', 'list', '--config', served.file])
    t.equal(accounts.status, 0)
    t.match(accounts.out, 'test@example.com')
    t.match(accounts.err, /the file names .*other\/sluice\.db, which waits for a restart/)
    const check = await sluiceHere(['check', '--config', served.file, '--json'])
    t.equal(check.status, 0)
    t.match(JSON.parse(check.out), { needs_restart: ['server.port', 'store', 'ledger.spool'] })
  })
  await t.test('kill -9 at any moment of a reload leaves a gateway that starts', async (t) => {
    const good = fileText(served.emulator, ALONE)
    let program = served.program
    for (const round of ofToday(Array(6).keys(), 6)) {
      const text = `${good}# ${'x'.repeat(round * 50_000)}\non_loss: ${round % 2 === 0 ? 'reject' : 'report'}\n`
      // In place, without a temporary file, and truncated in every other round.
      writeFileSync(served.file, round % 2 === 0 ? text : text.slice(0, good.length / 2))
      program.child.kill('SIGHUP')
      await new Promise((resolve) => setTimeout(resolve, 40 * round))
      program.child.kill('SIGKILL')
      await program.ended
      const next = served.again()
      await until(() => {
        if (next.child.exitCode !== null) throw new Error(`round ${round}: ${next.err()}`)
        return next.out().includes('"sluice serves"')
      })
      program = next
    }
    t.pass('it started each time')
  })
})

void t.test('an edit with sed -i and a swapped ConfigMap take effect', async (t) => {
  const { emulator, folder, file } = await prepare(t, ALONE)
  rmSync(file)
  const mount = join(folder, 'mount')
  mkdirSync(mount)
  const version = (name: string, text: string): void => {
    mkdirSync(join(mount, name))
    writeFileSync(join(mount, name, 'gateway.yaml'), text)
    copyFileSync(join(folder, 'models.yaml'), join(mount, name, 'models.yaml'))
  }
  const text = fileText(emulator, { ...ALONE, store: `sqlite:${folder}/data/sluice.db` })
  version('..1', text)
  version('..2', `${text}on_loss: reject\n`)
  symlinkSync('..1', join(mount, '..data'))
  symlinkSync('..data/gateway.yaml', join(mount, 'gateway.yaml'))
  symlinkSync('..data/models.yaml', join(mount, 'models.yaml'))
  const program = run(t, ['serve', '--config', join(mount, 'gateway.yaml')])
  await until(() => program.out().includes('"sluice serves"'))
  const opsPort = Number(program.lines().find(({ msg }) => msg === 'sluice serves')?.['ops_port'])
  const config = async (): Promise<Record<string, unknown>> =>
    JSON.parse((await get(`http://127.0.0.1:${opsPort}/config`)).text) as Record<string, unknown>
  symlinkSync('..2', join(mount, '..new'))
  renameSync(join(mount, '..new'), join(mount, '..data'))
  rmSync(join(mount, '..1'), { recursive: true })
  await until(async () => (await config())['generation'] === 2)
  t.match(await config(), { on_loss: 'reject' })
  execFileSync('sed', ['-i', 's/on_loss: reject/on_loss: report/', join(mount, '..2/gateway.yaml')])
  await until(async () => (await config())['generation'] === 3)
  t.match(await config(), { on_loss: 'report', last_error: null })
})

void t.test('a key that is added to .env takes effect without a restart', async (t) => {
  const settings = { ...ALONE, key: '${SLUICE_TEST_LATE_KEY}' }
  const served = await startServe(t, settings)
  const status = async (): Promise<number> => (await chat(served)).status
  t.equal(await status(), 503)
  writeFileSync(join(dirname(served.file), '.env'), 'SLUICE_TEST_LATE_KEY=sk-late0123456789abcdef\n')
  await until(async () => (await status()) === 200)
})

type Sluice = (...args: string[]) => Promise<{ status: number | string; out: string; err: string }>

/** Makes the generations 2 to 4 of a gateway in its first one. */
async function commands(t: Test, served: Served, settings: typeof ALONE, sluice: Sluice): Promise<void> {
  served.write(`${fileText(served.emulator, settings)}on_loss: reject\n`)
  await until(() => allIn(served, '2'))
  t.match(await sluice('list'), {
    status: 0,
    out: /^2\* +\S+ +\S+ +[0-9a-f]{12} +gateway\.yaml changed\n1 +\S+ +\S+ +[0-9a-f]{12} +start$/m,
  })
  t.match(await sluice('show', '2'), { out: /on_loss: "report" → "reject"/ })
  t.match(await sluice('rollback', '1', '--reason', 'it refused too much'), {
    status: 0,
    out: /^generation 3 is in force, with the content of generation 1$/m,
  })
  await until(() => allIn(served, '3'))
  t.match(await sluice('list'), {
    out: /^3\* .*rollback to 1: it refused too much$/m,
    err: /a rollback is in force/,
  })
  t.match(JSON.parse((await served.ops('/config')).text), { generation: 3, on_loss: 'report' })
  t.match(JSON.parse((await served.ops('/readyz')).text), { ready: true, held: 'rollback' })
  t.match(await sluice('rollback', '77'), { status: 1, err: /no generation 77/ })
  served.program.child.kill('SIGHUP')
  await until(() => allIn(served, '4'))
  t.match(JSON.parse((await served.ops('/config')).text), { on_loss: 'reject', held: null })
  const metrics = (await served.ops('/metrics')).text
  t.match(metrics, /^sluice_config_generation 4$/m)
  t.match(metrics, /^sluice_config_reloads_total\{result="ok"\} 3$/m)
}

async function throttled(t: Test, served: Served): Promise<void> {
  const logged = (msg: string) => served.program.lines().filter((line) => line['msg'] === msg)
  t.equal((await post(served, TOKEN, undefined, 77)).status, 404)
  await until(() => logged('rollback failed').length === 1)
  t.match(logged('rollback failed'), [{ level: 'warn', generation: 77, reason: /no generation 77/ }])
  const statuses: number[] = []
  while (!statuses.includes(429) && statuses.length < 100) {
    statuses.push((await post(served, `wrong-${statuses.length}-0123456789`)).status)
  }
  t.same(statuses.slice(0, 10), Array<number>(10).fill(401))
  t.equal(statuses.at(-1), 429)
  const refused = await fetch(`http://127.0.0.1:${served.opsPort}/generations/1/rollback`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}` },
  })
  t.equal(refused.status, 429, 'the right token too, or guesses would not be slowed')
  t.equal(refused.headers.get('retry-after'), '1')
  t.match(await refused.json(), { error: { code: 429, kind: 'auth_throttled' } })
  await until(() => logged('rollback failed').length === statuses.length + 2)
  const wrong = logged('wrong admin token on the ops port')
  t.equal(wrong.length, statuses.filter((status) => status === 401).length)
  t.match(wrong[0], { level: 'warn', client_address: '127.0.0.1' })
  t.match(logged('rollback failed')[1], { generation: 1, client_address: '127.0.0.1' })
  t.notMatch(served.program.out(), /wrong-\d|tok-0123/)
  t.equal((await served.ops('/generations')).status, 200, 'reads need no token')
  await until(async () => (await post(served, TOKEN)).status === 400)
}

async function post(
  served: Served,
  token: string,
  body = '',
  generation = 1,
): Promise<{ status: number; json: unknown }> {
  const path = `/generations/${generation}/rollback`
  const response = await fetch(`http://127.0.0.1:${served.opsPort}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, connection: 'close' },
    body,
  })
  return { status: response.status, json: await response.json() }
}

async function chat(served: Served): Promise<Response> {
  const response = await served.chat()
  await response.text()
  return response
}

async function allIn(served: Served, generation: string): Promise<boolean> {
  for (let turn = 0; turn < 4; turn += 1) {
    const response = await chat(served)
    if (response.headers.get('x-sluice-generation') !== generation) return false
  }
  return true
}
