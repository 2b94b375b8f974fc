/**
 * Goal: commands work beside a configuration file that is not valid: with the generation in force in the
 * running gateway, and without one with the newest of the history. The spool is named by a variable.
 * Method: the built program on Redis and on SQLite, and commands in this process; the file is broken while
 * the gateway runs.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freshDatabases, redisMissing, startRedis } from '../helpers/redis.js'
import { sluiceHere } from '../cli/session.js'
import { anotherDay } from '../helpers/long-suite.js'
import { EMAIL, run, startServe, until } from './program.js'

const TOKEN = 'token-of-the-operator-0123456789'
const LEDGER = `
ledger:
  spool: \${SLUICE_SPOOL}/of-this-machine # by machine
`

async function commands(t: Test, store: string | undefined): Promise<void> {
  const env = { SLUICE_SPOOL: join(t.testdir(), 'spools') }
  const served = await startServe(
    t,
    {
      server: `workers: 2, drain_ms: 500, admin_token: ${TOKEN}`,
      more: LEDGER,
      ...(store === undefined ? {} : { store }),
    },
    env,
  )
  const { file, program } = served
  const sluice = (...args: string[]) => sluiceHere([...args, '--config', file], { env })
  served.write(`${readFileSync(file, 'utf8')}  - { prefix: o1-, upstream: openai }\n`)
  await until(async () => (await served.ops('/generations')).text.includes('"generation":2'))
  writeFileSync(file, `store: ${store ?? 'sqlite:./data/sluice.db'}\n${LEDGER}upstreams: [\n`)
  await until(async () => (await served.ops('/generations')).text.includes('"last_error":["'))

  t.match(await sluice('generations', 'list'), { status: 0, out: /^2\* .*changed$/m })
  t.match(await sluice('generations', 'show', '2'), { status: 0, out: /in force/ })
  const using = /using generation 2, which is in force in the running gateway/
  const account = ['--account', EMAIL]
  t.match(await sluice('keys', 'list', ...account), { status: 0, out: /a key/, err: using })
  const created = ['accounts', 'create', '--email', 'eva@example.com', '--plan', 'pro']
  t.match(await sluice(...created), { status: 0, err: using })
  t.match(await sluice('usage', 'summary'), { status: 0, err: using })
  t.match(await sluice('generations', 'rollback', '1', '--reason', 'test'), {
    status: 0,
    out: /generation 3 is in force/,
  })
  t.match(await sluice('restart'), { status: 0, out: /2 new workers serve/ })
  t.match(await served.chat(), { status: 200 })

  program.child.kill('SIGTERM')
  await program.ended
  const stored = /no gateway runs with this file: using generation 3 of its history/
  t.match(await sluice('keys', 'list', ...account), { status: 0, out: /a key/, err: stored })
  t.match(await sluice('accounts', 'list'), { status: 0, out: /eva@example.com/, err: stored })
  t.match(await sluice('usage', 'summary'), { status: 0, err: stored })
  t.match(await sluice('generations', 'list'), { status: 0, out: /^3 /m })
  t.match(await sluice('restart'), { status: 1, err: /No gateway runs with/ })
  const again = run(t, ['serve', '--config', file], env)
  await until(() => again.out().includes('"sluice serves"'))
}

void t.test('SQLite', { timeout: 120_000, skip: anotherDay(0, 2) }, (t) => commands(t, undefined))

const missing = anotherDay(1, 2) || redisMissing()
void t.test('Redis', missing === false ? { timeout: 120_000 } : { skip: missing }, async (t) => {
  const server = await startRedis(t)
  await commands(t, freshDatabases(server)())
})
