/**
 * Goal: under systemd the gateway reports when it is ready, reloads and stops, and keeps its watchdog quiet;
 * the unit file that ships is valid and starts such a process.
 * Method: the real program and systemd-notify; a datagram socket of Python receives, by path and abstract.
 * Skipped without these programs. systemd-analyze checks the unit file.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { fileText, MAIN, prepare, run, startServe, until } from '../program.js'
import { ofToday } from '../../helpers/long-suite.js'

const RECEIVER = `
import json, socket, sys
name = sys.argv[1]
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind('\\0' + name[1:] if name[0] == '@' else name)
print('"bound"', flush=True)
while True:
    print(json.dumps(s.recv(65536).decode()), flush=True)
`

function lacks(...programs: readonly string[]): string | false {
  const missing = programs.filter((program) => spawnSync(program, ['--version']).error !== undefined)
  return missing.length === 0 ? false : `${missing.join(' and ')} cannot be run here`
}

const skip = lacks('python3', 'systemd-notify')
const noAnalyze = lacks('systemd-analyze')

/** A socket like that of systemd. Returns the received messages, each as a map of assignments. */
async function startReceiver(t: Test, name: string): Promise<Map<string, string>[]> {
  const child = spawn('python3', ['-c', RECEIVER, name], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  const messages: Map<string, string>[] = []
  let isBound = false
  createInterface(child.stdout).on('line', (line) => {
    const text = JSON.parse(line) as string
    if (text === 'bound') isBound = true
    // What systemd-notify itself adds to wait for systemd.
    else if (text !== 'BARRIER=1') messages.push(assignmentsIn(text))
  })
  await until(() => isBound)
  return messages
}

function assignmentsIn(text: string): Map<string, string> {
  const pairs = text.split('\n').map((line): [string, string] => {
    const at = line.indexOf('=')
    return [line.slice(0, at), line.slice(at + 1)]
  })
  return new Map(pairs)
}

for (const kind of ofToday(['a path', 'an abstract name'] as const, 2)) {
  void t.test(`systemd is notified on ${kind}`, { skip }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-notify-'))
    t.teardown(() => rmSync(folder, { recursive: true }))
    const name = kind === 'a path' ? join(folder, 'notify') : `@sluice-test-${process.pid}`
    const messages = await startReceiver(t, name)
    const env = { NOTIFY_SOCKET: name, WATCHDOG_USEC: '400000', WATCHDOG_PID: '' }
    const workers = kind === 'a path' ? 2 : 1
    const served = await startServe(t, { server: `workers: ${workers}, drain_ms: 500` }, env)
    const states = (): string[] =>
      messages.flatMap((message) =>
        ['READY', 'RELOADING', 'STOPPING'].filter((state) => message.get(state) === '1'),
      )
    await until(() => states().includes('READY'))
    const ready = messages.find((message) => message.has('READY'))
    t.equal(ready?.get('MAINPID'), String(served.program.pid))
    t.equal(ready?.get('STATUS'), 'Serving generation 1')
    await until(() => messages.filter((message) => message.get('WATCHDOG') === '1').length >= 3)
    served.program.child.kill('SIGHUP')
    await until(() => states().length === 3)
    const reloading = messages.find((message) => message.has('RELOADING'))
    const ageUsec = process.hrtime.bigint() / 1000n - BigInt(reloading?.get('MONOTONIC_USEC') ?? 0)
    t.ok(ageUsec >= 0n && ageUsec < 60_000_000n, `${ageUsec} µs on the same clock`)
    served.program.child.kill('SIGTERM')
    t.equal(await served.program.ended, 0)
    await until(() => states().length === 4)
    t.same(states(), ['READY', 'RELOADING', 'READY', 'STOPPING'])
  })
}

void t.test('the watchdog of another process is left to it', { skip }, async (t) => {
  const name = `@sluice-other-${process.pid}`
  const messages = await startReceiver(t, name)
  const env = { NOTIFY_SOCKET: name, WATCHDOG_USEC: '40000', WATCHDOG_PID: String(process.pid) }
  const served = await startServe(t, { server: 'workers: 1, drain_ms: 500' }, env)
  await until(() => messages.length > 0)
  for (let at = 0; at < 5; at += 1) await (await served.chat()).text()
  served.program.child.kill('SIGTERM')
  t.equal(await served.program.ended, 0)
  await until(() => messages.some((message) => message.has('STOPPING')))
  t.notOk(messages.some((message) => message.has('WATCHDOG')))
})

void t.test('a start that fails is not reported as ready', { skip }, async (t) => {
  const name = `@sluice-bad-${process.pid}`
  const messages = await startReceiver(t, name)
  const { emulator, file } = await prepare(t)
  writeFileSync(file, fileText(emulator, { opsPort: emulator.port }))
  const program = run(t, ['serve', '--config', file], { NOTIFY_SOCKET: name })
  t.equal(await program.ended, 1)
  t.same(messages, [])
})

void t.test('without systemd-notify the gateway serves, and logs why it cannot notify', async (t) => {
  const env = { NOTIFY_SOCKET: '@sluice-no-listener', PATH: t.testdir(), WATCHDOG_USEC: '50000' }
  const served = await startServe(t, { server: 'workers: 1, drain_ms: 500' }, env)
  await until(() => served.program.out().includes('systemd cannot be notified'))
  t.equal((await served.chat()).status, 200)
  served.program.child.kill('SIGTERM')
  t.equal(await served.program.ended, 0)
  const warnings = served.program.lines().filter(({ msg }) => msg === 'systemd cannot be notified')
  t.equal(warnings.length, 1, 'once')
})

const UNIT = 'deploy/systemd/sluice.service'

void t.test('the unit file has the settings that the gateway requires', (t) => {
  const text = readFileSync(UNIT, 'utf8')
  const settings = text.split('\n').filter((line) => /^[A-Z]\w*=/.test(line))
  for (const line of ['Type=notify', 'NotifyAccess=all', 'KillMode=mixed']) t.ok(settings.includes(line))
  t.ok(settings.includes('ExecReload=/bin/kill -HUP $MAINPID'))
  t.ok(settings.includes('NoNewPrivileges=yes') && settings.includes('ProtectSystem=strict'))
  const stop = Number(/^TimeoutStopSec=(\d+)$/m.exec(text)?.[1])
  const config = parse(readFileSync('config/gateway.yaml', 'utf8')) as {
    server?: { drain_ms?: number }
  }
  t.ok(stop * 1000 >= (config.server?.drain_ms ?? 30_000) + 6000, 'systemd waits for the drain')
  t.end()
})

void t.test('systemd-analyze accepts the unit file', { skip: noAnalyze }, (t) => {
  const text = readFileSync(UNIT, 'utf8')
    .replace('/usr/bin/node', process.execPath)
    .replace('/opt/sluice/dist/main.js', MAIN)
  const folder = t.testdir()
  mkdirSync(folder, { recursive: true })
  const unit = join(folder, 'sluice.service')
  writeFileSync(unit, text)
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' })
  t.same({ status, stderr }, { status: 0, stderr: '' })
  t.end()
})
