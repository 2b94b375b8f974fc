/**
 * Goal: `sluice apply` makes what its documents describe, once, and names the place of a mistake in them.
 * Method: the command on both stores and against a gateway's admin API, in a temporary folder.
 */
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { command } from '../../../src/cli/apply/apply.js'
import { command as exportCommand } from '../../../src/cli/export.js'
import { unavailable } from '../../../src/store/store-errors.js'
import { withStore, type OpenStore } from '../../../src/cli/with-store.js'
import { isObject, objectOf } from '../../../src/base/json.js'
import type { AccountChange } from '../../../src/store/account-changes.js'
import { TurnWatch } from '../../hostile/turn-watch.js'
import { argvOf, exitStatus, GATEWAY, runOn } from '../../cli/session.js'
import { onBothStores, startAdmin, type AdminStage } from './admin-stage.js'
import { IS_LONG } from '../../helpers/long-suite.js'
import { listen } from '../../helpers/listen.js'

t.setTimeout(IS_LONG ? 300_000 : 120_000)

interface Ran {
  readonly status: number
  readonly out: string
  readonly err: string
}

type ApplyValues = Readonly<Record<string, string | boolean | string[]>>

type Run = (values: ApplyValues, input?: string) => Promise<Ran>

/** Runs the command; `values` name the target. */
async function ran(
  values: ApplyValues,
  input: string,
  token: string,
  open: OpenStore = withStore,
): Promise<Ran> {
  const out: string[] = []
  const err: string[] = []
  const terminal = {
    out: (line: string) => void out.push(line),
    err: (line: string) => void err.push(line),
    ready: () => Promise.resolve(),
    input: () => Promise.resolve(input),
  }
  process.env['SLUICE_ADMIN_TOKEN'] = token
  const status = await exitStatus(command(open, terminal), argvOf(values))
  return { status, out: out.join('\n'), err: err.join('\n') }
}

const DOCUMENTS = `
apiVersion: sluice/v1
kind: Account
metadata: { name: acme }
---
kind: Account
metadata: { name: research, labels: { cost-center: '4711' } }
spec: { display_name: Research, plan: pro, parent: acme, limits: { usd_per_day: 50 } }
---
kind: Key
metadata: { name: ci, account: research, labels: { app: ci } }
spec: { models: [gpt-*], limits: { requests_per_minute: 300 }, secret_file: secrets/ci }
---
kind: Member
metadata: { name: ada@example.com, account: research }
spec: { role: owner }
`

/** The status of a chat with the key, and why it is refused. */
async function chatWith({ gateway }: AdminStage, secret: string): Promise<[number, unknown]> {
  const messages = [{ role: 'user', content: 'Name a colour.' }]
  const headers = { authorization: `Bearer ${secret}` }
  const response = await gateway.chat({ model: 'gpt-5.4-mini', messages }, { headers })
  return [response.status, objectOf(await response.json())['error']]
}

const WORKS: [number, unknown] = [200, undefined]

