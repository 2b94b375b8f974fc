/**
 * Goal: every file of `examples/` works unchanged.
 * Method: runs each program with a gateway in front of the emulator, each day a sixth of those in JavaScript
 * and Python, and every third day the Gemini CLI; the settings of coding agents are
 * applied to the SDK on which the agent is built.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import t, { type Test } from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { anotherDay, ofToday } from '../helpers/long-suite.js'

const run = promisify(execFile)
const CLIENTS_PYTHON = 'build/clients/python/bin/python3'
const PYTHON = process.env['SLUICE_PYTHON'] ?? (existsSync(CLIENTS_PYTHON) ? CLIENTS_PYTHON : 'python3')
const LIMIT_MS = 120_000
const PROMPT = 'Name three rivers.'

type Env = Readonly<Record<string, string>>

/** The environment of a program that talks to a new gateway. */
async function environment(t: Test): Promise<Env> {
  const routes = ['tts-', 'whisper-', 'omni-moderation-', 'rerank-']
    .map((prefix) => `  - { prefix: ${prefix}, upstream: openai }`)
    .join('\n')
  const more = `escrow: { key: 0Zk9xQ2vLw8RmT5yBn7CdF4gHj6Kp3Sa }
files: { to: ./files }
batches: { poll_seconds: 0.2 }`
  const gateway = await startGateway(t, {
    more,
    routes,
    upstreamOptions: 'operations: { rerank: cohere-v1 }',
  })
  return { SLUICE_URL: gateway.origin, SLUICE_KEY: gateway.secret }
}

function filesIn(folder: string, extension: string): string[] {
  return readdirSync(`examples/${folder}`)
    .filter((name) => name.endsWith(extension))
    .map((name) => `examples/${folder}/${name}`)
}

void t.test('each JavaScript program prints a reply', async (t) => {
  const env = await environment(t)
  const programs = filesIn('javascript', '.mjs')
  t.ok(programs.length >= 7)
  for (const program of ofToday(programs, 6)) {
    const { stdout } = await run(process.execPath, [program], { env: { ...process.env, ...env } })
    t.match(stdout, /\S.*\n$/, `${program} prints a line and ends it`)
  }
})

/** What the reply to a shell program has. */
function printed(program: string): RegExp {
  const name = program.slice(program.lastIndexOf('/') + 1, -'.sh'.length)
  switch (name) {
    case 'embeddings':
      return /"embedding"/
    case 'images':
    case 'image-edits':
      return /"b64_json"/
    case 'speech':
      return /^\s*\d{3,}\s*$/
    case 'rerank':
      return /"relevance_score"/
    case 'transcriptions':
    case 'translations':
      return /"text"/
    case 'moderations':
      return /"flagged"/
    default:
      return /rivers|delta/
  }
}

void t.test('each shell program prints a reply', async (t) => {
  const env = await environment(t)
  const programs = filesIn('curl', '.sh')
  t.ok(programs.length >= 5)
  for (const program of programs) {
    const { stdout } = await run('sh', [program], { env: { ...process.env, ...env } })
    t.match(stdout, printed(program), program)
    t.match(stdout, /\n$/, `${program} ends its output with a line break`)
  }
})

/** Parses a program, and finds the modules that it imports without the time to load them. */
const EXAMINE = `import ast, sys
from importlib.util import find_spec
ast.parse(open(sys.argv[1]).read())
def found(name):
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
print(all(found(name) for name in sys.argv[2:]))`

void t.test('each Python program prints a reply, if its packages are installed', async (t) => {
  const env = await environment(t)
  const programs = filesIn('python', '.py')
  t.ok(programs.length >= 5)
  for (const program of ofToday(programs, 6)) {
    const text = readFileSync(program, 'utf8')
    const modules = [...text.matchAll(/^from ([\w.]+) import/gm)].map(([, name = '']) => name)
    const { stdout: isInstalled } = await run(PYTHON, ['-c', EXAMINE, program, ...modules])
    if (isInstalled !== 'True\n') {
      t.comment(`${program} needs ${modules.join(', ')}`)
      continue
    }
    const { stdout } = await run(PYTHON, [program], { env: { ...process.env, ...env } })
    t.match(stdout, /\S.*\n$/, program)
  }
})

