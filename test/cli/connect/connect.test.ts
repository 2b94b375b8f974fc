/**
 * Goal: `sluice connect` prints and writes settings that name the gateway, the models of the key and the
 * variable of the key, for every client, and never the key itself.
 * Method: the command in this process with an empty home, beside a gateway with keys.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { createKey } from '../../helpers/keys.js'
import { command as keysCommand } from '../../../src/cli/keys.js'
import { CLIENTS } from '../../../src/config/client-settings.js'
import { objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { openStore } from '../../../src/store/open-store.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { newSession, runOn, sluiceHere } from '../session.js'

const URL = 'https://llm.example.com'
const SECRET = `sk_${'a'.repeat(43)}`

interface Home {
  readonly folder: string
  run(args: readonly string[], env?: Readonly<Record<string, string>>): ReturnType<typeof sluiceHere>
  json(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<JsonObject>
  read(path: string): string
  put(path: string, text: string): string
}

/** An empty home, which is also the working folder. */
function newHome(t: Test): Home {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-home-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const home: Home = {
    folder,
    run: (args, env = {}) =>
      sluiceHere(['connect', ...args], {
        env: { HOME: folder, SLUICE_KEY: '', SLUICE_URL: '', SLUICE_CONFIG: '', ...env },
        cwd: folder,
      }),
    json: async (args, env) => objectOf(JSON.parse((await home.run([...args, '--json'], env)).out)),
    read: (path) => readFileSync(join(folder, path), 'utf8'),
    put(path, text) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
      return join(folder, path)
    },
  }
  return home
}

void t.test(
  'every client gets settings with the gateway, the model and the variable, and no key',
  async (t) => {
    const home = newHome(t)
    const list = await home.run(['--list'])
    const listed: unknown = JSON.parse((await home.run(['--list', '--json'])).out)
    t.same(
      listed,
      CLIENTS.map(({ name, title }) => ({ client: name, title })),
    )
    for (const { name } of CLIENTS) {
      t.match(list.out, name)
      const args = [name, '--url', `${URL}/`, '--model', 'house-model', '--key-env', 'TEAM_KEY']
      const { status, out, err } = await home.run([...args, '--json'], { TEAM_KEY: SECRET })
      t.same([status, err], [0, ''], name)
      const json = objectOf(JSON.parse(out))
      t.match(json, { client: name, title: String, model: 'house-model', steps: Array, notes: Array })
      t.match(json['base_url'], /^https:\/\/llm\.example\.com(?:\/v1)?$/, name)
      t.ok(Object.values(objectOf(json['env'])).includes('${TEAM_KEY}'), `${name} names the variable`)
      t.match(out, name === 'n8n' || name === 'cursor' ? URL : /house-model|TEAM_KEY/)
      const text = await home.run(args, { TEAM_KEY: SECRET })
      t.equal(text.status, 0)
      for (const printed of [out, text.out, text.err]) t.notMatch(printed, SECRET, `${name} prints no key`)
      t.match(text.out, URL)
    }
    t.end()
  },
)

void t.test('the address: --url, the configuration, SLUICE_URL, the default', async (t) => {
  const home = newHome(t)
  const of = async (args: readonly string[], env = {}): Promise<unknown> =>
    (await home.json(['openai', ...args], env))['base_url']
  t.equal(await of([]), 'http://localhost:8080/v1')
  t.equal(await of([], { SLUICE_URL: 'http://one:9/' }), 'http://one:9/v1')
  const config = (more: string): string =>
    home.put(
      'gateway.yaml',
      `store: sqlite:./x.db\nupstreams:\n  one: { dialect: openai-chat, base_url: https://example.com/v1, api_key: x }\nroutes:\n  - { prefix: gpt-, upstream: one }\n${more}`,
    )
  t.equal(await of(['--config', config('server: { port: 7000 }\n')]), 'http://localhost:7000/v1')
  const named = config('dashboard: { public_url: https://llm.example.org }\n')
  t.equal(await of(['--config', named], { SLUICE_URL: 'http://one:9' }), 'https://llm.example.org/v1')
  t.equal(await of(['--config', named, '--url', URL]), `${URL}/v1`)
  for (const bad of [`${URL}/v1`, 'llm.example.com', 'ftp://x', 'https://u:p@x', `${URL}?a=1`]) {
    t.equal((await home.run(['openai', '--url', bad])).status, 2, bad)
  }
  t.equal((await home.run(['openai', '--config', config('nonsense: 1\n')])).status, 1)
})