async function lifecycle(t: Test, stage: AdminStage, target: ApplyValues): Promise<void> {
  const folder = join(stage.gateway.folder, target.server === undefined ? 'local' : 'server')
  mkdirSync(join(folder, 'sub'), { recursive: true })
  const file = join(folder, 'sub', 'all.yaml')
  writeFileSync(file, DOCUMENTS)
  const run: Run = (values, input = '') => ran({ ...target, ...values }, input, stage.token)
  const dry = await run({ file: [folder], 'dry-run': true })
  t.equal(dry.status, 2, dry.err)
  t.equal(
    dry.out,
    [
      '+ account acme',
      '+ account research',
      '+ member ada@example.com of research',
      '+ key ci of research',
      'Plan: 4 to create, 0 to change, 0 to remove, 0 unchanged.',
    ].join('\n'),
  )
  t.equal(await stage.store.accountByName('acme'), null, 'a dry run writes nothing')
  const made = await run({ file: [folder] })
  t.equal(made.status, 0, made.err)
  t.match(made.out, /\nApplied: 4 created, 0 changed, 0 removed, 0 unchanged\.$/)
  const secretFile = join(folder, 'sub', 'secrets', 'ci')
  t.equal(statSync(secretFile).mode & 0o777, 0o600)
  const secret = readFileSync(secretFile, 'utf8')
  t.notMatch(made.out + made.err, secret)
  t.same(await chatWith(stage, secret), WORKS)
  const again = await run({ file: [folder] })
  t.equal(
    again.out,
    'Plan: 0 to create, 0 to change, 0 to remove, 4 unchanged.\n' +
      'Applied: 0 created, 0 changed, 0 removed, 4 unchanged.',
  )
  t.equal((await run({ file: [folder], 'dry-run': true })).status, 0)
  t.equal(readFileSync(secretFile, 'utf8'), secret, 'the secret stays')
  const labels = (await stage.ask('GET', '/accounts/research')).json['labels']
  t.same(labels, { 'cost-center': '4711', 'managed-by': 'apply' })

  writeFileSync(
    file,
    DOCUMENTS.replace('usd_per_day: 50', 'usd_per_day: 80').split('---\nkind: Key')[0] ?? '',
  )
  t.match(await run({ file: [folder] }), {
    status: 0,
    out: /^~ account research \(limits\.usd_per_day: 50 → 80\)\nPlan: 0 to create, 1 to change/,
  })
  const json = await run({ file: [folder], prune: true, 'dry-run': true, json: true })
  t.equal(json.status, 2)
  t.match(JSON.parse(json.out), {
    ...{ create: [], change: [], unchanged: 2, applied: false, errors: [] },
    remove: [
      { kind: 'Member', name: 'ada@example.com' },
      { kind: 'Key', name: 'ci', account: 'research' },
    ],
  })
  await t.rejects(run({ file: [folder], prune: true }), /--prune without a terminal needs --yes/)
  const pruned = await run({ file: [folder], prune: true, yes: true })
  t.match(pruned.out, /- member ada@example.com of research\n- key ci of research\n/)
  t.match(pruned.out, /Applied: 0 created, 0 changed, 2 removed, 2 unchanged\./)
  t.match(await run({ file: [folder], prune: true, 'dry-run': true }), { status: 0 })
  const other = await run(
    { file: ['-'], prune: true, yes: true, 'managed-by': 'other' },
    'kind: Account\nmetadata: { name: solo }\n',
  )
  t.match(other.out, /Applied: 1 created, 0 changed, 0 removed, 0 unchanged/)
  const exported = 'kind: Account\nmetadata: { name: moved, labels: { managed-by: elsewhere } }\n'
  t.match((await run({ file: ['-'] }, exported)).out, /Applied: 1 created/)
  const kept = await run({ file: ['-'] }, exported)
  t.match(kept.out, /Applied: 0 created, 0 changed, 0 removed, 1 unchanged/)

  const manifest = `kind: Key\nmetadata: { name: pod, account: acme }\nspec: { kubernetes_secret: { name: sluice, namespace: apps, key: token } }\n`
  const pod = await run({ file: ['-'] }, manifest)
  t.equal(pod.status, 0, pod.err)
  t.match(pod.out, /^apiVersion: v1\nkind: Secret\nmetadata:\n {2}name: sluice\n {2}namespace: apps\n/)
  const [, podSecret = ''] = /token: (sk_\w+)$/m.exec(pod.out) ?? []
  t.same(await chatWith(stage, podSecret), WORKS)
  t.match(pod.err, /^\+ key pod of acme\nPlan: 1 to create/)
}

onBothStores(t, 'with the store', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  await lifecycle(t, stage, { config: stage.gateway.configFile })
})

onBothStores(t, 'with the admin API', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  await lifecycle(t, stage, { server: stage.gateway.origin })
})

const ONE_KEY = `
kind: Account
metadata: { name: acme }
---
kind: Key
metadata: { name: ci, account: acme }
spec: { secret_file: secrets/ci }
`

/** Opens the store with work before and after the transaction that applies the plan. */
function around({
  before = () => Promise.resolve(),
  after = () => undefined,
}: {
  readonly before?: () => Promise<void>
  readonly after?: () => void
}): OpenStore {
  return (config, work, options) => {
    return withStore(
      config,
      (session) => {
        let count = 0
        const { store } = session
        const transact = async <Reason>(change: AccountChange<Reason>) => {
          count += 1
          // The first one makes the plan.
          if (count === 2) await before()
          const result = await store.transact(change)
          if (count === 2) after()
          return result
        }
        return work({ ...session, store: { ...store, transact } })
      },
      options,
    )
  }
}

