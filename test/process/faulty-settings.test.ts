/**
 * Goal: faults around the configuration (missing, rotated or guessable secrets, thousands of signals) are
 * reported and leave the gateway running.
 * Method: the real program; files and variables that appear, change and disappear while requests run. A day
 * has a third of the refused settings.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ALONE, CANARY, fileText, prepare, run, startServe, until, type Served } from './program.js'
import { ofToday } from '../helpers/long-suite.js'
import { tally, Traffic } from './traffic.js'

async function statusOf(served: Served): Promise<number> {
  const response = await served.chat()
  await response.text()
  return response.status
}

/** Starts a gateway whose file has this section in place of its own, and waits until it exits with 1. */
async function startWith(t: Test, setting: string): Promise<ReturnType<typeof run>> {
  const { emulator, file } = await prepare(t)
  const section = `${setting.split(':')[0] ?? ''}:`
  const others = fileText(emulator).split('\n')
  const text = others.filter((line) => !line.startsWith(section)).join('\n')
  writeFileSync(file, `${text}${setting}\n`)
  const program = run(t, ['serve', '--config', file])
  t.equal(await program.ended, 1, setting)
  return program
}

void t.test('I-137: a start without a variable or a secret file is refused', async (t) => {
  const cases: Record<string, RegExp> = {
    'store: sqlite:${SLUICE_TEST_UNSET}/a.db': /variable SLUICE_TEST_UNSET is not set/,
    'server: { port: "${SLUICE_TEST_UNSET}" }': /variable SLUICE_TEST_UNSET is not set/,
    'escrow: { key: "${file:/nowhere/secret}" }': /the file "\/nowhere\/secret" does not exist/,
  }
  for (const [setting, expected] of ofToday(Object.entries(cases), 3)) {
    const program = await startWith(t, setting)
    t.match(program.err(), expected)
    t.notMatch(program.out(), 'sluice serves')
  }
})

void t.test('a store whose folder cannot be created ends the start with an error', async (t) => {
  for (const workers of ofToday([1, 2], 2)) {
    // /proc answers ENOENT for a new folder, after which Node's recursive mkdir does not return.
    const settings = { store: 'sqlite:/proc/nope/deep/s.db', server: `workers: ${workers}` }
    const { file } = await prepare(t, settings)
    const program = run(t, ['serve', '--config', file])
    t.equal(await program.ended, 1, `${workers} workers`)
    t.match(program.err(), "opening '/proc/nope/deep/s.db' failed")
    t.match(program.err(), 'cannot create the folder \'/proc/nope\' (ENOENT); set "store" to a file')
    t.notMatch(program.out(), 'sluice serves')
  }
})

void t.test('I-137: a changed secret file is used, and a missing one keeps the old secret', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-secret-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const secret = join(folder, 'key')
  writeFileSync(secret, 'sk-invalid-0123456789abcdef\n')
  const served = await startServe(t, { ...ALONE, key: `"\${file:${secret}}"` })
  t.equal(await statusOf(served), 502, 'the emulator refuses this key')
  writeFileSync(secret, `${CANARY}\n`)
  await until(async () => (await statusOf(served)) === 200)
  rmSync(secret)
  const config = async (): Promise<string> => (await served.ops('/config')).text
  await until(async () => (await config()).includes('does not exist'))
  t.match(JSON.parse(await config()), { generation: 2 })
  t.equal(await statusOf(served), 200, 'the key that was read before is used')
})

void t.test('I-139: secrets of examples and short ones are refused', async (t) => {
  const long = (text: string): string => text.repeat(40).slice(0, 40)
  const cases: Record<string, RegExp> = {
    'server: { admin_token: short }': /server\.admin_token: must be 12 to 4,096/,
    'server: { admin_token: change-me-please-now }': /server\.admin_token: is easy to guess/,
    'server: { admin_token: your-admin-token }': /server\.admin_token: is easy to guess/,
    'server: { admin_token: aaaaaaaaaaaaaaaa }': /server\.admin_token: is easy to guess/,
    'escrow: { key: short }': /escrow\.key: must be 32 to 4,096/,
    [`escrow: { key: ${long('a')} }`]: /escrow\.key: is easy to guess/,
    [`escrow: { key: ${long('change-me-')} }`]: /escrow\.key: is easy to guess/,
  }
  for (const [setting, expected] of ofToday(Object.entries(cases), 3)) {
    const program = await startWith(t, setting)
    t.match(program.err(), expected)
  }
})

void t.test('I-141: a thousand SIGHUPs in a second fail no request', async (t) => {
  const served = await startServe(t)
  const { port, secret } = served
  const load = { port, secret, perSecond: 50, streams: 20, words: () => 8, paceMs: 100 }
  const traffic = new Traffic(load)
  t.teardown(() => traffic.stop())
  await until(() => traffic.open > 15)
  served.write(`${fileText(served.emulator)}on_loss: reject\n`)
  for (let sent = 0; sent < 1000; sent += 1) {
    served.program.child.kill('SIGHUP')
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  const looks = (): unknown[] => served.program.lines().filter(({ msg }) => msg === 'configuration checked')
  await until(() => looks().length > 0)
  await until(async () => (await served.ops('/metrics')).text.includes('config_generation 2\n'))
  await traffic.stop()
  t.same(Object.keys(tally(traffic.requests)), ['200 complete'])
  t.same(Object.keys(tally(traffic.streams)), ['200 complete'])
  const metrics = (await served.ops('/metrics')).text
  t.match(metrics, 'sluice_config_reloads_total{result="ok"} 1\n', 'one change creates one generation')
  t.equal((await served.ops('/readyz')).status, 200)
})
