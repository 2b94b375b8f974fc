/**
 * Goal: keys have a name, are shown once, can be revoked, and can be rotated without a failed request.
 * Method: the program `sluice keys` beside a running gateway on the same store, each action once, and else
 * the commands in this process.
 */
import t from 'tap'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { startGateway } from '../helpers/gateway.js'
import { sluice, sluiceHere } from '../cli/session.js'

const ACCOUNT = ['--account', 'test@example.com']

const argvOf = (action: string, more: readonly string[]): string[] => {
  return ['keys', action, '--config', gateway.configFile, ...ACCOUNT, ...more]
}

/** The command in this process, in a tenth of the time. */
function keys(action: string, ...more: string[]) {
  return sluiceHere(argvOf(action, more))
}

function keysOfProgram(action: string, ...more: string[]) {
  return sluice(argvOf(action, more))
}

async function statusWith(secret: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret}` }
  const response = await fetch(`${gateway.baseUrl}/models`, { headers })
  await response.arrayBuffer()
  return response.status
}

/** The new key's id, from the message of the command that made it. */
function idOf({ err }: { readonly err: string }): string {
  return /Created key (key_\w+)/.exec(err)?.[1] ?? ''
}

const gateway = await startGateway(t)

async function within(ms: number, done: () => Promise<boolean>): Promise<boolean> {
  const end = Date.now() + ms
  while (Date.now() < end) {
    if (await done()) return true
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return false
}

void t.test('S7: a name is needed', async (t) => {
  t.equal((await keys('create')).status, 2)
  t.not((await keys('create', '--name', ' ')).status, 0)
})

void t.test('S7: a revoked key is 401 within a second; the others keep working', async (t) => {
  const made = await keysOfProgram('create', '--name', 'old')
  const secret = made.out.trim()
  t.equal(await statusWith(secret), 200)
  t.equal((await keysOfProgram('revoke', '--key', idOf(made))).status, 0)
  t.ok(await within(1_000, async () => (await statusWith(secret)) === 401))
  t.equal(await statusWith(gateway.secret), 200)
})

void t.test('keys rotate: both keys work for the overlap, with 0 only the new one', async (t) => {
  const made = await keys('create', '--name', 'app')
  const old = made.out.trim()
  const rotated = await keysOfProgram('rotate', '--key', idOf(made), '--overlap', '3s')
  t.equal(rotated.status, 0, rotated.err)
  const next = rotated.out.trim()
  t.equal(rotated.out, `${next}\n`, 'the secret is all of standard output')
  t.equal(await statusWith(next), 200)
  t.ok(await within(5_000, async () => (await statusWith(old)) === 401))
  const last = await keys('rotate', '--key', idOf(rotated), '--overlap', '0')
  t.ok(await within(1_000, async () => (await statusWith(next)) === 401))
  t.equal(await statusWith(last.out.trim()), 200)
})

void t.test('accounts disable: its keys are 401 within a second, until enable', async (t) => {
  const switchAccount = (action: string) =>
    sluiceHere(['accounts', action, '--config', gateway.configFile, ...ACCOUNT])
  t.equal(await statusWith(gateway.secret), 200)
  t.match(await switchAccount('disable'), { status: 0, out: /disabled\n$/ })
  t.ok(await within(1_000, async () => (await statusWith(gateway.secret)) === 401))
  for (let sent = 0; sent < 60; sent += 1) {
    if ((await statusWith(gateway.secret)) !== 401) t.fail('each is 401, none is throttled')
  }
  t.match(await switchAccount('enable'), { status: 0, out: /enabled\n$/ })
  t.ok(await within(1_000, async () => (await statusWith(gateway.secret)) === 200))
})

void t.test('S7: rotation: create, switch, revoke, without a failed request', async (t) => {
  const first = await keys('create', '--name', 'v1')
  const old = first.out.trim()
  const next = (await keys('create', '--name', 'v2')).out.trim()
  t.not(old, next)
  t.equal(await statusWith(old), 200, 'both are good for a while')
  t.equal(await statusWith(next), 200)
  t.equal((await keys('revoke', '--key', idOf(first))).status, 0)
  t.ok(await within(1_000, async () => (await statusWith(old)) === 401))
  t.equal(await statusWith(next), 200)
})

// The last one: reading a file of the store in the gateway's process releases the locks of SQLite.
void t.test('S7: sk_ and letters and digits, shown once and not stored', async (t) => {
  const made = await keys('create', '--name', 'ci, of the web team')
  t.equal(made.status, 0)
  const secret = made.out.trim()
  t.match(secret, /^sk_[A-Za-z0-9]{40,}$/)
  t.equal(made.out, `${secret}\n`, 'the secret is all of standard output')
  t.notOk(made.err.includes(secret))
  for (const format of [[], ['--json']]) {
    const { out, err } = await keys('list', ...format)
    t.match(out, /ci, of the web team/)
    t.notOk((out + err).includes(secret))
  }
  t.equal(await statusWith(secret), 200, 'a running gateway takes it')
  for (const file of readdirSync(gateway.folder, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue
    const bytes = readFileSync(join(file.parentPath, file.name))
    t.notOk(bytes.includes(secret.slice(3)), `${file.name} does not hold it`)
  }
})