onBothStores(t, 'two runs with the same documents keep the secret of the key', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  const file = join(stage.gateway.folder, 'one.yaml')
  writeFileSync(file, ONE_KEY)
  const values = { file: [file], config: stage.gateway.configFile }
  const secrets = join(stage.gateway.folder, 'secrets')
  const firsts: Ran[] = []
  const open = around({ before: async () => void firsts.push(await ran(values, '', '')) })
  const second = await ran(values, '', '', open)
  t.match(firsts, [{ status: 0, out: /Applied: 2 created/ }])
  t.match(second, { status: 0, out: /Plan: 2 to create.*\nApplied: 0 created, 0 changed, 0 removed, 2/ })
  t.strictSame(readdirSync(secrets), ['ci'], 'no other file stays')
  t.same(await chatWith(stage, readFileSync(join(secrets, 'ci'), 'utf8')), WORKS)
})

void t.test('the secret of a key stays if its file cannot get its place', async (t) => {
  const stage = await startAdmin(t)
  const file = join(stage.gateway.folder, 'one.yaml')
  writeFileSync(file, ONE_KEY)
  const values = { file: [file], config: stage.gateway.configFile }
  const path = join(stage.gateway.folder, 'secrets', 'ci')
  mkdirSync(path, { recursive: true })
  const refused = await ran(values, '', '')
  t.match(refused, { status: 1, err: /one\.yaml:7:22: is a folder: name a file$/ })
  t.equal(await stage.store.accountByName('acme'), null, 'nothing is applied')
  t.strictSame(readdirSync(join(path, '..')), ['ci'])

  writeFileSync(file, ONE_KEY.replace('secrets/ci', 'later/ci'))
  const place = join(stage.gateway.folder, 'later', 'ci')
  const made = await ran(
    { ...values, json: true },
    '',
    '',
    around({
      after: () => {
        mkdirSync(place)
      },
    }),
  )
  t.equal(made.status, 1)
  const [, kept = ''] =
    /:7:22: the file .* the secret of the new key ci of acme is in (.*)$/.exec(made.err) ?? []
  t.equal(statSync(kept).mode & 0o777, 0o600)
  t.same(await chatWith(stage, readFileSync(kept, 'utf8')), WORKS)
  t.match(JSON.parse(made.out), { create: [{}, {}], applied: true, errors: [{ file, line: 7, column: 22 }] })
  t.match(await ran(values, '', ''), { status: 0, out: /Applied: 0 created/ })
  t.same(await chatWith(stage, readFileSync(kept, 'utf8')), WORKS, 'another run leaves it there')
})

void t.test('the secret of a key stays if the server does not say whether it made the key', async (t) => {
  const stage = await startAdmin(t)
  // Passes requests on, and ends the connection instead of the reply of an apply.
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = Buffer.concat(chunks).toString()
      const reply = await stage.ask('POST', '/apply', { body })
      if (body.includes('"dry_run":true')) response.end(reply.text)
      else response.destroy()
    })()
  })
  const port = await listen(t, server)
  const file = join(stage.gateway.folder, 'one.yaml')
  writeFileSync(file, ONE_KEY)
  const { status, err } = await ran({ file: [file], server: `http://127.0.0.1:${port}` }, '', stage.token)
  t.equal(status, 1)
  const [, kept = ''] =
    /^sluice: if key ci of acme was made, its secret is in (.*)\n.*does not answer/.exec(err) ?? []
  t.same(await chatWith(stage, readFileSync(kept, 'utf8')), WORKS)
})

void t.test('the secret of a key stays if the store does not say whether it made the key', async (t) => {
  const stage = await startAdmin(t)
  const file = join(stage.gateway.folder, 'one.yaml')
  writeFileSync(file, ONE_KEY)
  const values = { file: [file], config: stage.gateway.configFile }
  const after = (): never => {
    throw unavailable('writing', new Error('no reply'))
  }
  const { status, out, err } = await ran(values, '', '', around({ after }))
  t.equal(status, 1)
  t.match(out, /Applied: 0 created/)
  const [, kept = ''] =
    /^sluice: if key ci of acme was made, its secret is in (.*)\nFailed: account acme: /.exec(err) ?? []
  t.same(await chatWith(stage, readFileSync(kept, 'utf8')), WORKS)
})

