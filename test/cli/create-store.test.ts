/**
 * Goal: on a new machine, each command that can be the first one to write creates the store; others say how.
 * Method: the commands in this process, each with a folder that has no store.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { configFolder, sluiceHere } from './session.js'

const ACCOUNT = 'kind: Account\nmetadata: { name: shop }\nspec: { plan: pro }\n'

const FIRST = [
  ['accounts', 'create', '--email', 'ada@example.com', '--plan', 'pro'],
  ['admin-tokens', 'create', '--name', 'ci', '--scopes', 'all'],
  ['users', 'create', '--email', 'ada@example.com'],
  ['apply', '-f', 'documents.yaml'],
]

for (const args of FIRST) {
  void t.test(`${args.slice(0, 2).join(' ')} creates the store`, async (t) => {
    const { good } = configFolder(t)
    const folder = dirname(good)
    writeFileSync(join(folder, 'documents.yaml'), ACCOUNT)
    const place = { env: { SLUICE_CONFIG: good }, cwd: folder }
    t.match(await sluiceHere(args, place), { status: 0 })
    t.ok(existsSync(join(folder, 'data', 'sluice.db')))
    t.match(await sluiceHere(['accounts', 'list'], place), { status: 0 })
  })
}

void t.test('the plan of documents for a store that does not exist yet', async (t) => {
  const { good } = configFolder(t)
  const folder = dirname(good)
  writeFileSync(join(folder, 'documents.yaml'), ACCOUNT)
  const place = { env: { SLUICE_CONFIG: good }, cwd: folder }
  t.match(await sluiceHere(['apply', '-f', 'documents.yaml', '--dry-run'], place), {
    status: 2,
    out: /\+ account shop\nPlan: 1 to create/,
  })
})

void t.test('commands that only read name those that create the store', async (t) => {
  const { good } = configFolder(t)
  for (const args of [
    ['accounts', 'list'],
    ['usage', 'summary'],
  ]) {
    const { status, err } = await sluiceHere(args, { env: { SLUICE_CONFIG: good } })
    t.equal(status, 1)
    t.match(err, /sluice\.db' does not exist: .*'sluice serve'.*'sluice accounts create'/)
  }
  t.notOk(existsSync(join(dirname(good), 'data', 'sluice.db')))
})
