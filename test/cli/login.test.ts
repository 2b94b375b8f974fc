/**
 * Goal: `sluice login` waits until its user approves, `sluice token` prints a valid token and renews it, also
 * when many processes need it at once, and `sluice logout` ends the sign-in.
 * Method: the commands in this process with an empty home, beside a gateway with a real identity provider.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runCommand } from '../../src/cli/command.js'
import { loginCommand } from '../../src/cli/login/login.js'
import type { Terminal } from '../../src/cli/with-store.js'
import { request, startLogin, untilStatus } from '../control/login/login-stage.js'
import { sluiceHere } from './session.js'

function newHome(t: Test): { readonly file: string } {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-config-'))
  const former = process.env['XDG_CONFIG_HOME']
  process.env['XDG_CONFIG_HOME'] = folder
  t.teardown(() => {
    if (former === undefined) delete process.env['XDG_CONFIG_HOME']
    else process.env['XDG_CONFIG_HOME'] = former
    rmSync(folder, { recursive: true, force: true })
  })
  return { file: join(folder, 'sluice', 'login.json') }
}

/** A terminal that records what is printed. */
function recorder(): Terminal & { readonly lines: string[] } {
  const lines: string[] = []
  const print = (line: string): void => void lines.push(line)
  return {
    ...{ lines, out: print, err: print },
    ready: () => Promise.resolve(),
    input: () => Promise.reject(new Error('no input')),
  }
}

void t.test('a person signs in, gets tokens and signs out', async (t) => {
  const { file } = newHome(t)
  const stage = await startLogin(t, {}, { login: 'token_seconds: 2' })
  const { origin } = stage
  await stage.account('ada@example.com')
  const before = await sluiceHere(['token', origin])
  t.same([before.status, before.out], [1, ''])
  t.match(before.err, `run sluice login ${origin}`)

  const terminal = recorder()
  const signingIn = runCommand(loginCommand(terminal), [origin, '--no-browser', '--account', 'ada'])
  await untilStatus(1, () => Promise.resolve(terminal.lines.length > 1 ? 1 : 0))
  const page = new URL(terminal.lines[0]?.replace('Open ', '') ?? '')
  t.equal(page.pathname, '/auth/device')
  t.equal(page.searchParams.get('account'), 'ada')
  const code = page.searchParams.get('user_code') ?? ''
  t.match(terminal.lines[1], code)
  const browser = await stage.person('ada@example.com')
  t.match((await browser.get(`/device/${code}`)).json, { program: 'sluice' })
  t.equal((await browser.ask('POST', `/device/${code}`, { body: { approve: true } })).status, 200)
  await signingIn
  process.exitCode = 0
  t.match(terminal.lines[2], `Signed in to ${origin} as ada@example.com`)
  t.equal(statSync(file).mode & 0o777, 0o600)

  const first = await sluiceHere(['token'])
  t.equal(first.status, 0)
  t.match(first.out, /^slt_[0-9A-Za-z]{43}\n$/, 'prints the token and nothing else')
  t.equal(await request(origin, first.out.trim()), 200)
  const whoami = await sluiceHere(['whoami', origin])
  t.equal(whoami.status, 0, whoami.err)
  t.match(whoami.out, /^ada@example\.com, account ada\n/)
  t.match(whoami.out, / cost +unpriced\ntoday +1 +0 .* 0\n/)
  const shown = await sluiceHere(['whoami', '--json'])
  t.match(JSON.parse(shown.out), {
    email: 'ada@example.com',
    month: { requests: 1, unpriced_requests: 0 },
    limits: [],
  })
  await new Promise((resolve) => setTimeout(resolve, 2_100))
  t.equal(await request(origin, first.out.trim()), 401, 'it expires')
  const { validToken } = await import('../../src/cli/login/valid-token.js')
  const renewed = new Set(await Promise.all(Array.from({ length: 8 }, () => validToken(origin))))
  t.equal(renewed.size, 1, 'of many that need a token, one renews it')
  const [token = ''] = renewed
  t.equal(await request(origin, token), 200)
  t.notOk(existsSync(`${file}.lock`))

  t.equal((await sluiceHere(['logout', origin])).status, 0)
  t.notMatch(readFileSync(file, 'utf8'), /slt_|slr_/)
  t.equal(await request(origin, token), 401, 'the gateway has ended it')
  t.equal((await sluiceHere(['token', origin])).status, 1)
})

void t.test('a sign-in that has ended at the gateway', async (t) => {
  const { file } = newHome(t)
  const stage = await startLogin(t)
  const { origin, post } = stage
  await stage.account('ada@example.com')
  const { access, refresh } = await stage.program(await stage.person('ada@example.com'))
  const { writeLogin, withLock } = await import('../../src/cli/login/login-file.js')
  const times = { expiresAtMs: Date.now() + 60_000, renewAtMs: 0 }
  const entry = { email: 'ada@example.com', accessToken: access, refreshToken: refresh, ...times }
  await withLock(() => Promise.resolve(writeLogin(origin, entry)))
  await post('/auth/device/revoke', { token: refresh })
  const { status, out, err } = await sluiceHere(['token', origin])
  t.same([status, out], [1, ''])
  t.match(err, 'has ended: run sluice login')
  t.notMatch(readFileSync(file, 'utf8'), /slt_/)
  t.equal((await sluiceHere(['token', 'http://llm.example.com'])).status, 2, 'no tokens over plain HTTP')
})