void t.test('no secret stays after a refusal', async (t) => {
  const stage = await startAdmin(t)
  const folder = join(stage.gateway.folder, 'refused')
  mkdirSync(folder)
  const file = join(folder, 'keys.yaml')
  const keys = Array.from({ length: 7 }, (_, at) => {
    return `---\nkind: Key\nmetadata: { name: k${at}, account: full }\nspec: { secret_file: k${at} }\n`
  })
  writeFileSync(file, `kind: Account\nmetadata: { name: full }\nspec: { plan: starter }\n${keys.join('')}`)
  const token = await stage.makeToken(['accounts:write'])
  for (const [target, reason] of [
    [{ config: stage.gateway.configFile }, /Failed: account full: .*allows no more keys/],
    [{ server: stage.gateway.origin }, /Failed: account full: .*allows no more keys/],
  ] as const) {
    const { status, err } = await ran({ file: [file], ...target }, '', stage.token)
    t.equal(status, 1)
    t.match(err, reason)
    t.strictSame(readdirSync(folder), ['keys.yaml'])
  }
  // The plan is allowed, and the apply refused.
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = Buffer.concat(chunks).toString()
      const isPlan = body.includes('"dry_run":true')
      const reply = await stage.ask('POST', '/apply', { body, ...(isPlan ? {} : { token }) })
      response.writeHead(reply.status).end(reply.text)
    })()
  })
  const port = await listen(t, server)
  const refused = await ran({ file: [file], server: `http://127.0.0.1:${port}` }, '', stage.token)
  t.match(refused, { status: 1, err: /lacks the scope keys:write/ })
  t.strictSame(readdirSync(folder), ['keys.yaml'])
})

void t.test('a secret is written to new files in the folder of the documents alone', async (t) => {
  const stage = await startAdmin(t)
  const folder = join(stage.gateway.folder, 'platform')
  const outside = join(stage.gateway.folder, 'outside')
  mkdirSync(join(folder, 'teams'), { recursive: true })
  mkdirSync(outside)
  symlinkSync(outside, join(folder, 'link'))
  symlinkSync(join(outside, 'none'), join(folder, 'dangling'))
  writeFileSync(join(folder, 'notes.txt'), 'kept')
  writeFileSync(join(folder, 'empty'), '')
  const file = join(folder, 'teams', 'key.yaml')
  const apply = async (path: string, ...places: string[]) => {
    writeFileSync(file, ONE_KEY.replace('secrets/ci', path))
    const values = { file: places.length === 0 ? [folder] : places, config: stage.gateway.configFile }
    return ran(values, '', '')
  }
  for (const path of [
    '../../outside/ci',
    join(outside, 'ci'),
    '../link/ci',
    '../link/new/ci',
    '..',
    '../..',
  ]) {
    t.match(await apply(path), { status: 1, err: /:7:22: must be in the folder of the documents/ }, path)
  }
  t.match(await apply('../up', file), { status: 1, err: /must be in the folder of the documents/ })
  for (const path of ['../notes.txt', '../empty', '../dangling', 'key.yaml']) {
    const { status, err } = await apply(path)
    t.equal(status, 1)
    t.match(err, /:7:22: is an existing file without the secret of a key/, path)
  }
  t.equal(readFileSync(join(folder, 'notes.txt'), 'utf8'), 'kept')
  t.strictSame(readdirSync(outside), [])
  t.equal(await stage.store.accountByName('acme'), null, 'nothing is applied')
  t.match(await apply('../secrets/ci'), { status: 0 })
  // A file of an earlier run is replaced with the secret of a new key.
  const secret = readFileSync(join(folder, 'secrets', 'ci'), 'utf8')
  const gone = await stage.ask('DELETE', '/accounts/acme/keys/ci')
  t.equal(gone.status, 200)
  t.match(await apply('../secrets/ci'), { status: 0, out: /Applied: 1 created/ })
  t.not(readFileSync(join(folder, 'secrets', 'ci'), 'utf8'), secret)
})

