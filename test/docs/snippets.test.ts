/**
 * Goal: every command and snippet of the README and the documentation works unchanged.
 * Method: YAML is loaded as a configuration, JSON is parsed, JavaScript and shell are checked for syntax, and
 * the shell blocks of each page run in order beside a running gateway in front of the emulator. Programs
 * that need another machine, root or the network (docker, kubectl, git, npm …) are replaced by a program that
 * only accepts them; `npm run NAME` must name a script of package.json. Each day runs the commands of a
 * twelfth of the pages and of the changed ones, the long suite all.
 */
import { execFile } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { isObject, objectOf, type JsonObject, type JsonValue } from '../../src/base/json.js'
import { loadConfigText } from '../../src/config/load-config.js'
import { fileSchema } from '../../src/config/schema/config-file-schema.js'
import { isToday } from '../helpers/long-suite.js'
import { EMAIL, newKey, startServe, until, type Served } from '../process/program.js'
import { changedPaths } from '../runner/repository-files.js'

const run = promisify(execFile)

/** A fenced block of a page. */
interface Block {
  readonly page: string
  readonly line: number
  readonly language: string
  readonly text: string
}

const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'examples/README.md',
  ...['docs', 'docs/how-to', 'docs/reference', 'docs/explanation'].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(folder, name)),
  ),
]

function blocksOf(page: string): Block[] {
  const text = readFileSync(page, 'utf8')
  return [...text.matchAll(/^( *)```(\w+)[^\n]*\n([\s\S]*?)\n? *```$/gm)].map((match) => {
    const [, indent = '', language = '', body = ''] = match
    const lines = body.split('\n').map((line) => line.slice(indent.length))
    const line = text.slice(0, match.index).split('\n').length
    return { page, line, language, text: `${lines.join('\n')}\n` }
  })
}

const BLOCKS = PAGES.flatMap(blocksOf)
const inLanguage = (...languages: string[]): Block[] =>
  BLOCKS.filter(({ language }) => languages.includes(language))
const place = ({ page, line }: Block): string => `${page}:${String(line)}`

/** Sections of the configuration, to tell its snippets from other YAML. */
const SECTIONS = Object.keys(fileSchema.shape)

/** A whole configuration around a snippet: upstreams that it names and does not define are added. */
function wholeConfig(snippet: JsonObject): string {
  const text = JSON.stringify([snippet['routes'] ?? [], snippet['limits'] ?? []])
  const named = [...text.matchAll(/"upstream":"([\w-]+)"/g)].map(([, name = '']) => name)
  const missing = [...named, 'placeholder'].map((name): [string, JsonObject] => [
    name,
    { dialect: 'openai-chat', base_url: 'http://127.0.0.1:9/v1' },
  ])
  const upstreams: JsonObject = {
    ...Object.fromEntries(missing),
    ...objectOf(snippet['upstreams'] ?? {}),
  }
  return JSON.stringify({
    store: 'sqlite:./data/sluice.db',
    routes: [{ prefix: 'placeholder-', upstream: 'placeholder' }],
    ...snippet,
    upstreams,
  })
}

void t.test('the YAML of the pages is a valid configuration', (t) => {
  const models = readFileSync('config/models.yaml', 'utf8')
  let configurations = 0
  for (const block of inLanguage('yaml', 'yml')) {
    const documents = parseAllDocuments(block.text)
    t.ok(Array.isArray(documents) && documents.every(({ errors }) => errors.length === 0), place(block))
    const value: unknown = parse(block.text.split(/^---$/m)[0] ?? '')
    if (!isObject(value) || !Object.keys(value).every((key) => SECTIONS.includes(key))) continue
    configurations += 1
    const names = [...block.text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name)
    const path = '/etc/sluice/gateway.yaml'
    const files: Record<string, string> = { '/etc/sluice/models.yaml': models }
    for (const [, file = ''] of block.text.matchAll(/\$\{file:([^}]+)\}/g)) {
      files[resolve('/etc/sluice', file)] = 'a-secret-of-a-file'
    }
    const env = Object.fromEntries(names.map((name) => [name, 'a-value-of-the-environment-of-the-test']))
    const loaded = loadConfigText({ path, text: wholeConfig(value), files }, env)
    const problems = loaded.ok ? [] : loaded.errors.map(({ message, path }) => `${path}: ${message}`)
    t.strictSame(
      problems.filter((problem) => !/does not exist|cannot be read/.test(problem)),
      [],
      place(block),
    )
  }
  t.ok(configurations > 5)
  t.end()
})

