/**
 * Goal: `sluice connect --undo` restores the files of every client byte for byte after one or several writes,
 * keeps what others changed since, and touches nothing that Sluice did not write.
 * Method: the command in this process with a home of its own, and files as people keep them.
 */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { CLIENTS, type ClientFile } from '../../../src/config/client-settings.js'
import { sluiceHere } from '../session.js'
import { ofToday } from '../../helpers/long-suite.js'

const URL = 'https://llm.example.com'
const BACKUP = '.sluice-backup'

function newHome(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-undo-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const at = (path: string) => join(folder, path.replace(/^~\//, ''))
  const env = { HOME: folder, SLUICE_KEY: '', SLUICE_URL: '', SLUICE_CONFIG: '' }
  const run = (...args: string[]) => sluiceHere(['connect', ...args], { env, cwd: folder })
  return {
    at,
    run,
    write: (client: string, ...args: string[]) =>
      run(client, '--write', '--yes', '--url', URL, '--model', 'gpt-5.4', ...args),
    undo: (client: string, ...args: string[]) => run(client, '--undo', '--yes', '--url', URL, ...args),
    put(path: string, content: string | Buffer): void {
      mkdirSync(dirname(at(path)), { recursive: true })
      writeFileSync(at(path), content)
    },
    read: (path: string) => readFileSync(at(path), 'utf8'),
    files: () =>
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((each) => !each.isDirectory())
        .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
        .sort(),
  }
}

const WITH_FILES = CLIENTS.flatMap((client) => {
  const target = { url: URL, keyEnv: 'K', models: [{ id: 'm' }] as const, hasBudget: null }
  const { files } = client.settings(target)
  return files.length === 0 ? [] : [{ name: client.name, hasHelper: client.hasHelper, files }]
})

/** Texts of people, some with settings for another gateway, odd spacing and no line break at the end. */
const TEXTS: Readonly<Record<ClientFile['format'], readonly string[]>> = {
  json: [
    '',
    '{}',
    '{"a":1,"env":{}}',
    '// mine\n{\n\t"theme": "dark", // kept\n\t"env": { "ANTHROPIC_BASE_URL": "http://old:4000", "OTHER": "1", },\n\t"model": "other/x", /* last */\n}',
    '{\r\n  "security": { "auth": { "selectedType": "oauth-personal" }, "x": [1, 2 ] },\r\n  "provider": { "mine": { "npm": "x" } }\r\n}\r\n',
    '{ "language_models": { "openai_compatible": { "Other": { "api_url": "http://o/v1", "available_models": [] } } }, "apiKeyHelper": "own-helper" }\n',
  ],
  toml: [
    '',
    '# mine',
    'model = "o3" # best\napproval_policy = "never"\n\n\n[model_providers.other]\nname = "Other"\nbase_url = "http://o/v1"\n\n[[hooks]]\nx = [\n  1,\n  2, # two\n]',
    'model_provider="other"\r\n[projects."/tmp/x"]\r\ntrust_level = "trusted"\r\n',
  ],
  yaml: [
    '',
    '# mine\n',
    "# mine\nname:   My   # kept\nmodels:\n- name: local\n  provider: ollama\n  model: 'qwen'\n\nmodel: openai/other\ndark-mode: yes",
    'version: 1.2.1\nendpoints:\n    custom:\n        - name: "Other"\n          apiKey: "${X}"\n          models: {default: [a,b]}\ncache: true\n',
  ],
  dotenv: [
    '',
    '# mine\nexport OPENAI_BASE_URL="http://old:4000/v1"\nX=1',
    'ANTHROPIC_BASE_URL=http://old\r\nOTHER=2\r\n',
  ],
}

for (const { name, hasHelper, files } of ofToday(WITH_FILES, 4)) {
  void t.test(`${name}: the former files come back byte for byte`, async (t) => {
    const home = newHome(t)
    for (let round = 0; round < 6; round += 1) {
      const before = files.map(({ path, format }) => ({ path, text: TEXTS[format][round] ?? null }))
      for (const { path, text } of before) {
        rmSync(home.at(path), { force: true })
        if (text !== null) home.put(path, text)
      }
      t.equal((await home.write(name)).status, 0)
      const again = ['--key-env', 'OTHER_KEY', '--model', 'claude-sonnet-5-5', '--model', 'o4-mini']
      t.equal((await home.write(name, ...again)).status, 0, 'another key and other models')
      if (hasHelper) t.equal((await home.write(name, '--login')).status, 0)
      const { status, err } = await home.undo(name)
      t.equal(status, 0, err)
      for (const { path, text } of before) {
        if (text === null) t.notOk(existsSync(home.at(path)), `${path} is gone`)
        else t.equal(home.read(path), text, `${path} of round ${String(round)}`)
      }
      t.same(
        home.files().filter((each) => each.includes(BACKUP)),
        [],
      )
      const twice = await home.undo(name)
      t.match(twice.out + twice.err, /nothing to undo|no former file is kept/)
      for (const { path, text } of before) if (text !== null) t.equal(home.read(path), text, 'undone twice')
    }
  })
}

void t.test('what others changed since stays', async (t) => {
  const home = newHome(t)
  const toml = '# mine\nmodel = "o3"\n\n[tools]\nx = 1\n'
  home.put('.codex/config.toml', toml)
  await home.write('codex')
  home.put(
    '.codex/config.toml',
    `${home.read('.codex/config.toml')}\n[projects."/x"]\ntrust_level = "trusted"\n`,
  )
  t.equal((await home.undo('codex')).status, 0)
  t.match(
    home.read('.codex/config.toml'),
    /^# mine\nmodel = "o3"\n\n\[tools\]\nx = 1\n+\[projects\."\/x"\]\ntrust_level = "trusted"\n$/,
  )
  t.notOk(existsSync(home.at(`.codex/config.toml${BACKUP}`)))

  await home.write('claude-code')
  const settings = JSON.parse(home.read('.claude/settings.json')) as object
  home.put('.claude/settings.json', JSON.stringify({ ...settings, theme: 'dark' }, null, 2))
  t.equal((await home.undo('claude-code')).status, 0)
  t.same(JSON.parse(home.read('.claude/settings.json')), { theme: 'dark' })

  home.put(
    '.continue/config.yaml',
    'name: mine\nmodels:\n  - name: local\n    provider: ollama\n    model: q\n',
  )
  await home.write('continue')
  home.put('.continue/config.yaml', `${home.read('.continue/config.yaml')}rules:\n  - be short\n`)
  t.equal((await home.undo('continue')).status, 0)
  t.equal(
    home.read('.continue/config.yaml'),
    'name: mine\nmodels:\n  - name: local\n    provider: ollama\n    model: q\nrules:\n  - be short\n',
  )
})

void t.test('another gateway in between', async (t) => {
  const home = newHome(t)
  for (const text of [null, 'model = "o3"\n']) {
    if (text !== null) home.put('.codex/config.toml', text)
    await home.write('codex')
    await home.write('codex', '--url', 'http://localhost:8080')
    t.equal((await home.undo('codex', '--url', 'http://localhost:8080')).status, 0)
    t.same(home.files(), text === null ? [] : ['.codex/config.toml'])
  }
  await home.write('claude-code')
  const first = home.read('.claude/settings.json')
  await home.write('claude-code', '--url', 'http://localhost:8080')
  t.equal((await home.undo('claude-code')).status, 0)
  t.equal(home.read('.claude/settings.json'), first, 'the gateway before the last write')
  t.equal((await home.undo('claude-code')).status, 0)
  t.same(home.files(), ['.codex/config.toml'])
})

void t.test('several clients share a file', async (t) => {
  for (const order of [
    ['openai', 'anthropic'],
    ['anthropic', 'openai'],
  ] as const) {
    for (const text of [null, 'X=1\nOPENAI_BASE_URL=http://old/v1\n']) {
      const home = newHome(t)
      if (text !== null) home.put('.env', text)
      await home.write('openai')
      await home.write('anthropic')
      const [first, second] = order
      t.equal((await home.undo(first)).status, 0)
      t.match(home.read('.env'), new RegExp(`${second.toUpperCase()}_BASE_URL=${URL}`))
      t.notMatch(home.read('.env'), new RegExp(`${first.toUpperCase()}_BASE_URL=${URL}`))
      t.equal((await home.undo(second)).status, 0)
      t.same(home.files(), text === null ? [] : ['.env'])
      if (text !== null) t.equal(home.read('.env'), text)
    }
  }
})

void t.test('links, modes, read-only files and files of other encodings', async (t) => {
  const home = newHome(t)
  home.put('dotfiles/claude.json', '{"theme":"dark"}')
  chmodSync(home.at('dotfiles/claude.json'), 0o640)
  mkdirSync(home.at('.claude'))
  symlinkSync(home.at('dotfiles/claude.json'), home.at('.claude/settings.json'))
  await home.write('claude-code')
  t.equal((await home.undo('claude-code')).status, 0)
  t.equal(home.read('dotfiles/claude.json'), '{"theme":"dark"}')
  t.equal(statSync(home.at('dotfiles/claude.json')).mode & 0o777, 0o640)
  t.ok(lstatSync(home.at('.claude/settings.json')).isSymbolicLink())
  t.same(home.files(), ['.claude/settings.json', 'dotfiles/claude.json'])

  rmSync(home.at('dotfiles/claude.json'))
  const dangling = await home.write('claude-code')
  t.equal(dangling.status, 1)
  t.match(dangling.err, /is a link to a file that does not exist; nothing was written/)

  home.put('.codex/config.toml', 'a = 1\n')
  chmodSync(home.at('.codex/config.toml'), 0o444)
  const readOnly = await home.write('codex')
  t.equal(readOnly.status, 1)
  t.match(readOnly.err, /config\.toml is read-only; nothing was written/)
  t.equal(home.read('.codex/config.toml'), 'a = 1\n')
  t.same(
    home.files().filter((each) => each.startsWith('.codex')),
    ['.codex/config.toml'],
  )

  const latin = Buffer.from('# caf\xe9\nX=1\n', 'latin1')
  home.put('.env', latin)
  t.match((await home.write('openai')).err, /is not UTF-8 text; nothing was written/)
  t.same(readFileSync(home.at('.env')), latin)

  home.put('.qwen-home', '')
  home.put('.continue', 'a file in the place of a folder')
  t.match((await home.write('continue')).err, /cannot be written \(E\w+\); nothing was written/)
})

void t.test('nothing that Sluice did not write is undone', async (t) => {
  const home = newHome(t)
  const own = '{ "env": { "ANTHROPIC_BASE_URL": "http://litellm:4000", "ANTHROPIC_MODEL": "m" } }'
  home.put('.claude/settings.json', own)
  const other = await home.undo('claude-code')
  t.equal(other.status, 1)
  t.match(other.err, /no former file is kept, and the settings name http:\/\/litellm:4000, not https:/)
  t.equal(home.read('.claude/settings.json'), own)
  home.put('.codex/config.toml', 'model = "o3"\n')
  t.match((await home.undo('codex')).out, /nothing to undo/)
  t.equal(home.read('.codex/config.toml'), 'model = "o3"\n')
  t.equal((await home.undo('cursor')).status, 1)
  t.equal((await home.run('codex', '--undo', '--write', '--yes')).status, 2)
  t.equal((await home.run('codex', '--undo')).status, 2, 'a question needs a terminal')
})