void t.test('wrong documents', async (t) => {
  const stage = await startAdmin(t)
  const file = join(stage.gateway.folder, 'wrong.yaml')
  const targets = [{ config: stage.gateway.configFile }, { server: stage.gateway.origin }]
  for (const target of targets) {
    for (const [text, ...errors] of WRONG) {
      writeFileSync(file, text)
      const { status, out, err } = await ran({ ...target, file: [file] }, '', stage.token)
      t.equal(status, 1)
      t.equal(out, '')
      const lines = err.split('\n').map((line) => line.replace(`${file}:`, ''))
      t.equal(lines.length, errors.length, err)
      errors.forEach((error, at) => t.match(lines[at], error))
    }
  }
  const folder = join(stage.gateway.folder, 'wrong')
  mkdirSync(folder)
  writeFileSync(join(folder, '1.yaml'), 'kind: Account\nmetadata: { name: a\n')
  writeFileSync(join(folder, '2.yaml'), 'kind: Account\nmetadata: { name: a }\nspec: { plam: a }\n')
  const both = await ran({ file: [folder], config: stage.gateway.configFile }, '', '')
  t.match(both.err, /1\.yaml:\d+:1: is not valid YAML.*\n.*2\.yaml:3:9: unknown field "plam"/)
  const missing = await ran({ file: ['/none.yaml'], config: stage.gateway.configFile }, '', '')
  t.match(missing, { status: 1, err: '/none.yaml:1:1: cannot be read (ENOENT)' })
  await t.rejects(ran({}, '', ''), /needs -f/)
  const away = { file: [file], server: 'http://127.0.0.1:1', token: 'sat_x' }
  writeFileSync(file, 'kind: Account\nmetadata: { name: a }\n')
  t.match(await ran(away, '', ''), { status: 1, err: /does not answer: bad port/ })
  const unknown = { file: [file], server: stage.gateway.origin, token: 'sat_x' }
  t.match(await ran(unknown, '', ''), {
    status: 1,
    err: /the token is unknown, expired or revoked/,
  })
})

/** A text and the errors that it has, in order. */
const WRONG: readonly (readonly [string, ...RegExp[]])[] = [
  ['kind: Account\nmetadata: { name: a }\nspec: { plam: pro }\n', /^3:9: unknown field "plam": .*"plan"/],
  [
    'kind: Account\nmetadata: { name: a }\nspec: { plan: gold, limits: { usd_per_dya: 5 } }\n',
    /^3:15: .*plan/,
    /^3:31: unknown field "limits.usd_per_dya": use "usd_per_day"/,
  ],
  ['kind: Acount\nmetadata: { name: a }\n', /^1:7: must be one of Account/],
  ['apiVersion: v2\nkind: Account\nmetadata: { name: a }\n', /^1:13: must be sluice\/v1/],
  [
    'kind: Account\nmetadata: { name: A, labels: { app: 7 } }\nspec:\n  limits: { usd_per_day: -1 }\n',
    /^2:19: .*is no name of an account: Use 1 to 63/,
    /^2:37: /,
    /^4:26: /,
  ],
  [
    'kind: Key\nmetadata: { name: k, account: none }\nspec: { secret_file: x }\n',
    /^2:31: there is no account "none"/,
  ],
  ['kind: Account\nmetadata: { name: a }\nspec: { parent: b }\n', /^3:17: there is no account "b"/],
  [
    'kind: Account\nmetadata: { name: a }\nspec: { parent: b }\n---\nkind: Account\nmetadata: { name: b }\nspec: { parent: a }\n',
    /^3:17: .*loop/,
    /^7:17: .*loop/,
  ],
  [
    'kind: Account\nmetadata: { name: a }\n---\nkind: Account\nmetadata: { name: a }\n',
    /^5:19: account a .*twice/,
  ],
  [
    'kind: Account\nmetadata: { name: a }\n---\nkind: Key\nmetadata: { name: k, account: a }\n',
    /^5:19: key k of a is new and needs secret_file/,
  ],
  [
    'kind: Member\nmetadata: { name: x, account: test }\nspec: { role: boss }\n',
    /^2:19: .*e-mail/,
    /^3:15: /,
  ],
  ['kind: Account\nmetadata: { name: a\n', /^2:|^3:/],
  [
    'kind: Key\nmetadata: { name: k, account: test }\nspec: { secret_file: a, secret_sha256: b }\n',
    /^3:25: a key has one of/,
    /^3:40: /,
  ],
  [
    'kind: Key\nmetadata: { name: k, account: test }\nspec: { secret_file: x/../a }\n---\n' +
      'kind: Key\nmetadata: { name: l, account: test }\nspec: { secret_file: a }\n---\n' +
      'kind: Account\nmetadata: { name: a }\nspec: { parent: none }\n',
    /^7:22: is also the secret_file of an earlier key/,
    /^11:17: there is no account "none"/,
  ],
  [
    // Each error of all documents has a line; those of references, too.
    'kind: Account\nmetadata: { name: bad }\nspec: { plam: pro }\n---\n' +
      'kind: Account\nmetadata: { name: below }\nspec: { parent: bad }\n---\n' +
      'kind: Account\nmetadata: { name: a }\nspec: { parent: none }\n---\n' +
      'kind: Account\nmetadata: { name: b }\nspec: { plan: gold }\n---\n' +
      'kind: Key\nmetadata: { name: k, account: bad }\n---\n' +
      'kind: Key\nmetadata: { name: k, account: ghost }\nspec: { secret_file: x }\n---\n' +
      'kind: Member\nmetadata: { account: bad }\n',
    /^3:9: unknown field "plam"/,
    /^11:17: there is no account "none"/,
    /^15:15: .*plan/,
    /^18:19: key k of bad is new and needs/,
    /^21:31: there is no account "ghost"/,
    /^24:1: "spec" is required/,
    /^25:11: "name" is required/,
  ],
]