/** The variables that a shell file sets. */
async function exportsOf(file: string, env: Env): Promise<(name: string) => string> {
  const { stdout } = await run('sh', ['-c', `. ./${file} && env`], {
    env: { PATH: process.env['PATH'], ...env },
  })
  const set = new Map(
    stdout.split('\n').map((line) => [line.split('=')[0] ?? '', line.slice(line.indexOf('=') + 1)]),
  )
  return (name) => set.get(name) ?? ''
}

void t.test('the settings of Claude Code reach the gateway', async (t) => {
  const value = await exportsOf('examples/agents/claude-code.sh', await environment(t))
  const client = new Anthropic({
    baseURL: value('ANTHROPIC_BASE_URL'),
    authToken: value('ANTHROPIC_AUTH_TOKEN'),
    apiKey: null,
  })
  for (const name of ['ANTHROPIC_MODEL', 'ANTHROPIC_DEFAULT_HAIKU_MODEL']) {
    const model = value(name)
    const messages = [{ role: 'user' as const, content: PROMPT }]
    const message = await client.messages.create({ model, max_tokens: 100, messages })
    t.equal(message.type, 'message', model)
  }
})

void t.test('the settings of the Gemini CLI reach the gateway', async (t) => {
  const value = await exportsOf('examples/agents/gemini-cli.sh', await environment(t))
  const baseUrl = value('GOOGLE_GEMINI_BASE_URL')
  const client = new GoogleGenAI({ apiKey: value('GEMINI_API_KEY'), httpOptions: { baseUrl } })
  const reply = await client.models.generateContent({
    model: 'claude-sonnet-4-5',
    contents: PROMPT,
  })
  t.ok(reply.text)
})

const GEMINI_CLI = resolve('build/clients/node_modules/@google/gemini-cli/bundle/gemini.js')

void t.test(
  'the Gemini CLI prints a reply with the example and a fresh home',
  {
    timeout: LIMIT_MS,
    skip: existsSync(GEMINI_CLI) ? anotherDay(1, 3) : 'build/test/setup.js installs it',
  },
  async (t) => {
    const env = await environment(t)
    const home = mkdtempSync(join(tmpdir(), 'sluice-gemini-'))
    t.teardown(() => rmSync(home, { recursive: true, force: true }))
    const command = `. ${resolve('examples/agents/gemini-cli.sh')} && exec "$0" "$@" < /dev/null`
    const options = ['--skip-trust', '--model', 'claude-sonnet-4-5', '-p', PROMPT]
    const { stdout } = await run('sh', ['-c', command, process.execPath, GEMINI_CLI, ...options], {
      cwd: home,
      timeout: LIMIT_MS,
      env: { PATH: process.env['PATH'], HOME: home, ...env },
    })
    t.match(stdout, /claude-sonnet-4-5/)
    const settings: unknown = JSON.parse(readFileSync(join(home, '.gemini/settings.json'), 'utf8'))
    t.match(settings, { security: { auth: { selectedType: 'gemini-api-key' } } })
  },
)

void t.test('the settings of the Codex CLI reach the gateway', async (t) => {
  const env = await environment(t)
  const text = readFileSync('examples/agents/codex.toml', 'utf8')
  const setting = (name: string): string => new RegExp(`^${name} = "(.*)"$`, 'm').exec(text)?.[1] ?? ''
  t.equal(setting('wire_api'), 'responses')
  const baseURL = setting('base_url').replace('http://localhost:8080', env['SLUICE_URL'] ?? '')
  const client = new OpenAI({ baseURL, apiKey: env[setting('env_key')] ?? '' })
  const response = await client.responses.create({ model: setting('model'), input: PROMPT })
  t.ok(response.output_text)
})

void t.test('the codecs are used without a gateway', async (t) => {
  const { stdout } = await run(process.execPath, ['examples/codecs/translate.mjs'])
  t.match(stdout, 'POST /chat/completions')
  t.match(stdout, '"type":"message"')
  t.match(stdout, 'event: message_stop')
  t.match(stdout, /complete \{.*\}\n$/)
})