void t.test('the JSON of the pages is JSON', (t) => {
  for (const block of inLanguage('json')) {
    if (block.text.includes('…')) continue
    t.doesNotThrow(() => {
      JSON.parse(block.text)
    }, place(block))
  }
  t.end()
})

void t.test('the JavaScript of the pages is JavaScript', async (t) => {
  const folder = t.testdir({})
  for (const block of inLanguage('js', 'javascript', 'mjs')) {
    const file = join(folder, 'program.mjs')
    writeFileSync(file, block.text)
    await t.resolves(run(process.execPath, ['--check', file]), place(block))
  }
})

/** Programs that are not run: they need root, the network, another machine or a browser. */
const NOT_RUN = [
  ...['docker', 'git', 'kubectl', 'helm', 'systemctl', 'sudo', 'journalctl', 'redis-cli', 'redis-server'],
  ...[
    'apt-get',
    'pip',
    'claude',
    'codex',
    'gemini',
    'ssh',
    'install',
    'systemd-analyze',
    'useradd',
    'promtool',
  ],
]

const NPM = `#!/usr/bin/env node
const { scripts } = JSON.parse(require('node:fs').readFileSync('package.json', 'utf8'))
const [command, name] = process.argv.slice(2).filter((word) => !word.startsWith('-'))
const known = ['ci', 'cit', 'install', 'start', 'test', 'pack'].includes(command)
if (!known && !(command === 'run' && name in scripts)) {
  console.error('no such script: npm ' + command + ' ' + name)
  process.exit(1)
}
`

/** A folder of its own; the test's own directory is the gateway's. */
function scratch(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-snippets-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A folder of programs that takes the place of those that are not run. */
function programs(t: Test): string {
  const folder = join(scratch(t), 'bin')
  mkdirSync(folder)
  for (const name of NOT_RUN) writeFileSync(join(folder, name), '#!/bin/sh\nexit 0\n')
  writeFileSync(join(folder, 'npm'), NPM)
  writeFileSync(join(folder, 'sluice'), '#!/bin/sh\nexec node dist/main.js "$@"\n')
  for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o755)
  return folder
}

/** The folder in which the commands run: the project's, with files of its own. */
function workFolder(t: Test, { file }: Served): string {
  const work = join(scratch(t), 'work')
  mkdirSync(work)
  for (const name of [
    'dist',
    'docs',
    'examples',
    'node_modules',
    'package.json',
    'bench',
    'grafana',
    'test',
    'build',
    'deploy',
  ]) {
    symlinkSync(resolve(name), join(work, name))
  }
  mkdirSync(join(work, 'backup'))
  symlinkSync(join(dirname(file), 'data'), join(work, 'data'))
  mkdirSync(join(work, 'config'))
  for (const name of readdirSync('config')) {
    writeFileSync(join(work, 'config', name), readFileSync(join('config', name)))
  }
  writeFileSync(join(work, 'config', 'gateway.yaml'), readFileSync(file))
  writeFileSync(join(work, 'new.yaml'), readFileSync(file))
  writeFileSync(join(work, 'a.wav'), 'RIFF')
  writeFileSync(join(work, 'cat.png'), 'PNG')
  return work
}

function originOf({ port }: Served): string {
  return `http://127.0.0.1:${String(port)}`
}

const ADMIN_TOKEN = 'a-token-for-operators-of-the-test'

const NEW_KEY = 'THE_ID_OF_A_NEW_KEY'