onBothStores(t, 'export', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  const file = join(stage.gateway.folder, 'all.yaml')
  writeFileSync(file, DOCUMENTS)
  const config = stage.gateway.configFile
  t.equal((await ran({ file: [file], config }, '', '')).status, 0)
  const lines: string[] = []
  const terminal = {
    out: (line: string) => void lines.push(line),
    err: () => undefined,
    ready: () => Promise.resolve(),
    input: () => Promise.resolve(''),
  }
  const { store, gateway } = stage
  const session = {
    store,
    plans: gateway.plans,
    upstreams: [],
    companies: { providerOf: (name: string) => name, publisherOf: () => null },
    models: [],
    identities: [],
    acceptsImported: false,
    gateway: GATEWAY,
    terminal,
  }
  t.equal(await runOn(session, exportCommand, ['accounts']), 0)
  const text = lines.join('\n')
  t.match(text, /^kind: Account\nmetadata:\n {2}name: acme\n/)
  t.notMatch(text, /sk_|digest/)
  const foreign = await ran({ file: ['-'], config }, text, '')
  t.match(foreign, { status: 1, err: /account test exists, and apply did not make it/ })
  t.match(await ran({ file: ['-'], config, adopt: true }, text, ''), {
    status: 0,
    out: /^~ account test \(labels\.managed-by: none → apply\), adopted \(its keys: test; .*\nPlan: 0 to create, 1 to/,
  })
  const applied = await ran({ file: ['-'], config }, text, '')
  t.match(applied, {
    status: 0,
    out: /^Plan: 0 to create, 0 to change, 0 to remove, \d+ unchanged\.\n/,
  })
})