void t.test('wrong usage', async (t) => {
  const home = newHome(t)
  const missing = await home.run([])
  t.equal(missing.status, 2)
  t.match(missing.err, /claude-code/)
  const unknown = await home.run(['codx'])
  t.equal(unknown.status, 2)
  t.match(unknown.err, /did you mean "codex"/)
  for (const args of [
    ['openai', '--key-env', 'A B'],
    ['openai', '--model', ''],
    ['openai', '--write'],
  ]) {
    t.equal((await home.run(args)).status, 2, args.join(' '))
  }
  const { status, out, err } = await home.run(['openai', '--login'])
  t.same([status, out], [1, ''])
  t.match(err, /no helper/)
})

void t.test('--login writes the helper command of a client', async (t) => {
  const home = newHome(t)
  const url = 'https://llm.example.com'
  const args = ['--login', '--url', url, '--model', 'gpt-5.5']
  const claude = await home.json(['claude-code', ...args])
  t.match(claude, { helper: `sluice token ${url}`, env: {} })
  home.put('.claude/settings.json', '{ "env": { "ANTHROPIC_AUTH_TOKEN": "x", "OTHER": "1" } }\n')
  t.equal((await home.run(['claude-code', ...args, '--write', '--yes'])).status, 0)
  const settings = objectOf(JSON.parse(home.read('.claude/settings.json')))
  t.equal(settings['apiKeyHelper'], `sluice token ${url}`)
  t.match(settings['env'], { ANTHROPIC_BASE_URL: url, OTHER: '1' })
  t.notOk('ANTHROPIC_AUTH_TOKEN' in objectOf(settings['env']), 'a token of before wins over the helper')

  home.put('.codex/config.toml', '# mine\nmodel = "o3"\n')
  const codex = (more: readonly string[]) =>
    home.run(['codex', ...args.slice(1), '--write', '--yes', ...more])
  t.equal((await codex([])).status, 0)
  t.match(home.read('.codex/config.toml'), /env_key = "SLUICE_KEY"/)
  t.equal((await codex(['--login'])).status, 0)
  const byLogin = home.read('.codex/config.toml')
  t.match(byLogin, `[model_providers.sluice.auth]\ncommand = "sluice"\nargs = ["token", "${url}"]\n`)
  t.match(byLogin, /refresh_interval_ms = 300000/)
  t.notMatch(byLogin, /env_key/, 'Codex takes one of them')
  t.match(byLogin, /^# mine/)
  t.equal((await codex([])).status, 0)
  const byKey = home.read('.codex/config.toml')
  t.match(byKey, /env_key/)
  t.notMatch(byKey, /auth/)
})

async function keyWith(gateway: TestGateway, models: readonly string[]): Promise<string> {
  const store = await openStore(gateway.store)
  const account = await store.accountByEmail('test@example.com')
  if (account === null) throw new Error('no account')
  const { secret } = await createKey(store, { plans: gateway.plans, account, name: models.join(), models })
  await store.close()
  return secret
}

void t.test('the models are those that the key may use, without embeddings', async (t) => {
  const gateway = await startGateway(t)
  const home = newHome(t)
  const allowed = ['gpt-5.4', 'claude-sonnet-5-5', 'text-embedding-3-small']
  const env = { SLUICE_KEY: await keyWith(gateway, allowed), SLUICE_URL: gateway.origin }
  const opencode = await home.json(['opencode'], env)
  const [file] = opencode['files'] as JsonObject[]
  const { provider } = objectOf(JSON.parse(stringOf(file?.['content']) ?? ''))
  const { models, options } = objectOf(objectOf(provider)['sluice'])
  t.same(Object.keys(objectOf(models)).sort(), ['claude-sonnet-5-5', 'gpt-5.4'])
  t.match(objectOf(models)['gpt-5.4'], { attachment: true, limit: { context: Number, output: Number } })
  t.match(options, { baseURL: `${gateway.origin}/v1`, apiKey: '{env:SLUICE_KEY}' })
  const claude = await home.json(['claude-code'], env)
  t.equal(claude['model'], 'claude-sonnet-5-5', 'a client of a vendor prefers its models')
  const other = await home.json(['codex', '--key-env', 'MINE'], { ...env, MINE: env.SLUICE_KEY })
  t.equal(other['model'], 'gpt-5.4')

  for (const [key, why] of [
    ['', /SLUICE_KEY is not set/],
    [SECRET, /answers 401/],
  ] as const) {
    const { status, out, err } = await home.run(['zed', '--json'], { ...env, SLUICE_KEY: key })
    t.equal(status, 0)
    t.match(err, why)
    t.match(err, /examples/)
    t.match(JSON.parse(out), { model: 'gpt-5.4' })
  }
  const none = await home.run(['zed', '--json', '--url', 'http://127.0.0.1:9'], env)
  t.match(none.err, /does not answer/)
})

void t.test('--write merges into files, shows the difference and keeps the former file', async (t) => {
  const home = newHome(t)
  const former = '# mine\nmodel = "o3"\n'
  const path = home.put('.codex/config.toml', former)
  const args = ['codex', '--model', 'gpt-5.4', '--url', URL, '--write', '--yes']
  const { status, out } = await home.run(args)
  t.equal(status, 0)
  t.match(out, '--- ~/.codex/config.toml\n+++ ~/.codex/config.toml\n@@')
  t.match(out, '\n-model = "o3"\n+model = "gpt-5.4"\n')
  t.match(home.read('.codex/config.toml'), '# mine\nmodel = "gpt-5.4"\nmodel_provider = "sluice"\n')
  t.equal(home.read('.codex/config.toml.sluice-backup'), former)
  const again = await home.run(args)
  t.match(again.out, /nothing to change/)
  t.equal(home.read('.codex/config.toml.sluice-backup'), former, 'the former file stays')
  t.equal(statSync(path).mode & 0o777, statSync(`${path}.sluice-backup`).mode & 0o777)

  const created = await home.run(['continue', '--model', 'gpt-5.4', '--write', '--yes'])
  t.match(created.out, '--- /dev/null\n+++ ~/.continue/config.yaml\n')
  t.notOk(existsSync(join(home.folder, '.continue/config.yaml.sluice-backup')))
})

void t.test('--write: links stay links, secrets of files are not shown, broken files stay', async (t) => {
  const home = newHome(t)
  const real = home.put('dotfiles/claude.json', `{ "env": { "ANTHROPIC_API_KEY": "${SECRET}" } }\n`)
  mkdirSync(join(home.folder, '.claude'))
  symlinkSync(real, join(home.folder, '.claude/settings.json'))
  const { status, out } = await home.run(['claude-code', '--model', 'm', '--write', '--yes'])
  t.equal(status, 0)
  t.notMatch(out, SECRET)
  t.match(JSON.parse(readFileSync(real, 'utf8')), {
    env: { ANTHROPIC_API_KEY: SECRET, ANTHROPIC_MODEL: 'm' },
  })

  home.put('.gemini/settings.json', '{ broken')
  const broken = await home.run(['gemini-cli', '--model', 'm', '--write', '--yes'])
  t.equal(broken.status, 1)
  t.match(broken.err, /settings\.json is not valid JSON; nothing was written/)
  t.notOk(existsSync(join(home.folder, '.gemini/.env')), 'nor is any other file of the client')
  const steps = await home.run(['cursor', '--write', '--yes'])
  t.equal(steps.status, 1)
  t.match(steps.err, /no file to write/)
})

void t.test('keys create --connect prints the same beside the secret', async (t) => {
  const session = await newSession(t)
  const run = (...args: string[]): Promise<number> =>
    runOn(session, keysCommand, ['create', '--account', 'ada@x.org', ...args])
  await createAda(session)
  t.equal(await run('--name', 'one', '--connect', 'codex', '--usd-per-day', '5', '--models', 'gpt-*'), 0)
  t.match(session.output(), [/^sk_\w{40,}$/])
  const text = session.errors().join('\n')
  t.match(text, 'model = "gpt-5.5"')
  t.match(text, 'web_search = "disabled"')
  t.match(text, 'env_key = "SLUICE_KEY"')
  t.notMatch(text, /sk_\w{40}/)
  await run('--name', 'two', '--connect', 'codex', '--models', 'claude-sonnet-5')
  const other = session.errors().join('\n')
  t.match(other, 'model = "claude-sonnet-5"')
  t.notMatch(other, 'web_search', 'a key without a budget may search')
  await t.rejects(run('--name', 'three', '--connect', 'no-client'), { name: 'UsageError' })
})

async function createAda(session: Awaited<ReturnType<typeof newSession>>): Promise<void> {
  const { command } = await import('../../../src/cli/accounts.js')
  await runOn(session, command, ['create', '--email', 'ada@x.org', '--plan', 'max'])
  session.output()
  session.errors()
}