/** The text with the placeholders that a reader replaces by own values. */
function filledIn(text: string, served: Served, work: string): string {
  return (
    text
      .replaceAll(/(?<=accounts create --email )\S+/g, 'new-$RANDOM@example.com')
      .replaceAll(/you@example\.com|team@example\.com/g, EMAIL)
      .replaceAll(/(?<=--account )shop\b/g, EMAIL)
      .replaceAll(/(?<=[?&]account=)shop\b/g, encodeURIComponent(EMAIL))
      .replaceAll('https://gateway.example.com', originOf(served))
      .replaceAll(/http:\/\/(?:localhost|127\.0\.0\.1):8080/g, originOf(served))
      .replaceAll(/http:\/\/(?:localhost|127\.0\.0\.1):9464/g, `http://127.0.0.1:${String(served.opsPort)}`)
      .replaceAll('sk_…', served.secret)
      .replaceAll(/(?<=--key )(?:key_…|KEY_ID)/g, NEW_KEY)
      .replaceAll('/backup/', `${work}/backup/`)
      .replaceAll('redis://:secret@10.0.0.5', 'sqlite:./copy.db')
      .replaceAll(/(?<![\w/])(?:config\/)?gateway\.yaml/g, '$SLUICE_CONFIG')
      // These run until they are stopped; other tests run them.
      .replaceAll(/main\.js (serve|emulate|demo|restart)\b[^&\n#]*/g, 'main.js $1 --help ')
      .replaceAll(/node (examples\/live-swap\/demo\.mjs)/g, 'test -e $1')
      // Tests and benchmarks take minutes; their programs must exist.
      .replaceAll(/^for test in build.*$/gm, 'test -d build/test/conformance')
      .replaceAll(/"request_id":"[^"]*"/g, '"request_id":')
      .replaceAll(/(?:\w+=\S+ )*node (build\/\S+)[^\n]*/g, 'test -e $1')
  )
}

/** The configuration with the upstreams, routes and dimensions that the page adds. */
function withSnippets(text: string, page: string): string {
  const base = objectOf(parse(text))
  const snippets = blocksOf(page)
    .filter(({ language }) => language === 'yaml')
    .map(({ text }): unknown => parse(text.split(/^---$/m)[0] ?? ''))
    .filter(isObject)
  const upstreams = snippets.map((snippet) => objectOf(snippet['upstreams'] ?? {}))
  const own = [...upstreams, objectOf(base['upstreams'] ?? {})].reduce<JsonObject>(
    (all, some) => ({ ...all, ...some }),
    {},
  )
  const known = (route: JsonValue): boolean => {
    const text = JSON.stringify(route)
    const names = [...text.matchAll(/"upstream":"([\w-]+)"/g)].map(([, name = '']) => name)
    return names.every((name) => name in own)
  }
  const routes = snippets.flatMap(({ routes }) => (Array.isArray(routes) ? routes : []))
  const taken = new Set<string>()
  const all = [...(Array.isArray(base['routes']) ? base['routes'] : []), ...routes.filter(known)]
  const distinct = all.filter((route) => {
    const { model, prefix } = objectOf(route)
    const match = JSON.stringify([model, prefix])
    return taken.has(match) ? false : taken.add(match)
  })
  // The last list of a page replaces the earlier ones; a required value would refuse other requests.
  const dimensions = snippets
    .flatMap(({ dimensions }) => (Array.isArray(dimensions) ? [dimensions] : []))
    .at(-1)
  return JSON.stringify({ ...base, upstreams: own, routes: distinct, ...(dimensions && { dimensions }) })
}

/** Pages whose commands another test runs. */
const ELSEWHERE = ['docs/tutorial.md', 'docs/how-to/archive.md']

/** Creates a key for each placeholder of a key that a command revokes or changes. */
async function withNewKeys(text: string, { file }: Served): Promise<string> {
  const store = `sqlite:${join(dirname(file), 'data', 'sluice.db')}`
  const [first = '', ...rest] = text.split(NEW_KEY)
  let filled = first
  for (const part of rest) filled += `${(await newKey(store)).key.id}${part}`
  return filled
}

void t.test('the commands of each page run', { timeout: 300_000 }, async (t) => {
  // One gateway for all pages: each start takes as long as the commands of a page.
  const served = await startServe(t, {
    server: `workers: 1, admin_token: ${ADMIN_TOKEN}`,
  })
  const base = readFileSync(served.file, 'utf8')
  await served.chat()
  await until(() => served.program.out().includes('"request_id"'))
  const path = `${programs(t)}:${process.env['PATH'] ?? ''}`
  const changed = changedPaths() ?? []
  const pages = PAGES.filter((name, index) => isToday(index, 12) || changed.includes(name))
  for (const page of pages.filter((name) => !ELSEWHERE.includes(name))) {
    const blocks = blocksOf(page).filter(({ language }) => language === 'sh')
    if (blocks.length === 0) continue
    await t.test(page, async (t) => {
      served.write(withSnippets(base, page))
      const work = workFolder(t, served)
      writeFileSync(join(work, 'sluice.log'), served.program.out())
      const env = {
        ...process.env,
        // Settings of clients are written there.
        HOME: work,
        PATH: path,
        SLUICE_CONFIG: served.file,
        SLUICE_URL: originOf(served),
        SLUICE_KEY: served.secret,
        TOKEN: ADMIN_TOKEN,
      }
      for (const block of blocks) {
        const script = join(work, 'block.sh')
        const text = await withNewKeys(filledIn(block.text, served, work), served)
        writeFileSync(script, `set -e\n${text}\n`)
        const ended = run('bash', [script], { cwd: work, env, timeout: 120_000 })
        const failure = await ended.then(
          () => '',
          (error: unknown) => String(error),
        )
        t.equal(failure, '', place(block))
      }
    })
  }
})