onBothStores(t, 'many accounts, and many at once', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  if (IS_LONG) t.setTimeout(300_000)
  const accounts = IS_LONG ? 200 : 12
  const documents: string[] = []
  for (let at = 0; at < accounts; at += 1) {
    const parent = at === 0 ? '' : `, parent: a${Math.floor((at - 1) / 6)}`
    documents.push(`kind: Account\nmetadata: { name: a${at} }\nspec: { plan: pro${parent} }\n`)
    for (let key = 0; key < 10; key += 1) {
      const digest = `${at}0${key}`.padStart(64, 'a')
      documents.push(
        `kind: Key\nmetadata: { name: k${key}, account: a${at} }\nspec: { secret_sha256: ${digest} }\n`,
      )
    }
  }
  const file = join(stage.gateway.folder, 'many.yaml')
  writeFileSync(file, documents.join('---\n'))
  const config = stage.gateway.configFile
  const beganMs = performance.now()
  const made = await ran({ file: [file], config }, '', '')
  const tookMs = performance.now() - beganMs
  t.equal(made.status, 0, made.err)
  t.match(made.out, new RegExp(`Applied: ${accounts * 11} created, 0 changed`))
  t.comment(`${accounts} accounts and ${accounts * 10} keys in ${Math.round(tookMs)} ms`)
  const again = await ran({ file: [file], config }, '', '')
  t.match(again.out, new RegExp(`Applied: 0 created, 0 changed, 0 removed, ${accounts * 11} unchanged`))

  const runs = await Promise.all(
    Array.from({ length: IS_LONG ? 50 : 8 }, async (_, at) => {
      const own = join(stage.gateway.folder, `own-${at}.yaml`)
      const label = `kind: Account\nmetadata: { name: shared }\n---\nkind: Key\nmetadata: { name: k${at}, account: shared }\n`
      writeFileSync(own, `${label}spec: { secret_sha256: ${`f${at}`.padStart(64, '0')} }\n`)
      return ran(
        { file: [own], server: stage.gateway.origin },
        '',
        await stage.makeToken(['accounts:write', 'keys:write']),
      )
    }),
  )
  const failed = runs.filter(({ status }) => status !== 0)
  const limit = 5
  t.equal(runs.length - failed.length, limit, 'as many keys as the plan allows')
  t.ok(
    failed.every(({ err }) => /Failed: account shared: .*plan "starter" allows no more keys/.test(err)),
    failed[0]?.err ?? '',
  )
  const keys = (await stage.ask('GET', '/accounts/shared/keys')).json['items']
  t.equal(Array.isArray(keys) ? keys.filter(isObject).length : 0, limit, 'no update is lost')
})

onBothStores(t, 'many keys of one account', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  const count = IS_LONG ? 2_000 : 100
  const documents = (rpm: number) => [
    { kind: 'Account', metadata: { name: 'large' }, spec: { plan: 'max' } },
    ...Array.from({ length: count }, (_, at) => ({
      ...{ kind: 'Key', metadata: { name: `k${at}`, account: 'large', labels: { app: 'a' } } },
      spec: { limits: { requests_per_minute: rpm }, secret_sha256: `${at}`.padStart(64, 'b') },
    })),
  ]
  const plans = stage.gateway.load().config.plans
  t.equal(plans['max']?.maxKeys ?? null, null, 'the plan has no limit of keys')
  const figures: number[] = []
  const apply = async (body: object) => {
    const watch = new TurnWatch()
    const { status, json } = await stage.ask('POST', '/apply', { body })
    figures.push(watch.end())
    t.equal(status, 200)
    t.same(json['errors'], [])
    const of = (name: string) => (Array.isArray(json[name]) ? json[name].length : 0)
    return [of('create'), of('change'), of('remove'), json['unchanged']]
  }
  t.same(await apply({ documents: documents(1), dry_run: true }), [count + 1, 0, 0, 0])
  t.same(await apply({ documents: documents(1) }), [count + 1, 0, 0, 0])
  t.same(await apply({ documents: documents(1) }), [0, 0, 0, count + 1])
  t.same(await apply({ documents: documents(2) }), [0, count, 0, 1])
  t.same(await apply({ documents: documents(2).slice(0, 1), prune: true }), [0, 0, count, 1])
  t.equal((await stage.store.accountByName('large'))?.disabled, false)
  const shown = figures.map((ms) => Math.round(ms)).join(', ')
  t.comment(`${count} keys in one transaction: longest turns of ${shown} ms`)
  // That of the test counts, too.
  if (IS_LONG) t.ok(Math.max(...figures) < 50, shown)
})

void t.test('the admin API takes documents of up to 4 MiB together', async (t) => {
  const stage = await startAdmin(t)
  const labels = Object.fromEntries(
    Array.from({ length: 15 }, (_, at) => [`a-long-name-of-label-${at}`, 'v'.repeat(64)]),
  )
  const documents = Array.from({ length: 1_000 }, (_, at) => {
    return { kind: 'Account', metadata: { name: `team-${at}`, labels } }
  })
  const body = JSON.stringify({ documents, dry_run: true })
  t.ok(body.length > 1_048_576)
  const planned = await stage.ask('POST', '/apply', { body })
  t.equal(planned.status, 200)
  const { create } = planned.json
  t.equal(Array.isArray(create) ? create.length : 0, 1_000)
  const tooLarge = await stage.ask('POST', '/apply', { body: body.padEnd(4_194_305) })
  t.match(tooLarge, { status: 413, json: { kind: 'body_too_large' } })
})
